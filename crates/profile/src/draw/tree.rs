//! Stacks as a tree of callers and what they call.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// A tree whose nodes have two costs, of the baseline and of the variant.
pub(super) struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    /// Children by the node that calls and the name.
    children: HashMap<(usize, &'a str), usize, RandomState>,
}

#[derive(Default)]
struct Node<'a> {
    name: &'a str,
    calls: Vec<usize>,
    /// Of the stacks that end here.
    own: [f64; 2],
}

/// A node as it is visited.
pub(super) struct Visited<'v> {
    /// The names from the root on, the node's own last, each with the number of its node.
    pub(super) path: &'v [(&'v str, usize)],
    /// Of the stacks that end here.
    pub(super) own: [f64; 2],
    /// Of all that go through here.
    pub(super) costs: [f64; 2],
}

impl Visited<'_> {
    pub(super) fn name(&self) -> &str {
        self.path.last().map_or("", |(name, _)| name)
    }
}

impl<'a> Tree<'a> {
    pub(super) fn new() -> Self {
        Self {
            nodes: vec![Node::default()],
            children: HashMap::default(),
        }
    }

    pub(super) fn add(&mut self, frames: impl Iterator<Item = &'a str>, costs: [f64; 2]) {
        let mut at = 0;
        for name in frames {
            let nodes = &mut self.nodes;
            at = *self.children.entry((at, name)).or_insert_with(|| {
                let new = nodes.len();
                nodes.push(Node {
                    name,
                    ..Node::default()
                });
                nodes[at].calls.push(new);
                new
            });
        }
        for (sum, cost) in self.nodes[at].own.iter_mut().zip(costs) {
            *sum += cost;
        }
    }

    /// Visits every node below the root: callers before what they call, siblings by their names.
    pub(super) fn visit(mut self, mut visit: impl FnMut(&Visited<'_>)) {
        let mut order = std::mem::take(&mut self.nodes);
        let names: Vec<&str> = order.iter().map(|node| node.name).collect();
        for node in &mut order {
            node.calls
                .sort_by_key(|&call| std::cmp::Reverse(names[call]));
        }
        // A node is behind its caller, so that sums go from the last one up.
        let mut costs: Vec<[f64; 2]> = order.iter().map(|node| node.own).collect();
        for caller in (0..order.len()).rev() {
            for &call in &order[caller].calls {
                let of_call = costs[call];
                for (sum, cost) in costs[caller].iter_mut().zip(of_call) {
                    *sum += cost;
                }
            }
        }
        let mut path: Vec<(&str, usize)> = Vec::new();
        // The stacks may be deeper than this thread's.
        let mut left: Vec<(usize, usize)> = order[0].calls.iter().map(|&call| (call, 0)).collect();
        let mut number = 0;
        while let Some((node, depth)) = left.pop() {
            path.truncate(depth);
            path.push((names[node], number));
            number += 1;
            visit(&Visited {
                path: &path,
                own: order[node].own,
                costs: costs[node],
            });
            left.extend(order[node].calls.iter().map(|&call| (call, depth + 1)));
        }
    }
}
