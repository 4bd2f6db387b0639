//! The level of `iflib.prefetch` is in the machine code: one loop holds the instruction, the other not.
//!
//! Which of them runs at which level is counted in the test of the knobs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod rig;

use std::collections::HashMap;
use std::env;
use std::process::Command;

use fwdlab_router::Knobs;

use rig::packets::Inet;
use rig::{Rig, network};

const CRATE: &str = "fwdlab_router::";

/// An instruction: its address, and what it is.
type Instruction = (u64, String);

/// This program's functions by their names.
fn functions() -> HashMap<String, Vec<Instruction>> {
    let program = env::current_exe().unwrap();
    let mut objdump = Command::new("objdump");
    objdump.args(["--disassemble", "--demangle", "--no-show-raw-insn"]);
    let output = testkit::succeed(objdump.arg(program));
    let text = String::from_utf8_lossy(&output.stdout);
    let mut functions: HashMap<String, Vec<Instruction>> = HashMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once(" <")
            && let Some(function) = rest.strip_suffix(">:")
        {
            name = function.to_owned();
        } else if let Some((address, instruction)) = line.split_once(":\t")
            && let Ok(address) = u64::from_str_radix(address.trim(), 16)
            && name.starts_with(CRATE)
        {
            let body = functions.entry(name.clone()).or_default();
            body.push((address, instruction.to_owned()));
        }
    }
    functions
}

/// Where a function prefetches: by the instruction, or by calling a function of that name which has it.
fn prefetches(functions: &HashMap<String, Vec<Instruction>>, name: &str) -> Vec<u64> {
    let body = functions
        .get(name)
        .unwrap_or_else(|| panic!("there is no {name}; is it still a function?"));
    let is_prefetch = |instruction: &str| {
        instruction.starts_with("prefetch")
            || (instruction.starts_with("call") && instruction.contains("::prefetch>")) && {
                let callee = instruction.split_once('<').unwrap().1.trim_end_matches('>');
                let is_instruction =
                    |(_, instruction): &Instruction| instruction.starts_with("prefetcht0");
                functions[callee].iter().any(is_instruction)
            }
    };
    let places = body
        .iter()
        .filter(|(_, instruction)| is_prefetch(instruction));
    places.map(|(address, _)| *address).collect()
}

/// Whether a jump leads from behind a place back to before it.
fn is_in_a_loop(body: &[Instruction], place: u64) -> bool {
    body.iter().any(|(address, instruction)| {
        let mut words = instruction.split_whitespace();
        let is_jump = words.next().is_some_and(|word| word.starts_with('j'));
        let target = words
            .next()
            .and_then(|word| u64::from_str_radix(word, 16).ok());
        is_jump && *address >= place && target.is_some_and(|target| target <= place)
    })
}

#[test]
fn the_loops_that_prefetch_have_the_instruction_and_the_others_none() {
    if cfg!(not(target_arch = "x86_64")) {
        testkit::skip!("only x86-64 is disassembled");
    }
    testkit::require_tool!("objdump");
    // Whatever this program holds is used.
    let mut rig = Rig::new(&network(), &Knobs::default());
    assert_eq!(rig.pass(0, &Inet::default().frame(0))[1].len(), 1);

    let functions = functions();
    for (name, least) in [
        ("receive::receive_plain", 0),
        // The headers of what comes in.
        ("receive::receive_prefetching", 1),
        ("nodes::input::input_plain", 0),
        ("nodes::input::input_harvesting", 0),
        // The lookups of both families.
        ("nodes::input::input_prefetching", 2),
        ("nodes::input::input_prefetching_and_harvesting", 2),
        ("nodes::inet6::inet6_lookup_plain", 0),
        // A cell, and both ends of a run of ranges.
        ("nodes::inet6::inet6_lookup_prefetching", 3),
    ] {
        let name = format!("{CRATE}{name}");
        let places = prefetches(&functions, &name);
        if least == 0 {
            assert!(places.is_empty(), "{name} prefetches");
            continue;
        }
        assert!(
            places.len() >= least,
            "{name} has {} prefetches",
            places.len()
        );
        for place in places {
            assert!(
                is_in_a_loop(&functions[&name], place),
                "{name}: {place:x} is in no loop"
            );
        }
    }
}
