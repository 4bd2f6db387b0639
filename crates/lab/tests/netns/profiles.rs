//! Stacks sampled under the load, against what is known of it and against perf's own samples.

use std::process::{Child, Command, Stdio};

use fwdlab_lab::LabEvent;
use fwdlab_model::{AddressFamily, ProfileEvery, ProfileFault, Profiling};
use fwdlab_profile::{Folded, FrameNames, PerfScript};

use crate::rig::{experiment, forward_chain, measure, rulesets};

/// What says nothing but that other work runs on this machine.
fn is_of_the_machine(fault: &ProfileFault) -> bool {
    matches!(
        fault,
        ProfileFault::Foreign { .. }
            | ProfileFault::MissingCpu { .. }
            | ProfileFault::FewSamples { .. }
    )
}

#[test]
fn every_variants_stacks_are_sampled_and_show_what_it_does() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let rules = forward_chain(&"udp dport 5001 drop\n".repeat(20));
    let levels = [("none", ""), ("rules", rules.as_str())];
    for (every, slices) in [(ProfileEvery::Block, 1), (ProfileEvery::Trial, 2)] {
        let mut resolved = experiment(
            &[AddressFamily::Inet],
            rulesets(&levels),
            &["none", "rules"],
        );
        resolved.profiling = Some(Profiling {
            every,
            slice_ms: 200,
            frequency_hz: 1999,
        });
        let mut profiled = 0;
        let outcome = measure(&resolved, &mut |event| {
            profiled += usize::from(matches!(event, LabEvent::Profile(_)));
        })
        .unwrap();
        assert_eq!(profiled, 2 * slices);
        assert_eq!((outcome.trials.len(), outcome.slices.len()), (2, 4));
        assert_eq!(outcome.profiles.len(), 2);
        for (trial, profile) in outcome.trials.iter().zip(&outcome.profiles) {
            let record = trial.profile.as_ref().unwrap();
            assert!(record.faults.iter().all(is_of_the_machine), "{record:?}");
            assert!(
                record.time_s > 0.199 && record.pooled_pps > 0.0,
                "{record:?}"
            );
            assert!(
                record.has_kernel && record.outside_samples == 0,
                "{record:?}"
            );

            let stacks = Folded::parse(profile.folded.as_bytes()).unwrap();
            assert_eq!(stacks.samples(), record.samples);
            let through = |name: &str| stacks.samples_through(|frame| frame == name);
            assert!(through("ip_forward") > 0, "{}", profile.folded);
            let has_rules = profile.variant.as_str() == "rules";
            assert_eq!(
                through("nft_do_chain") > 0,
                has_rules,
                "{}",
                profile.variant
            );
            // The thread comes first, and the program's own functions have their names.
            assert!(
                profile.folded.contains("fwdlab_traffic::"),
                "{}",
                profile.folded
            );
        }
    }
}

/// Samples another way, of the same CPU, for so long.
fn perf_record(cpu: u32, seconds: &str, data: &str) -> Child {
    Command::new("perf")
        .args(["record", "--quiet", "-e", "cpu-clock", "-F", "1999", "-g"])
        .args(["-C", &cpu.to_string(), "-o", data])
        .args(["--", "sleep", seconds])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn the_samples_agree_with_perfs() {
    testkit::require_root!();
    testkit::require_tool!("perf");
    testkit::require_tool!("nft");
    let mut resolved = experiment(
        &[AddressFamily::Inet],
        rulesets(&[("a", ""), ("b", "")]),
        &["a", "b"],
    );
    resolved.design.rounds = 2;
    resolved.profiling = Some(Profiling {
        every: ProfileEvery::Block,
        slice_ms: 3000,
        frequency_hz: 1999,
    });
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("perf.data");
    let data = data.to_str().unwrap();
    let cpu = fwdlab_sys::online_cpus().unwrap()[0];
    let mut slices = 0;
    let mut perf = None;
    let outcome = measure(&resolved, &mut |event| {
        slices += usize::from(matches!(event, LabEvent::Slice(_)));
        // Behind the last slice both variants, which are the same, are sampled for three seconds each.
        if slices == 4 && perf.is_none() {
            perf = Some(perf_record(cpu, "4", data));
        }
    })
    .unwrap();
    assert!(perf.unwrap().wait().unwrap().success());
    let script = testkit::succeed(Command::new("perf").args(["script", "-i", data]));
    let theirs = PerfScript::read(script.stdout.as_slice(), FrameNames::Symbols, None).unwrap();
    let theirs = theirs.folded.without_idle();

    let mut ours = Folded::new();
    for profile in &outcome.profiles {
        for stack in Folded::parse(profile.folded.as_bytes()).unwrap().stacks() {
            ours.push(stack.frames().map(str::to_owned), stack.samples);
        }
    }
    let ours = ours.without_idle();
    assert!(ours.samples() > 1000 && theirs.samples() > 1000);
    // What the load calls on its way, from the outermost on: some take nearly all samples, some a tenth.
    let mut compared = 0;
    for function in [
        "net_rx_action",
        "veth_poll",
        "ip_list_rcv",
        "ip_forward",
        "ip_output",
        "__dev_queue_xmit",
        "veth_xmit",
        "ip_route_input_slow",
    ] {
        // The harness and other programs are left out of ours, and little of theirs.
        let share = |stacks: &Folded<'_>| {
            let of_load = stacks.samples_through(|frame| frame == "net_rx_action");
            let samples = stacks.samples_through(|frame| frame == function);
            (as_f64(samples) / as_f64(of_load), as_f64(of_load))
        };
        let ((ours, n), (theirs, m)) = (share(&ours), share(&theirs));
        let pooled = (ours * n + theirs * m) / (n + m);
        let error = (pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)).sqrt();
        compared += usize::from(pooled > 0.01);
        assert!(
            (ours - theirs).abs() <= 5.0 * error + 0.01,
            "{function}: {ours:.4} of {n}, {theirs:.4} of {m}, standard error {error:.4}"
        );
    }
    assert!(compared >= 5);
}

#[expect(clippy::cast_precision_loss, reason = "counts of samples are small")]
fn as_f64(count: u64) -> f64 {
    count as f64
}
