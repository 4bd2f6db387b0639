//! pmcstat's printing, a second time: what is read is printed again and compared.

use std::fmt::Write as _;

use fwdlab_profile::{CallGraph, Frame};

/// The text of a call graph, without its torn frame.
pub(crate) fn printed(graph: &CallGraph) -> String {
    let mut text = String::new();
    for section in graph.sections() {
        writeln!(text, "@ {} [{} samples]\n", section.event, section.samples)
            .expect("a string takes all");
        print_frames(&mut text, section.samples, graph.frames(section));
    }
    text
}

/// The trees of a section, an empty line behind each.
pub(crate) fn print_frames<'a>(
    text: &mut String,
    samples: u32,
    frames: impl Iterator<Item = Frame<'a>>,
) {
    // Samples and object of what is printed, from the root on.
    let mut wholes = vec![samples];
    let mut object = None;
    for frame in frames {
        if frame.depth == 0 {
            if wholes.len() > 1 {
                text.push('\n');
            }
            object = None;
        }
        wholes.truncate(frame.depth + 1);
        let whole = wholes[wholes.len() - 1];
        let indent = " ".repeat(frame.depth);
        let percentage = if frame.samples == whole {
            "100.0".to_owned()
        } else {
            format!(
                "{:05.2}",
                100.0 * f64::from(frame.samples) / f64::from(whole)
            )
        };
        let count = format!("[{}] ", frame.samples);
        write!(
            text,
            "{indent}{percentage}%  {count:<11}{indent}{}",
            frame.symbol
        )
        .expect("a string takes all");
        if frame.object != object {
            object = frame.object;
            write!(text, " @ {}", object.unwrap_or_default()).expect("a string takes all");
        }
        text.push('\n');
        wholes.push(frame.samples);
    }
    if wholes.len() > 1 {
        text.push('\n');
    }
}

/// The percentage of a frame in hundredths, as it is printed.
pub(crate) fn hundredths(samples: u32, whole: u32) -> u16 {
    let printed = format!("{:.2}", 100.0 * f64::from(samples) / f64::from(whole));
    printed.replace('.', "").parse().expect("at most 10000")
}
