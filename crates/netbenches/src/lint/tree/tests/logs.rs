use fwdlab_pkt_gen::{PublishedMedian, published_observation};

use crate::lint::tree::sample::{OFF, OFFERED_PPS, ON, Sample, receiver, sender};

const RECEIVER: &str = "RAW/bench.off.3.receiver";
const SENDER: &str = "RAW/bench.off.3.sender";

/// The third run of `off` with another log.
fn with(name: &str, log: impl AsRef<[u8]>) -> Vec<String> {
    let sample = Sample::sound();
    sample.write(name, log);
    sample.found()
}

/// The same without what stands above the last lines.
fn without_summary(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[..lines.len() - 2].join("\n") + "\n"
}

#[test]
fn a_load_that_holds_the_rate_is_found() {
    let sample = Sample::sound();
    for (run, rate) in ON.iter().enumerate() {
        let offered = rate * 1005 / 1000;
        sample.write(&format!("RAW/bench.on.{}.sender", run + 1), sender(offered));
        sample.write(
            &format!("RAW/bench.off.{}.sender", run + 1),
            sender(ON[run]),
        );
    }
    let found = sample.found();
    assert_eq!(
        found,
        ["L402\n\
          published RAW/bench.on.1.receiver: 1103000 pps forwarded\n\
          derived RAW/bench.on.1.sender: 1108515 pps offered"]
    );
}

/// The third run of `off`, published as its log gives it, with the sentences.
fn sentences(log: &str) -> Vec<String> {
    let sample = Sample::sound();
    sample.write(RECEIVER, log);
    let findings = sample.lint().into_iter();
    let shown = findings.map(|finding| format!("{} {}", finding.rule.code, finding.sentence));
    shown.collect()
}

#[test]
fn a_log_that_ends_in_the_middle_is_found_and_one_that_was_terminated_is_not() {
    let log = without_summary(&receiver(&[OFF[2]; 24]));
    assert_eq!(
        with(RECEIVER, &log),
        ["L404\npublished RAW/bench.off.3.receiver:33: (the log ends here)"]
    );
    assert_eq!(
        sentences(&log),
        [
            "L404 RAW/bench.off.3.receiver ends without a word on how, 6 s before the load, and the archive's script \
             makes 1003000 of it"
        ]
    );
    assert_eq!(with(RECEIVER, log + "Terminated\n"), [""; 0]);
}

#[test]
fn a_log_that_covers_the_load_to_within_seconds_is_whole_whatever_its_end() {
    for seconds in [26, 30, 33] {
        let log = without_summary(&receiver(&vec![OFF[2]; seconds]));
        assert_eq!(with(RECEIVER, log), [""; 0], "{seconds}");
    }
    // The load begins behind silence and what trickles in, which cover none of it.
    let mut rates = vec![OFF[2]; 30];
    rates[..8].copy_from_slice(&[0, 0, 3, 0, 0, 2, 0, 0]);
    let found = with(RECEIVER, without_summary(&receiver(&rates)));
    assert!(
        found.iter().any(|found| found.starts_with("L404")),
        "{found:?}"
    );
    // Without a whole log of the sender nobody knows how long the load was.
    let sample = Sample::sound();
    sample.write(RECEIVER, without_summary(&receiver(&[OFF[2]; 30])));
    sample.write(SENDER, without_summary(&sender(OFFERED_PPS)));
    let found = sample.found();
    assert_eq!(
        found,
        ["L404\npublished RAW/bench.off.3.receiver:39: (the log ends here)"]
    );
}

#[test]
fn a_run_in_which_next_to_no_frame_arrived_is_found() {
    let mut rates = [0; 30];
    rates[..2].fill(OFF[2]);
    let mut few = [0; 30];
    few.iter_mut().step_by(4).for_each(|rate| *rate = 2);
    for (rates, says, sentence) in [
        (
            rates,
            "29 samples of 0 pps",
            "frames arrived in no more than 2 of 31 samples",
        ),
        (
            few,
            "16 frames",
            "16 frames arrived of the 90000000 that were sent",
        ),
    ] {
        let sample = Sample::sound();
        sample.write(RECEIVER, receiver(&rates));
        let values = published_of(&sample);
        sample.publish(&[("off", &values), ("on", &ON)]);
        assert_eq!(
            sample.found(),
            [format!("L405\npublished RAW/bench.off.3.receiver: {says}")]
        );
        let found = sample.lint();
        assert_eq!(
            found[0].sentence,
            format!("RAW/bench.off.3.receiver: {sentence}")
        );
    }
}

/// What the logs of `off` give.
fn published_of(sample: &Sample) -> Vec<u64> {
    let logs = (1..=5).map(|run| format!("RAW/bench.off.{run}.receiver"));
    let given = logs.filter_map(|log| {
        let log = std::fs::read(sample.path(&log)).unwrap();
        published_observation(&log, PublishedMedian::Averaged)
    });
    given.map(|value| value.parse().unwrap()).collect()
}

#[test]
fn a_device_that_stops_before_the_load_does_is_found() {
    let mut rates = [OFF[2]; 30];
    rates[18..].fill(0);
    assert_eq!(
        sentences(&receiver(&rates)),
        [
            "L406 RAW/bench.off.3.receiver: the last 12 s of the load, in which no frame arrived, are left out, so that \
             the archive's script makes 1003000 of it; over all of its time the rate is 1003000 pps"
        ]
    );
}

#[test]
fn a_run_in_which_no_frame_arrived_is_found() {
    let sample = Sample::sound();
    sample.write(RECEIVER, receiver(&[0; 30]));
    sample.publish(&[("off", &[OFF[0], OFF[1], OFF[3], OFF[4]]), ("on", &ON)]);
    assert_eq!(
        sample.found(),
        ["L405\npublished RAW/bench.off.3.receiver: 31 samples of 0 pps"]
    );
}

#[test]
fn a_stall_is_found_and_silence_before_and_after_is_not() {
    let mut rates = [OFF[2]; 30];
    rates[20] = 0;
    assert_eq!(
        with(RECEIVER, receiver(&rates)),
        ["L406\npublished RAW/bench.off.3.receiver:30: 0 pps"]
    );
    let mut rates = [OFF[2]; 30];
    rates[..2].fill(0);
    rates[28..].fill(0);
    assert_eq!(with(RECEIVER, receiver(&rates)), [""; 0]);
}

#[test]
fn a_run_that_was_offered_less_is_found() {
    assert_eq!(
        with(SENDER, sender(OFFERED_PPS / 2)),
        ["L407\n\
          published RAW/bench.off.3.sender: 1500000 pps\n\
          derived : median 3000000 pps"]
    );
    assert_eq!(with(SENDER, sender(OFFERED_PPS / 100 * 97)), [""; 0]);
    // Larger frames are sent more slowly.
    let larger = sender(OFFERED_PPS / 2).replace("-l 60", "-l 1500");
    let found = with(SENDER, larger);
    assert!(
        found.iter().all(|found| found.starts_with("L413")),
        "{found:?}"
    );
    // The profiler slows the device, and the sender with it where it waits for its link.
    let sample = Sample::sound();
    sample.write(SENDER, sender(OFFERED_PPS / 2));
    sample.write("RAW/bench.off.3.pmc.stack", "ip_input 3\n");
    assert_eq!(sample.found(), [""; 0]);
}

/// A sender's log that was asked for a load.
fn asked(asked_pps: u64, offered_pps: u64) -> String {
    sender(offered_pps).replace(" -l 60", &format!(" -l 60 -R {asked_pps}"))
}

#[test]
fn what_was_offered_is_compared_with_what_was_asked_for() {
    // A small load was asked for, and nothing is compared with a larger one.
    let sample = Sample::sound();
    sample.remove("README.md");
    for run in 1..=5 {
        sample.write(
            &format!("RAW/bench.on.{run}.sender"),
            asked(1_500_000, 1_490_000),
        );
    }
    sample.write("RAW/bench.off.3.sender", asked(2_000_000, 1_990_000));
    assert_eq!(sample.found(), [""; 0]);
    // One run of these was offered less.
    sample.write("RAW/bench.on.4.sender", asked(1_500_000, 1_350_000));
    assert_eq!(
        sample.found(),
        ["L407\n\
          published RAW/bench.on.4.sender: 1350000 pps\n\
          derived : 1500000 pps, -R of all senders"]
    );
    assert_eq!(
        sample.lint()[0].sentence,
        "run 4 of on was offered 1350000 pps, 90 % of what its senders were asked for"
    );
    // More than the line gives was asked for: nothing is short of it.
    for run in 1..=5 {
        for key in ["off", "on"] {
            let log = asked(20_000_000, OFFERED_PPS);
            sample.write(&format!("RAW/bench.{key}.{run}.sender"), log);
        }
    }
    assert_eq!(sample.found(), [""; 0]);
    sample.write(SENDER, asked(20_000_000, OFFERED_PPS / 2));
    assert_eq!(
        sample.found(),
        ["L407\n\
          published RAW/bench.off.3.sender: 1500000 pps\n\
          derived : median 3000000 pps"]
    );
}

#[test]
fn several_senders_are_compared_with_what_all_of_them_were_asked_for() {
    let sample = Sample::sound();
    for key in ["off", "on"] {
        for run in 1..=5 {
            let name = format!("RAW/bench.{key}.{run}.sender");
            sample.write(&name, asked(1_000_000, 1_000_000));
            sample.write(&format!("{name}_2"), asked(500_000, 500_000));
        }
    }
    assert_eq!(sample.found(), [""; 0]);
    sample.write("RAW/bench.off.3.sender_2", asked(500_000, 250_000));
    assert_eq!(
        sample.found(),
        ["L407\n\
          published RAW/bench.off.3.sender: 1250000 pps\n\
          published RAW/bench.off.3.sender_2: 1250000 pps\n\
          derived : 1500000 pps, -R of all senders"]
    );
}

#[test]
fn a_variant_with_other_frames_is_found_unless_its_name_says_so() {
    let larger = |sample: &Sample, key: &str| {
        for run in 1..=5 {
            let log = sender(OFFERED_PPS).replace("-l 60", "-l 124");
            let log = log.replace("60 bytes each", "124 bytes each");
            sample.write(&format!("RAW/bench.{key}.{run}.sender"), log);
        }
    };
    let sample = Sample::sound();
    larger(&sample, "on");
    let found = sample.found();
    assert_eq!(
        found,
        ["L413\n\
          published RAW/bench.on.1.sender: -l 124\n\
          derived RAW/bench.off.1.sender: -l 60"]
    );
    let sample = Sample::sound();
    sample.measure("off.128", &OFF);
    larger(&sample, "off.128");
    assert_eq!(sample.found(), [""; 0]);
    // The command and what it did are two accounts.
    let log = sender(OFFERED_PPS).replace("60 bytes each", "124 bytes each");
    assert_eq!(
        with(SENDER, log),
        ["L413\npublished RAW/bench.off.3.sender: -l 60, 124 bytes each"]
    );
}

#[test]
fn a_variant_with_other_flows_is_found_unless_its_name_says_so() {
    let fewer = |sample: &Sample, key: &str| {
        for run in 1..=5 {
            let log = sender(OFFERED_PPS).replace("-198.18.10.100", "-198.18.10.5");
            sample.write(&format!("RAW/bench.{key}.{run}.sender"), log);
        }
    };
    let sample = Sample::sound();
    fewer(&sample, "on");
    assert_eq!(
        sample.found(),
        ["L413\n\
          published RAW/bench.on.1.sender: 100 flows\n\
          derived RAW/bench.off.1.sender: 2000 flows"]
    );
    assert_eq!(
        sample.lint()[0].sentence,
        "on was sent 100 flows, and the variants beside it 2000 flows"
    );
    let sample = Sample::sound();
    sample.measure("off.100", &OFF);
    fewer(&sample, "off.100");
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn a_log_under_the_names_of_two_runs_is_found() {
    let sample = Sample::sound();
    sample.copy(RECEIVER, "RAW/bench.off.2.receiver");
    sample.publish(&[
        ("off", &[OFF[0], OFF[2], OFF[2], OFF[3], OFF[4]]),
        ("on", &ON),
    ]);
    assert_eq!(
        sample.found(),
        ["L211\n\
          published RAW/bench.off.2.receiver: run 2 of off\n\
          published RAW/bench.off.3.receiver: run 3 of off"]
    );
    // A variant as a whole under a clearer name, and a copy beside the profile.
    let sample = Sample::sound();
    for run in 1..=5 {
        let name = |key: &str| format!("RAW/bench.{key}.{run}.receiver");
        sample.copy(&name("off"), &name("off_default"));
        let name = |key: &str| format!("RAW/bench.{key}.{run}.sender");
        sample.copy(&name("off"), &name("off_default"));
    }
    sample.write("PMC/note.txt", "");
    sample.copy("RAW/bench.off.1.receiver", "PMC/bench.off.1.receiver");
    sample.remove("PMC/note.txt");
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn a_senders_log_in_the_place_of_the_receivers_is_called_what_it_is() {
    for (name, log, says) in [
        (
            RECEIVER,
            sender(OFFERED_PPS),
            "receiver is no receiver's log: it holds the log of a sender",
        ),
        (
            SENDER,
            receiver(&[OFF[2]; 30]),
            "sender is no sender's log: it holds the log of a receiver",
        ),
    ] {
        let sample = Sample::sound();
        sample.write(name, log);
        let found = sample.lint();
        let wrong: Vec<_> = found
            .iter()
            .filter(|finding| finding.rule.code == "L902")
            .collect();
        assert_eq!(wrong.len(), 1, "{found:?}");
        assert!(wrong[0].sentence.ends_with(says), "{wrong:?}");
        assert_eq!(wrong[0].evidence[0].line, Some(1));
    }
}

#[test]
fn exchanged_descriptions_are_found() {
    let found = |off: &str, on: &str| {
        let sample = Sample::sound();
        sample.write("RAW/bench.off.info", off);
        sample.write("RAW/bench.on.info", on);
        sample.found()
    };
    let info = |set: &str| format!("IMAGE=\"\" CFG=\"{set}\" PKTGEN=\"\" UNAME=\"\"\n");
    assert_eq!(
        found(&info("on"), &info("off")),
        [
            "L212\npublished RAW/bench.off.info: on\nderived RAW/bench.on.info: off",
            "L212\npublished RAW/bench.on.info: off\nderived RAW/bench.off.info: on",
        ]
    );
    // Runs are also renamed to be clearer, and a bench's script adds what the name leaves out.
    assert_eq!(found(&info("0"), &info("1")), [""; 0]);
    let old = |image: &str, set: &str| {
        format!("Image: /images/BSDRP-{image}-upgrade-amd64.img.xz\nCFG: fast/configs/{set}\n")
    };
    let sample = Sample::sound();
    for (key, image) in [("280829.pf", "280829"), ("291000.pf", "291000")] {
        sample.measure(key, &OFF);
        sample.write(&format!("RAW/bench.{key}.info"), old(image, "pf"));
    }
    assert_eq!(sample.found(), [""; 0]);
    sample.write("RAW/bench.280829.pf.info", old("291000", "pf"));
    sample.write("RAW/bench.291000.pf.info", old("280829", "pf"));
    let found: Vec<String> = sample
        .lint()
        .into_iter()
        .map(|found| found.sentence)
        .collect();
    assert_eq!(
        found[0],
        "RAW/bench.280829.pf.info says that it is of BSDRP-291000-upgrade-amd64.img.xz.pf, as 291000.pf is named, and \
         not of 280829.pf"
    );
    assert_eq!(found.len(), 2);
}

#[test]
fn a_run_without_a_senders_log_is_found() {
    let sample = Sample::sound();
    sample.remove(SENDER);
    assert_eq!(
        sample.found(),
        ["L408\npublished RAW/bench.off.3.receiver: run of off"]
    );
}

#[test]
fn a_receiver_that_failed_is_found() {
    let log = without_summary(&receiver(&[OFF[2]; 30]))
        + "130.100000 main_thread [2798] ouch, thread 0 exited with error\nTerminated\n";
    assert_eq!(
        with(RECEIVER, log),
        ["L409\npublished RAW/bench.off.3.receiver: a thread of pkt-gen exited with an error"]
    );
}

#[test]
fn a_sender_that_sent_less_than_it_was_asked_for_is_found() {
    let log = sender(OFFERED_PPS);
    let asked = log.replace("-n 90000000", "-n 95000000");
    assert_eq!(
        with(SENDER, &asked),
        ["L410\npublished RAW/bench.off.3.sender: Sent 90000000 packets, -n 95000000"]
    );
    for endless in [
        log.replace("-n 90000000", "-n 0"),
        log.replace("-n 90000000 ", ""),
        without_summary(&asked) + "Terminated\n",
    ] {
        assert_eq!(with(SENDER, endless), [""; 0]);
    }
}

#[test]
fn several_senders_offer_what_they_offer_together() {
    let sample = Sample::sound();
    for key in ["off", "on"] {
        for run in 1..=5 {
            let name = format!("RAW/bench.{key}.{run}.sender");
            sample.write(&name, sender(OFFERED_PPS / 2));
            sample.write(&format!("{name}_2"), sender(OFFERED_PPS / 2));
        }
    }
    assert_eq!(sample.found(), [""; 0]);
    sample.write("RAW/bench.off.3.sender_2", sender(OFFERED_PPS / 4));
    assert_eq!(
        sample.found(),
        ["L407\n\
          published RAW/bench.off.3.sender: 2250000 pps\n\
          published RAW/bench.off.3.sender_2: 2250000 pps\n\
          derived : median 3000000 pps"]
    );
}

#[test]
fn runs_that_were_measured_to_be_profiled_are_not_judged() {
    let sample = Sample::sound();
    let mut rates = [700_000; 30];
    rates[20] = 0;
    sample.write("PMC/bench.off.1.receiver", receiver(&rates));
    sample.write("PMC/bench.off.1.sender", sender(OFFERED_PPS / 2));
    sample.write(
        "PMC/bench.on.1.receiver",
        without_summary(&receiver(&[0; 30])),
    );
    assert_eq!(sample.found(), [""; 0]);
}

#[test]
fn a_sender_that_ended_while_another_went_on_is_found_and_their_sum_is_not_known() {
    let sample = Sample::sound();
    for key in ["off", "on"] {
        for run in 1..=5 {
            let name = format!("RAW/bench.{key}.{run}.sender");
            sample.write(&name, sender(OFFERED_PPS / 2));
            sample.write(&format!("{name}_2"), sender(OFFERED_PPS / 2));
        }
    }
    let ended = |seconds: usize| {
        let mut rates = [OFFERED_PPS / 2; 30];
        rates[seconds..].fill(0);
        receiver(&rates)
            .replace("-f rx -i ix1", "-f tx -i ix0")
            .replace("Received", "Sent")
    };
    sample.write("RAW/bench.off.3.sender_2", ended(25));
    assert_eq!(sample.found(), [""; 0]);
    sample.write("RAW/bench.off.3.sender_2", ended(15));
    assert_eq!(
        sample.found(),
        ["L410\npublished RAW/bench.off.3.sender_2: 14 s of load"]
    );
}

#[test]
fn a_run_that_forwarded_more_than_was_offered_is_found() {
    let log = |rate: u64| {
        let sample = Sample::sound();
        for (key, rates) in [("off", OFF), ("on", ON)] {
            for (run, offered) in (1..).zip(rates) {
                let offered = if (key, run) == ("off", 3) {
                    rate
                } else {
                    2 * offered
                };
                sample.write(&format!("RAW/bench.{key}.{run}.sender"), sender(offered));
            }
        }
        sample
            .found()
            .into_iter()
            .filter(|found| found.starts_with("L408"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        log(900_000),
        ["L408\n\
          published RAW/bench.off.3.receiver: 1003000 pps forwarded\n\
          derived RAW/bench.off.3.sender: 900000 pps offered"]
    );
    assert_eq!(log(OFF[2]), [""; 0]);
}

#[test]
fn a_report_that_no_port_can_give_is_in_no_number() {
    let sample = Sample::sound();
    let report = "main_thread [2786] 1000000000000000 pps (1000000000000000 pkts 1 bps in 1000000 usec) 2.95 avg_batch 1 min_space";
    sample.edit(SENDER, |log| {
        let mut lines: Vec<&str> = log.lines().collect();
        let (stamp, _) = lines[23].split_once(' ').unwrap();
        let line = format!("{stamp} {report}");
        lines[23] = &line;
        lines.join("\n") + "\n"
    });
    let found = sample.found();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("L412\npublished RAW/bench.off.3.sender:24: "));
    assert!(found[0].ends_with(report), "{found:?}");
}
