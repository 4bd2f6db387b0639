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

#[test]
fn a_log_that_ends_in_the_middle_is_found_and_one_that_was_terminated_is_not() {
    let log = without_summary(&receiver(&[OFF[2]; 30]));
    assert_eq!(
        with(RECEIVER, &log),
        ["L404\npublished RAW/bench.off.3.receiver:39: (the log ends here)"]
    );
    assert_eq!(with(RECEIVER, log + "Terminated\n"), [""; 0]);
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
    assert_eq!(with(SENDER, larger), [""; 0]);
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
