//! Pictures: what is in them, that they ask for nothing outside of themselves, and that no name gets out
//! of its place.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../shared/mod.rs"]
mod shared;

use fwdlab_profile::{
    Caption, CostUnit, DrawError, Folded, Width, compare_lone_profiles, compare_profiles,
    difference_graph, flame_graph,
};
use proptest::prelude::*;
use roxmltree::{Document, Node};
use shared::{folded, pair};

const CAPTION: Caption = Caption {
    title: "Forwarding",
    subtitle: Some("a box"),
};

fn drawn(stacks: &Folded) -> String {
    flame_graph(stacks, Width::Samples, CAPTION).unwrap()
}

/// A box: what it says on hover, its label, its colour and its share of the width in percent.
#[derive(Debug, PartialEq)]
struct Seen {
    title: String,
    label: String,
    fill: String,
    width: f64,
}

fn boxes(svg: &str) -> Vec<Seen> {
    let document = Document::parse(svg).unwrap();
    let frames = document
        .descendants()
        .find(|node| node.attribute("id") == Some("frames"))
        .unwrap();
    frames
        .children()
        .filter(Node::is_element)
        .map(|group| {
            let rect = group
                .children()
                .find(|child| child.tag_name().name() == "rect")
                .unwrap();
            let of = |name: &str| {
                let found = group
                    .children()
                    .find(|child| child.tag_name().name() == name);
                found
                    .and_then(|child| child.text())
                    .unwrap_or("")
                    .to_owned()
            };
            let width = rect.attribute("width").unwrap();
            Seen {
                title: of("title"),
                label: of("text"),
                fill: rect.attribute("fill").unwrap().to_owned(),
                width: width.trim_end_matches('%').parse().unwrap(),
            }
        })
        .collect()
}

fn box_of<'s>(boxes: &'s [Seen], begin: &str) -> &'s Seen {
    let found: Vec<&Seen> = boxes
        .iter()
        .filter(|seen| seen.title.starts_with(begin))
        .collect();
    let titles: Vec<String> = boxes
        .iter()
        .map(|seen| seen.title.chars().take(150).collect())
        .collect();
    assert!(
        found.len() == 1,
        "{begin:.99} is there {} times of {titles:#?}",
        found.len()
    );
    found[0]
}

#[test]
fn every_frame_is_a_box_on_its_caller() {
    let svg = drawn(&folded("rx;lookup 30\nrx;lookup;hash 10\nrx 10\ntx 50\n"));
    let boxes = boxes(&svg);
    for (begin, label, width) in [
        ("all (100 samples, 100%)", "", 100.0),
        ("rx (50 samples, 50.0 %)", "rx", 50.0),
        ("lookup (40 samples, 40.0 %)", "lookup", 40.0),
        ("hash (10 samples, 10.0 %)", "hash", 10.0),
        ("tx (50 samples, 50.0 %)", "tx", 50.0),
    ] {
        let seen = box_of(&boxes, begin);
        assert_eq!(seen.label, label);
        assert!((seen.width - width).abs() < 1e-3, "{seen:?}");
    }
    assert_eq!(boxes.len(), 5);
    assert!(svg.contains(">Forwarding</text>") && svg.contains(">a box</text>"));
    let costs = flame_graph(&folded("rx 3\ntx 1\n"), Width::NsPerPacket(50.0), CAPTION).unwrap();
    assert!(
        costs.contains("<title>rx (37.5 ns/packet, 75.0 %)"),
        "{costs}"
    );
}

/// As text, `a!` lies between `a` and `a;b`.
#[test]
fn a_caller_is_one_box_whatever_its_neighbours_are_called() {
    let boxes = boxes(&drawn(&folded(
        "a 10\na!;x 10\na;b 10\na-;y 10\na c;z 10\n",
    )));
    let seen = box_of(&boxes, "a (20 samples");
    assert!((seen.width - 40.0).abs() < 1e-3);
}

#[test]
fn a_picture_is_the_same_bytes_again_whatever_the_order_of_the_stacks() {
    let (one, other) = ("rx;a 3\nrx;b 2\ntx 1\n", "tx 1\nrx;b 2\nrx;a 1\nrx;a 2\n");
    assert_eq!(drawn(&folded(one)), drawn(&folded(one)));
    assert_eq!(drawn(&folded(one)), drawn(&folded(other)));
}

#[test]
fn a_picture_asks_for_nothing_outside_of_itself() {
    let svg = drawn(&folded("rx;lookup 30\ntx 50\n"));
    assert!(!svg.contains("<!DOCTYPE") && !svg.contains("@import") && !svg.contains("<image"));
    let document = Document::parse(&svg).unwrap();
    for node in document.descendants().filter(Node::is_element) {
        for attribute in node.attributes() {
            let name = attribute.name();
            assert!(
                !["href", "src"].contains(&name),
                "{name}={}",
                attribute.value()
            );
            let is_own =
                !attribute.value().contains("url(") || attribute.value() == "url(#background)";
            assert!(is_own, "{name}={}", attribute.value());
        }
    }
    for call in [
        "fetch(",
        "XMLHttpRequest",
        "importScripts",
        "eval(",
        "WebSocket",
    ] {
        assert!(!svg.contains(call), "{call}");
    }
}

#[test]
fn hostile_names_are_text() {
    let long = "x".repeat(10_000);
    let names = [
        "<script>alert(1)</script>",
        "]]><script>",
        "\"quoted\" 'twice' & more",
        "&lt;script&gt;",
        "kworker 5",
        "swapper 1 2",
        "# comment",
        "-",
        "--",
        "title=\"x\" \t href=y",
        "שלום\u{202e}txt.exe",
        "\u{85}\u{fffe}\u{2028}c",
        "operator()(int) const",
        " leading and trailing ",
        "ends in dots..",
        "f_[k]",
        long.as_str(),
    ];
    let mut stacks = Folded::new();
    for name in names {
        stacks.push(["rx".to_owned(), name.to_owned()], 10);
    }
    let svg = drawn(&stacks);
    let boxes = boxes(&svg);
    assert_eq!(boxes.len(), names.len() + 2);
    let of_xml =
        |char: char| matches!(char, '\n' | ' '..='\u{7e}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    assert!(svg.chars().all(of_xml));
    assert_eq!(svg.matches("<script").count(), 1);
    for begin in [
        "<script>alert(1)</script> (10 samples, 5.9 %)",
        "\"quoted\" 'twice' & more (",
        // Folded stacks have no semicolons in names.
        "&lt:script&gt: (",
        "kworker 5 (10 samples",
        "swapper 1 2 (10 samples",
        "# comment (",
        "- (",
        "-- (",
        "שלום\u{fffd}txt.exe (",
        "operator()(int) const (",
        "ends in dots.. (",
        "f_[k] (",
        &format!("{long} ("),
    ] {
        box_of(&boxes, begin);
    }
    // What a reader sees when it zooms: the name without its last parentheses.
    assert_eq!(box_of(&boxes, "f_[k] (").label, "f_[k]");
}

#[test]
fn captions_are_text_and_fit() {
    let caption = Caption {
        title: &"<b>&\u{202e} ".repeat(100),
        subtitle: Some(&"s".repeat(1000)),
    };
    let svg = flame_graph(&folded("a 1\n"), Width::Samples, caption).unwrap();
    let document = Document::parse(&svg).unwrap();
    let text = |id: &str| {
        let found = document
            .descendants()
            .find(|node| node.attribute("id") == Some(id));
        found.unwrap().text().unwrap().to_owned()
    };
    assert!(text("title").starts_with("<b>&\u{fffd} <b>") && text("title").chars().count() == 80);
    assert!(text("subtitle").ends_with('…') && text("subtitle").chars().count() == 160);
}

#[test]
fn nothing_is_no_picture() {
    for text in ["", "a 0\n"] {
        let error = flame_graph(&folded(text), Width::Samples, CAPTION).unwrap_err();
        assert_eq!(error, DrawError::Empty);
    }
}

#[test]
fn deep_stacks_are_drawn() {
    let mut stacks = Folded::new();
    stacks.push((0..2000).map(|depth| format!("f{depth}")), 10);
    assert_eq!(boxes(&drawn(&stacks)).len(), 2001);
}

#[test]
fn both_new_and_vanished_frames_are_in_the_picture_of_a_difference() {
    let off = folded("rx;lookup 200\nrx;old;copy 100\nrx 100\n");
    let on = folded("rx;lookup 200\nrx;new;copy 50\nrx 150\n");
    let pairs = [pair(&off, &on, [400.0, 400.0]); 8];
    let comparison = compare_profiles(&pairs, 0.95).unwrap();
    let draw = || difference_graph(&pairs, &comparison, CostUnit::NsPerPacket, CAPTION).unwrap();
    let svg = draw();
    assert_eq!(svg, draw());
    let boxes = boxes(&svg);
    // What the colour says has a sign and a word as well.
    let rx = box_of(&boxes, "+ rx (itself 100.0 -> 150.0 ns/packet, +50.0 ± ");
    assert!(
        rx.title.contains(", more; with callees") && rx.label == "+ rx",
        "{rx:?}"
    );
    assert!((rx.width - 100.0).abs() < 1e-3);
    assert!(
        rx.title
            .ends_with("; with callees 400.0 -> 400.0 ns/packet, no difference shown)")
    );
    let lookup = box_of(
        &boxes,
        "lookup (itself 200.0 -> 200.0 ns/packet, no difference shown)",
    );
    // `old` costs nothing itself, so that there is nothing to judge.
    let old = box_of(
        &boxes,
        "old (itself 0.0 -> 0.0 ns/packet, too few samples to judge; with callees vanished: 100.0",
    );
    assert!((old.width - 12.5).abs() < 1e-3, "{old:?}");
    let new = box_of(
        &boxes,
        "new (itself 0.0 -> 0.0 ns/packet, too few samples to judge; with callees new: 0.0 -> 50.0",
    );
    assert!((new.width - 6.25).abs() < 1e-3, "{new:?}");
    // Its colour is that of the function, its last words those of this stack.
    let copies: Vec<_> = boxes
        .iter()
        .filter(|seen| seen.title.starts_with("- copy ("))
        .collect();
    assert_eq!(copies.len(), 2);
    assert!(copies.iter().all(|copy| {
        copy.title
            .starts_with("- copy (itself 100.0 -> 50.0 ns/packet, -50.0 ± ")
    }));
    assert!(copies.iter().any(|copy| {
        copy.title
            .ends_with("; this stack vanished: 100.0 -> 0.0 ns/packet)")
    }));
    assert_eq!(copies[0].fill, copies[1].fill);
    let shade = |seen: &Seen| -> Vec<i32> {
        let rgb = seen.fill.trim_start_matches("rgb(").trim_end_matches(')');
        rgb.split(',').map(|part| part.parse().unwrap()).collect()
    };
    let (more, less, same) = (shade(rx), shade(copies[0]), shade(lookup));
    let is_orange_red = more[0] > more[1] + 50 && more[1] > more[2];
    let is_blue_green = less[1] > less[0] + 50 && less[1] > less[2] && less[2] > less[0] + 50;
    assert!(is_orange_red && is_blue_green, "{more:?} {less:?}");
    assert!((same[0] - same[2]).abs() < 10, "{same:?}");
    assert!(
        svg.contains(
            "+ orange-red: costs more, - blue-green: less, grey: no difference shown; width: mean of both<"
        )
    );
}

/// The lines below the boxes, all of which are inside the picture.
fn lines_below(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    let height: f64 = document
        .root_element()
        .attribute("height")
        .unwrap()
        .parse()
        .unwrap();
    assert!(svg.contains(&format!("viewBox=\"0 0 1200 {height}\"")));
    assert!(svg.contains(&format!(
        "width=\"100%\" height=\"{height}\" fill=\"url(#background)\""
    )));
    let details = document
        .descendants()
        .find(|node| node.attribute("id") == Some("details"));
    let details: f64 = details.unwrap().attribute("y").unwrap().parse().unwrap();
    let lines = document
        .root_element()
        .children()
        .filter(|node| node.has_tag_name("text") && node.attribute("id").is_none());
    lines
        .map(|line| {
            let y: f64 = line.attribute("y").unwrap().parse().unwrap();
            assert!(details < y && y < height, "{details} {y} {height}");
            line.text().unwrap().to_owned()
        })
        .collect()
}

#[test]
fn the_largest_differences_are_listed_where_their_boxes_are_too_narrow_for_names() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let stacks = |samples: [u64; 6]| {
        let named = names.iter().zip(samples);
        let text: String = named
            .map(|(name, samples)| format!("rx;{name}<&> {samples}\n"))
            .collect();
        folded(&(text + "rx;rest 100000\n"))
    };
    let (off, on) = (
        stacks([20, 30, 40, 50, 60, 70]),
        stacks([90, 80, 70, 90, 90, 90]),
    );
    let pairs: Vec<_> = (0..8).map(|_| pair(&off, &on, [1000.0; 2])).collect();
    let comparison = compare_profiles(&pairs, 0.95).unwrap();
    assert_eq!(comparison.notable().count(), 7);
    let svg = difference_graph(&pairs, &comparison, CostUnit::NsPerPacket, CAPTION).unwrap();
    let lines = lines_below(&svg);
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert_eq!(
        lines[0],
        "Largest differences of functions by themselves, shown to differ:"
    );
    assert!(
        lines[2].ends_with(" ns/packet  a<&>") && lines[2].contains('+'),
        "{lines:?}"
    );
}

#[test]
fn a_picture_without_differences_has_no_lines_below() {
    let stacks = folded("rx;a 100\n");
    let pairs = [pair(&stacks, &stacks, [400.0; 2]); 8];
    let comparison = compare_profiles(&pairs, 0.95).unwrap();
    let svg = difference_graph(&pairs, &comparison, CostUnit::NsPerPacket, CAPTION).unwrap();
    assert!(lines_below(&svg).is_empty());
}

#[test]
fn what_cannot_be_shown_is_said_in_the_picture() {
    let (off, on) = (folded("rx;a 100\n"), folded("rx;b 100\n"));
    let pairs = [pair(&off, &on, [400.0, 300.0]); 3];
    let comparison = compare_profiles(&pairs, 0.95).unwrap();
    let svg = difference_graph(&pairs, &comparison, CostUnit::NsPerPacket, CAPTION).unwrap();
    assert!(
        svg.contains("grey: too few blocks to show a difference (3, at least 6 are needed)"),
        "{svg}"
    );
    assert_eq!(
        lines_below(&svg),
        [
            "Largest differences of functions by themselves, not proven: too few blocks:",
            "   -400.0 ns/packet  a",
            "   +300.0 ns/packet  b",
        ]
    );
    assert!(
        box_of(&boxes(&svg), "a (")
            .title
            .contains("too few blocks to judge")
    );
    let lone = pair(&off, &on, [100.0; 2]);
    let comparison = compare_lone_profiles(lone, 0.95).unwrap();
    let svg = difference_graph(&[lone], &comparison, CostUnit::Percent, CAPTION).unwrap();
    assert!(svg.contains("; one profile each<"));
    assert!(
        box_of(
            &boxes(&svg),
            "- a (itself vanished: 100.0 -> 0.0 %, -100.0, between -100.0 and -"
        )
        .width
            > 49.9
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_the_names_there_is_a_box_for_each_node_and_the_xml_is_well_formed(
        stacks in prop::collection::vec((prop::collection::vec("\\PC{0,12}|[ab] ?[0-9.]{0,3}", 1..5), 1..50_u64), 1..12),
    ) {
        let mut folded = Folded::new();
        for (frames, samples) in &stacks {
            folded.push(frames.clone(), *samples);
        }
        let folded = folded.merged();
        let mut nodes = std::collections::BTreeSet::new();
        for stack in folded.stacks() {
            let frames: Vec<&str> = stack.frames().collect();
            nodes.extend((1..=frames.len()).map(|depth| frames[..depth].to_vec()));
        }
        let seen = boxes(&drawn(&folded));
        prop_assert_eq!(seen.len(), nodes.len() + 1);
    }
}
