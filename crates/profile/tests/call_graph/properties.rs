//! What holds for every text.

use std::fmt::Write as _;

use fwdlab_profile::{CallGraph, CallGraphError, Folded, Frame, FrameNames};
use proptest::prelude::*;

use crate::print::{hundredths, print_frames, printed};

/// A function with its callers; samples follow from the leaves of the tree.
#[derive(Clone, Debug)]
struct Tree {
    symbol: String,
    object: u8,
    /// Samples whose stack ends here.
    own: u32,
    callers: Vec<Self>,
}

impl Tree {
    fn samples(&self) -> u32 {
        self.own + self.callers.iter().map(Self::samples).sum::<u32>()
    }

    fn frames<'a>(&'a self, depth: usize, whole: u32, found: &mut Vec<Frame<'a>>) {
        let samples = self.samples();
        found.push(Frame {
            depth,
            percent_hundredths: hundredths(samples, whole),
            samples,
            symbol: &self.symbol,
            object: Some(
                ["/boot/kernel/kernel", "/boot/kernel/if_ix.ko", "/a b/c"]
                    [usize::from(self.object)],
            ),
        });
        for caller in &self.callers {
            caller.frames(depth + 1, samples, found);
        }
    }

    /// Its stacks, from the root on, each with the samples that end there.
    fn stacks(&self, called: &[&str], found: &mut Vec<(Vec<String>, u64)>) {
        let mut path = vec![self.symbol.as_str()];
        path.extend(called);
        if self.own > 0 {
            let stack = path.iter().map(|name| name.replace(';', ":")).collect();
            found.push((stack, self.own.into()));
        }
        for caller in &self.callers {
            caller.stacks(&path, found);
        }
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    // Few names, so that stacks meet; some of a kind that no kernel has.
    let symbol = prop_oneof![4 => "[a-d]", 1 => "[!-~\u{b7}]{1,20}", 1 => "0x[0-9a-f]{4}"];
    let leaf = (symbol.clone(), 0..3_u8, 1..1000_u32).prop_map(|(symbol, object, own)| Tree {
        symbol,
        object,
        own,
        callers: Vec::new(),
    });
    leaf.prop_recursive(6, 40, 4, move |inner| {
        let callers = prop::collection::vec(inner, 1..4);
        (symbol.clone(), 0..3_u8, 0..3_u32, callers).prop_map(|(symbol, object, own, callers)| {
            Tree {
                symbol,
                object,
                own,
                callers,
            }
        })
    })
}

fn sections() -> impl Strategy<Value = Vec<(String, Vec<Tree>)>> {
    let event = "[A-Za-z_][A-Za-z_.,0-9]{0,12}";
    prop::collection::vec((event, prop::collection::vec(tree(), 1..5)), 1..4)
}

fn text_of(sections: &[(String, Vec<Tree>)]) -> String {
    let mut text = String::new();
    for (event, trees) in sections {
        let samples = trees.iter().map(Tree::samples).sum();
        writeln!(text, "@ {event} [{samples} samples]\n").expect("a string takes all");
        print_frames(&mut text, samples, frames_of(trees).into_iter());
    }
    text
}

fn frames_of(trees: &[Tree]) -> Vec<Frame<'_>> {
    let samples = trees.iter().map(Tree::samples).sum();
    let mut frames = Vec::new();
    for tree in trees {
        tree.frames(0, samples, &mut frames);
    }
    frames
}

/// What FlameGraph's script says in Perl, said in Rust as literally.
fn stackcollapse(text: &str) -> String {
    let mut printed = String::new();
    let mut stack: Vec<&str> = Vec::new();
    let (mut last_count, mut last_indent) = ("", None);
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let rest =
            line[indent..].trim_start_matches(|char: char| char.is_ascii_digit() || char == '.');
        let Some((count, rest)) = rest
            .strip_prefix("%  [")
            .and_then(|rest| rest.split_once(']'))
        else {
            continue;
        };
        let Some(symbol) = rest.split_ascii_whitespace().next() else {
            continue;
        };
        if last_indent.is_some_and(|last| indent <= last) {
            print_stack(&mut printed, &stack, last_count);
        }
        stack.truncate(indent);
        stack.push(symbol);
        (last_count, last_indent) = (count, Some(indent));
    }
    print_stack(&mut printed, &stack, last_count);
    printed
}

fn print_stack(printed: &mut String, stack: &[&str], count: &str) {
    // A semicolon in a name is the one difference.
    let names: Vec<String> = stack
        .iter()
        .rev()
        .map(|name| name.replace(';', ":"))
        .collect();
    writeln!(printed, "{} {count}", names.join(";")).expect("a string takes all");
}

proptest! {
    #[test]
    fn whatever_the_bytes_they_are_read_or_refused(text: Vec<u8>, tail in "[ -~\n]{0,200}") {
        for text in [text, tail.clone().into(), format!("@ e [99 samples]\n\n99.99%  [98]  a @ b\n{tail}").into()] {
            if let Ok(graph) = CallGraph::parse(&text) {
                let folded = graph.fold(FrameNames::Symbols);
                prop_assert_eq!(folded.samples(), graph.read_samples());
                let _ = (graph.stackcollapse(), graph.truncation(None), graph.idle_share());
            }
            if let Ok(folded) = Folded::parse(&text) {
                prop_assert_eq!(folded.merged().samples(), folded.samples());
            }
        }
    }

    #[test]
    fn what_is_printed_reads_back(sections in sections()) {
        let text = text_of(&sections);
        let graph = CallGraph::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(graph.truncation(None), None);
        prop_assert_eq!(graph.sections().len(), sections.len());
        for (read, (event, trees)) in graph.sections().iter().zip(&sections) {
            prop_assert_eq!((read.event, read.samples), (event.as_str(), read.read_samples));
            prop_assert_eq!(graph.frames(read).collect::<Vec<_>>(), frames_of(trees));
        }
        prop_assert_eq!(printed(&graph), text);
    }

    #[test]
    fn folding_keeps_every_sample_at_its_stack(sections in sections()) {
        let text = text_of(&sections);
        let graph = CallGraph::parse(text.as_bytes()).unwrap();
        let mut stacks = Vec::new();
        for tree in sections.iter().flat_map(|(_, trees)| trees) {
            tree.stacks(&[], &mut stacks);
        }
        let mut expected = Folded::new();
        for (stack, samples) in &stacks {
            expected.push(stack.iter().map(String::as_str), *samples);
        }
        let folded = graph.fold(FrameNames::Symbols);
        prop_assert_eq!(&folded, &expected.merged());
        prop_assert!(folded.stacks().zip(folded.stacks().skip(1)).all(|(a, b)| a.frames().lt(b.frames())));
        prop_assert_eq!(graph.fold(FrameNames::ObjectsAndSymbols).samples(), graph.samples());

        let is_one = |name: &str| name.ends_with(['a', '0']);
        prop_assert_eq!(graph.samples_through(is_one), folded.samples_through(is_one));
        let names = |leaves: Vec<(&str, u64)>| -> Vec<(String, u64)> {
            let mut named: Vec<_> = leaves.into_iter().map(|(name, samples)| (name.replace(';', ":"), samples)).collect();
            named.sort();
            named
        };
        // Two symbols may differ in a semicolon alone.
        if !text.contains(';') {
            prop_assert_eq!(names(graph.leaf_samples()), names(folded.leaf_samples()));
        }
    }

    #[test]
    fn wherever_a_text_is_cut_it_is_told_or_all_of_it_is_there(sections in sections(), at: prop::sample::Index) {
        let text = text_of(&sections);
        let length = at.index(text.len() + 1);
        let part = &text.as_bytes()[..length];
        let header = text.find(']').unwrap() + 1;
        match CallGraph::parse(part) {
            Err(CallGraphError::NoSection) => prop_assert!(length < header),
            Err(error) => prop_assert!(false, "{}", error),
            Ok(graph) => {
                prop_assert!(length >= header);
                let truncation = graph.truncation(None);
                let has_all_samples = graph.samples() == graph.read_samples();
                prop_assert_eq!(truncation.is_none(), has_all_samples && part.ends_with(b"\n"));
                if let Some(truncation) = truncation {
                    let missing = truncation.samples - graph.read_samples();
                    prop_assert_eq!(truncation.missing_samples, missing);
                    prop_assert!((0.0..=1.0).contains(&truncation.missing_share()));
                }
                // What is there is as it was.
                let again = printed(&graph);
                let same = again.trim_end().len();
                prop_assert_eq!(&again[..same], &text[..same]);
                let Some(valid) = text.get(..length) else { return Ok(()); };
                if graph.read_samples() > 0 || graph.torn_frame().is_some() {
                    prop_assert_eq!(graph.stackcollapse().to_string(), stackcollapse(valid));
                }
            }
        }
    }

    #[test]
    fn folded_stacks_read_back(stacks in prop::collection::vec((prop::collection::vec("\\PC{0,6}|[;\n\t a-c]{0,3}", 0..5), 0..u64::MAX >> 4), 0..9)) {
        let mut folded = Folded::new();
        for (frames, samples) in &stacks {
            folded.push(frames.iter().map(String::as_str), *samples);
        }
        let text = folded.to_string();
        let back = Folded::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(&back, &folded);
        prop_assert_eq!(back.stacks().len(), stacks.len());
        let merged = folded.merged();
        prop_assert_eq!(&merged.merged(), &merged);
        prop_assert_eq!(merged.samples(), folded.samples());
        prop_assert_eq!(merged.leaf_samples(), folded.leaf_samples());
    }
}
