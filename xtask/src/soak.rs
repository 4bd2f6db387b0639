//! Long storms, of which the ordinary tests run a few seeded cases; mutants of the router's knobs; and what
//! only a feature builds.

use anyhow::{Result, bail};

use crate::command::{cargo, run};
use crate::fuzz::fuzz;
use crate::kernels::kernels;
use crate::mutations;

/// How often each kernel of the matrix is booted.
const KERNEL_BOOTS: &str = "20";

/// How long each fuzz target runs, in seconds.
const FUZZ_SECONDS: &str = "1200";

/// The environment variable that tells a storm its cases.
const SOAK: &str = "FWDLAB_SOAK";

/// A mount and a network namespace of its own for each storm, so that another run on this machine neither
/// disturbs it nor is disturbed: the claim of the machine and the names of namespaces are the storm's alone.
const RUNNER: &str = r#"target."cfg(all())".runner=["unshare", "--mount", "--net", "sh", "-c",
    "mount -t tmpfs none /run && ip link set lo up && exec \"$0\" \"$@\""]"#;

/// A test that goes through many cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Storm {
    option: &'static str,
    package: &'static str,
    program: &'static str,
    test: &'static str,
    /// The cases where none are asked for.
    cases: &'static str,
}

const STORMS: [Storm; 14] = [
    Storm {
        option: "--kills",
        package: "fwdlab",
        program: "interruption",
        test: "a_run_killed_at_any_moment_goes_on_to_the_same_plan",
        cases: "1..200",
    },
    Storm {
        option: "--stops",
        package: "fwdlab",
        program: "interruption",
        test: "no_accepted_slice_holds_a_time_in_which_the_run_was_stopped",
        cases: "1..30",
    },
    Storm {
        option: "--undisturbed",
        package: "fwdlab",
        program: "interruption",
        test: "undisturbed_runs_keep_their_blocks",
        cases: "1..50",
    },
    Storm {
        option: "--competition",
        package: "fwdlab",
        program: "competition",
        test: "spells_of_another_program_are_no_effect",
        cases: "1..10",
    },
    Storm {
        option: "--changes",
        package: "fwdlab",
        program: "lint",
        test: "whatever_is_changed_in_a_finished_run_is_found",
        cases: "1..2000",
    },
    Storm {
        option: "--defects",
        package: "fwdlab-netbenches",
        program: "defects",
        test: "planted_defects_are_found",
        cases: "1..40",
    },
    Storm {
        option: "--effects",
        package: "fwdlab",
        program: "faults",
        test: "whichever_effect_fails_the_run_goes_on_afterwards",
        cases: "1..",
    },
    Storm {
        option: "--profiles",
        package: "fwdlab",
        program: "profiles",
        test: "a_planted_function_is_found_and_alike_variants_seldom_differ",
        cases: "1..100",
    },
    Storm {
        option: "--operations",
        package: "fwdlab",
        program: "hosts",
        test: "faults::whichever_operation_on_a_host_fails_the_run_goes_on",
        cases: "1..",
    },
    Storm {
        option: "--boots",
        package: "fwdlab",
        program: "hosts",
        test: "faults::whichever_operation_fails_of_a_run_that_boots_the_dut_it_goes_on",
        cases: "1..",
    },
    Storm {
        option: "--restores",
        package: "fwdlab",
        program: "hosts",
        test: "faults::whichever_operation_of_a_restore_fails_the_next_puts_all_back",
        cases: "1..",
    },
    Storm {
        option: "--host-kills",
        package: "fwdlab",
        program: "hosts",
        test: "faults::runs_on_hosts_that_are_killed_at_any_moment_go_on_to_the_same_plan",
        cases: "1..50",
    },
    Storm {
        option: "--seeds",
        package: "fwdlab",
        program: "hosts",
        test: "seeds::published_experiments_are_measured_on_their_hosts_as_their_files_are_shipped",
        cases: "1..",
    },
    Storm {
        option: "--silence",
        package: "fwdlab",
        program: "hosts",
        test: "faults::a_control_plane_that_is_silent_costs_time_and_nothing_else",
        cases: "60..60",
    },
];

/// Kills and stops runs at seeded moments, on this machine and on hosts, leaves some alone, has others compete with them,
/// changes what a run left, plants defects into what others published, lets single effects of a run and single operations on a host fail, of runs, of such that boot,
/// and of restores, measures published experiments on their hosts to the end, has hosts be silent for a minute, counts how often profiles are right, and boots the matrix of
/// kernels; or judges mutants of the router.
///
/// # Errors
/// A case fails, a mutant survives, or the options are none.
pub(crate) fn soak(options: &[&str]) -> Result<()> {
    match options {
        ["--mutations"] => return mutations::judge_mutants(""),
        ["--mutations", name] => return mutations::judge_mutants(name),
        ["--kernels", boots] => return kernels(&["--boots", boots]),
        ["--fuzz", seconds] => return fuzz(&["--seconds", seconds]),
        _ => {}
    }
    for (storm, cases) in chosen(options)? {
        let program = [
            "--release",
            "--package",
            storm.package,
            "--test",
            storm.program,
        ];
        run(cargo(["test", "--config", RUNNER])
            .args(program)
            .args([storm.test, "--", "--exact", "--nocapture"])
            .env(SOAK, cases))?;
    }
    if options.is_empty() {
        kernels(&["--boots", KERNEL_BOOTS])?;
        fuzz(&["--seconds", FUZZ_SECONDS])?;
    }
    Ok(())
}

/// The storms that are asked for, each with its cases; all whole where none is.
fn chosen(options: &[&str]) -> Result<Vec<(Storm, String)>> {
    if options.is_empty() {
        return Ok(STORMS.map(|storm| (storm, storm.cases.to_owned())).into());
    }
    let mut chosen = Vec::new();
    for pair in options.chunks(2) {
        let storm = STORMS.iter().find(|storm| storm.option == pair[0]);
        let (Some(storm), Some(cases)) = (storm, pair.get(1).and_then(|cases| range(cases))) else {
            bail!(
                "soak: {}: give --kills RANGE, --stops RANGE, --undisturbed RANGE, --competition RANGE, --changes RANGE, \
                 --defects RANGE, --effects RANGE, --profiles RANGE, --operations RANGE, --boots RANGE, --restores RANGE, --host-kills RANGE, --seeds RANGE or --silence \
                 RANGE, where a range is A..B, both included, A.. or B alone for 1..B; or --kernels BOOTS; or --fuzz SECONDS; or \
                 --mutations alone, or with part of a mutation's name",
                pair.join(" ")
            );
        };
        chosen.push((*storm, cases));
    }
    Ok(chosen)
}

/// A range of cases as the tests read it.
fn range(text: &str) -> Option<String> {
    let number = |text: &str| text.parse::<usize>().ok().filter(|&number| number > 0);
    let Some((first, last)) = text.split_once("..") else {
        return Some(format!("1..{}", number(text)?));
    };
    let first = number(first)?;
    if last.is_empty() {
        return Some(format!("{first}.."));
    }
    let last = number(last).filter(|&last| last >= first)?;
    Some(format!("{first}..{last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_chosen() {
        let cases = |options: &[&str]| -> Vec<String> {
            let chosen = chosen(options).unwrap();
            chosen
                .iter()
                .map(|(storm, cases)| format!("{} {cases}", storm.option))
                .collect()
        };
        assert_eq!(
            cases(&[]),
            [
                "--kills 1..200",
                "--stops 1..30",
                "--undisturbed 1..50",
                "--competition 1..10",
                "--changes 1..2000",
                "--defects 1..40",
                "--effects 1..",
                "--profiles 1..100",
                "--operations 1..",
                "--boots 1..",
                "--restores 1..",
                "--host-kills 1..50",
                "--seeds 1..",
                "--silence 60..60",
            ]
        );
        assert_eq!(cases(&["--kills", "20"]), ["--kills 1..20"]);
        assert_eq!(
            cases(&["--effects", "7..7", "--kills", "9.."]),
            ["--effects 7..7", "--kills 9.."]
        );
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for options in [
            &["--kills"][..],
            &["--kills", "0"],
            &["--kills", "9..8"],
            &["--kills", "-3"],
            &["--kills", "1...3"],
            &["--writes", "1"],
            &["20"],
        ] {
            let error = chosen(options).unwrap_err().to_string();
            assert!(error.contains("--effects RANGE"), "{options:?}: {error}");
        }
    }
}
