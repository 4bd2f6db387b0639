//! Writes reports of made-up runs into a folder, to be looked at: `gallery FOLDER`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use std::error::Error;
use std::path::Path;

use fwdlab_model::Stratum;
use fwdlab_report::{Report, render};
use synthetic::Synthetic;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: gallery FOLDER")?;
    let both = vec![Stratum::INET, Stratum::INET6];
    let many = |count: usize, step: f64| -> Vec<(String, f64)> {
        (0..count)
            .map(|index| {
                (
                    format!("ruleset with {} rules", index * 10),
                    -step * index as f64,
                )
            })
            .collect()
    };
    let long = "nftables with a thousand stateless rules in one chain, every one of which looks \
                at the source address and none of which ever matches";
    let unbroken =
        "net.netfilter.nf_conntrack_tcp_timeout_established_and_then_some_more_words=".repeat(3);
    let cases = [
        ("default", Synthetic::default()),
        (
            "two",
            Synthetic {
                variants: many(2, 3.0),
                control: false,
                ..Synthetic::default()
            },
        ),
        (
            "twelve",
            Synthetic {
                variants: many(12, 2.5),
                strata: both.clone(),
                sessions: 2,
                invalid: vec![(2, 1), (5, 3), (5, 4)],
                ..Synthetic::default()
            },
        ),
        (
            "wide",
            Synthetic {
                block_noise_percent: 25.0,
                strata: both,
                ..Synthetic::default()
            },
        ),
        (
            "unbounded",
            Synthetic {
                measured_blocks: 4,
                ..Synthetic::default()
            },
        ),
        (
            "tiny",
            Synthetic {
                variants: many(4, 0.02),
                block_noise_percent: 0.01,
                round_noise_percent: 0.02,
                ..Synthetic::default()
            },
        ),
        (
            "hostile",
            Synthetic {
                variants: vec![
                    (long.to_owned(), 0.0),
                    (unbroken, -60.0),
                    (
                        "<script>alert('x')</script> | `|` & \"q\"".to_owned(),
                        900.0,
                    ),
                    (format!("{long}, {long}"), -97.0),
                ],
                question: "Is `this` | <b>that</b>?".to_owned(),
                background: Some("First paragraph & <i>more</i>.\n\n# not a heading".to_owned()),
                ..Synthetic::default()
            },
        ),
        (
            "none",
            Synthetic {
                measured_blocks: 0,
                ..Synthetic::default()
            },
        ),
        (
            "one-block",
            Synthetic {
                measured_blocks: 1,
                ..Synthetic::default()
            },
        ),
        (
            "decades",
            Synthetic {
                variants: ["socket", "kernel", "XDP", "idle"]
                    .into_iter()
                    .zip([0.0, 900.0, 20_000.0, -99.0])
                    .map(|(label, effect)| (label.to_owned(), effect))
                    .collect(),
                invalid: vec![(2, 1)],
                ..Synthetic::default()
            },
        ),
        (
            "two-hundred",
            Synthetic {
                variants: many(200, 0.3),
                measured_blocks: 4,
                rounds: 2,
                ..Synthetic::default()
            },
        ),
        (
            "long-run",
            Synthetic {
                planned_blocks: 60,
                measured_blocks: 60,
                ..Synthetic::default()
            },
        ),
    ];
    for (name, case) in cases {
        let loaded = case.loaded();
        let report = Report::build(&loaded)?;
        let case_folder = Path::new(&folder).join(name);
        let derived = case_folder.join("derived");
        std::fs::create_dir_all(&derived)?;
        for (name, text) in render::derived_files(&report, &loaded)? {
            std::fs::write(derived.join(name), text)?;
        }
        std::fs::write(
            case_folder.join("README.md"),
            render::readme(&report, "derived/"),
        )?;
        let readme = case_folder.join("README.md");
        let text = render::terminal(&report, Some(&readme), 80, false);
        std::fs::write(case_folder.join("terminal.txt"), text)?;
        println!("{}", case_folder.display());
    }
    Ok(())
}
