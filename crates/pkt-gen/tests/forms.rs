//! Reports as every version of pkt-gen prints them, and files that look like none.

mod printed;

use fwdlab_pkt_gen::{
    Ending, Noise, PktGenError, PktGenLog, PublishedMedian, Role, Sample, published_observation,
    steady_state,
};
use proptest::prelude::*;

/// A log of a receiver with these lines of `main_thread`.
fn log(reports: &[&str]) -> PktGenLog {
    let lines = (1..)
        .zip(reports)
        .map(|(second, report)| format!("{second:03}.000000 main_thread [2786] {report}\n"));
    let text = "CMD: pkt-gen -f rx\n".to_owned() + &lines.collect::<String>();
    PktGenLog::parse(text.as_bytes()).expect("a log")
}

proptest! {
    #[test]
    fn what_pkt_gen_prints_is_read_back(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        printed::Run::of(&bytes).is_read_back();
    }
}

#[test]
fn reports_of_every_version_are_samples() {
    let of = |sample: &Sample| (sample.printed_pps, sample.packets, sample.interval_us);
    for (report, expected) in [
        ("729113 pps", (729_113, 729_113, 1_000_000)),
        ("0 pps", (0, 0, 1_000_000)),
        (
            "729113 pps (730571 pkts in 1002000 usec)",
            (729_113, 730_571, 1_002_000),
        ),
        (
            "0.000 pps (0.000 pkts 0.000 bps in 1000545 usec) 0.00 avg_batch 0 min_space",
            (0, 0, 1_000_545),
        ),
        (
            "500.000 pps (500.000 pkts 240.000 Kbps in 1000000 usec) 1.00 avg_batch",
            (500, 500, 1_000_000),
        ),
        (
            "33.000 pps (33.000 pkts 369.600 Kbps in 1001053 usec) 3.00 avg_batch",
            (33, 33, 1_001_053),
        ),
        (
            "0.000 pps (1.000 pkts 0.480 bps in 1000000000 usec) 1.00 avg_batch 7 min_space",
            (0, 1, 1_000_000_000),
        ),
        (
            "907.878 Kpps (908.221 Kpkts 435.946 Mbps in 1000378 usec) 226.66 avg_batch 0 min_space",
            (907_878, 908_221, 1_000_378),
        ),
        (
            "999.999 Kpps (1.000 Mpkts 480.000 Mbps in 1000000 usec) 2.00 avg_batch 0 min_space",
            (999_999, 1_000_000, 1_000_000),
        ),
        (
            "80.119 Mpps (80.203 Mpkts 1.313 Tbps in 1001040 usec) 511.50 avg_batch 1 min_space",
            (80_119_000, 80_203_000, 1_001_040),
        ),
        (
            "1.100 Gpps (1.100 Gpkts 528.000 Gbps in 1000000 usec) 2.00 avg_batch 0 min_space",
            (1_100_000_000, 1_100_000_000, 1_000_000),
        ),
        (
            "900.000 Kpps [avg/std 900.000 K/0.000  pps](900.000 Kpkts 432.000 Mbps in 1000000 usec) 2.95 avg_batch 2040 min_space",
            (900_000, 900_000, 1_000_000),
        ),
        (
            "0 pps [avg/std -nan /-nan  pps](0 pkts 0 bps in 1000000 usec) 0.00 avg_batch 0 min_space",
            (0, 0, 1_000_000),
        ),
        (
            "900000 pps [avg/std 881250 /72618  pps](900000 pkts 432000000 bps in 1000000 usec) 2.95 avg_batch 2040 min_space",
            (900_000, 900_000, 1_000_000),
        ),
    ] {
        let log = log(&[report]);
        assert_eq!(
            log.samples.iter().map(of).collect::<Vec<_>>(),
            [expected],
            "{report}"
        );
        assert_eq!(log.unknown, [], "{report}");
    }
}

#[test]
fn what_no_version_prints_is_no_sample_and_is_kept_with_its_line() {
    for report in [
        "900 kpps (900 kpkts in 1000000 usec)",
        "900 KPPS (900 Kpkts in 1000000 usec)",
        "900 Ppps (900 Kpkts in 1000000 usec)",
        "900 bps (900 Kpkts in 1000000 usec)",
        "900.5 Kpps (0.500 pkts in 1000000 usec)",
        "1,234 pps (1,234 pkts in 1000000 usec)",
        "1 234 pps (1234 pkts in 1000000 usec)",
        "1.234.567 pps (1234567 pkts in 1000000 usec)",
        "\"1234 pps (1234 pkts in 1000000 usec)\"",
        "1e3 pps (1000 pkts in 1000000 usec)",
        "-1 pps (1 pkts in 1000000 usec)",
        "+1 pps (1 pkts in 1000000 usec)",
        "1 pps (18446744073709551616 pkts in 1000000 usec)",
        "18446744073709551615 Kpps (1 pkts in 1000000 usec)",
        "1 pps (1 pkts in 1000000 usec) 1.00 avg_batch 0 min_space",
        "1 pps (1 pkts 480 bps in 1000000 usec) 1.00 avg_batch 0 min_space 7",
        "1 pps (1 pkts 480 bps in 1000000 usec)",
        "1 pps [avg/std 1/2 pps",
        "1 pps [avg/std 1 2 3 4 5 pps](1 pkts in 1000000 usec)",
        "1 pps (1 pkts in 1000000 msec)",
        "1 pps",
        "1 pps (1 pk",
        "",
    ] {
        let log = log(&["5 pps (5 pkts in 1000000 usec)", report]);
        assert_eq!(log.samples.len(), 1, "{report}");
        assert_eq!(log.unknown_lines, 1, "{report}");
        assert_eq!(log.unknown[0].line, 3, "{report}");
        assert!(log.unknown[0].text.ends_with(report), "{report}");
    }
}

#[test]
fn a_stall_counts_in_a_log_in_units_of_pkt_gens_own_choice() {
    let full =
        "900.000 Kpps (900.000 Kpkts 432.000 Mbps in 1000000 usec) 2.95 avg_batch 9 min_space";
    let stall = "0.000 pps (0.000 pkts 0.000 bps in 1000000 usec) 0.00 avg_batch 9 min_space";
    let mut reports = [full; 60];
    reports[30..35].fill(stall);
    let steady = steady_state(&log(&reports)).unwrap();
    assert_eq!((steady.samples, steady.stalls), (55, 5));
    assert!((steady.mean_pps() - 50.0 * 900_000.0 / 55.0).abs() < 1e-6);
}

#[test]
fn the_published_number_keeps_its_unit() {
    let published = |reports: &[&str]| {
        let lines = reports
            .iter()
            .map(|report| format!("1.0 main_thread [7] {report}\n"));
        let text = "x\n".repeat(15) + &lines.collect::<String>() + &"x\n".repeat(10);
        published_observation(text.as_bytes(), PublishedMedian::Averaged)
    };
    for (reports, expected) in [
        (
            ["900.000 Kpps (", "900.000 Kpps (", "900.000 Kpps ("],
            Some("900000"),
        ),
        (
            ["14.881 Mpps [avg/std", "14.881 Mpps", "999.999 Kpps"],
            Some("14881000"),
        ),
        (["33.000 pps (", "10.000 pps (", "1.000 Kpps ("], Some("33")),
        (
            ["1.309 Gpps (", "1.309 Gpps (", "1.309 Gpps ("],
            Some("1.309e+09"),
        ),
        (["900 kpps (", "900 kpps (", "900 kpps ("], None),
    ] {
        assert_eq!(published(&reports).as_deref(), expected, "{reports:?}");
    }
}

#[test]
fn the_first_version_prints_rates_alone_and_no_time() {
    let text = "\
Receiving from ix0: 8 queues, 1 threads and 1 cpus.
main [733] Wait 2 secs for phy reset
main [735] Ready...
receiver_body [480] waiting for initial packets, poll returns 0 0
main [846] 0 pps
main [846] 14200500 pps
main [846] 14200000 pps
Received 28400500 packets, in 2.00 seconds.
Speed: 14.20Mpps.
";
    let log = PktGenLog::parse(text.as_bytes()).unwrap();
    assert_eq!((log.role, log.ending), (Role::Receiver, Ending::Finished));
    let samples: Vec<_> = log
        .samples
        .iter()
        .map(|sample| (sample.end_us, sample.packets))
        .collect();
    assert_eq!(
        samples,
        [(0, 0), (1_000_000, 14_200_500), (2_000_000, 14_200_000)]
    );
    assert_eq!(log.unknown, []);
    let summary = log.summary.unwrap();
    assert_eq!(
        (summary.packets, summary.packet_size_bytes),
        (28_400_500, None)
    );
    let speed = summary.speed.unwrap();
    assert_eq!(
        (speed.packets_per_second, speed.bits_per_second),
        (14.2e6, None)
    );
}

#[test]
fn rates_alone_go_by_the_clock() {
    let text = "CMD: pkt-gen -f rx -T 2000\n\
        999.000000 main [846] 500 pps\n001.500000 main [846] 400 pps\n001.500000 main [846] 400 pps\n";
    let log = PktGenLog::parse(text.as_bytes()).unwrap();
    let samples: Vec<_> = log
        .samples
        .iter()
        .map(|of| (of.end_us, of.interval_us, of.packets))
        .collect();
    let expected = [
        (0, 2_000_000, 1000),
        (2_500_000, 2_500_000, 1000),
        (2_500_000, 2_000_000, 800),
    ];
    assert_eq!(samples, expected);
}

/// The command of a log with such a line.
fn command(line: &str) -> &'static str {
    if line.contains("sender_body") || line.starts_with("Sent") {
        "CMD: pkt-gen -f tx\n"
    } else {
        "CMD: pkt-gen\n"
    }
}

#[test]
fn summaries_say_what_their_version_says() {
    for (text, packets, size_bytes, duration_s, bits) in [
        (
            "Received 7 packets, in 1.50 seconds.\nSpeed: 4.67 pps\n",
            7,
            None,
            Some(1.5),
            None,
        ),
        (
            "Sent 7 packets, 60 bytes each, in 1.50 seconds.\nSpeed: 4.67\0pps. Bandwidth: 2.24Kbps.\n",
            7,
            Some(60),
            Some(1.5),
            Some(2240.0),
        ),
        // `tx_output` of `apps/pkt-gen/pkt-gen.c` says no more where there were no packets.
        ("Received nothing.\n", 0, None, None, None),
        ("Sent nothing.\n", 0, None, None, None),
    ] {
        let log = PktGenLog::parse(format!("{}{text}", command(text)).as_bytes()).unwrap();
        assert_eq!(
            (log.unknown, log.ending),
            (vec![], Ending::Finished),
            "{text}"
        );
        let summary = log.summary.unwrap();
        assert_eq!(
            (
                summary.packets,
                summary.packet_size_bytes,
                summary.duration_s
            ),
            (packets, size_bytes, duration_s)
        );
        assert_eq!(
            summary.speed.and_then(|speed| speed.bits_per_second),
            bits,
            "{text}"
        );
    }
}

#[test]
fn what_pkt_gen_and_others_say_besides_is_known() {
    for (line, noise) in [
        (
            "443.502090 sender_body [1244] poll error/timeout on queue 0: Success",
            Noise::PollTimeout,
        ),
        (
            "443.502090 sender_body [1244] poll error on queue 0: timeout",
            Noise::PollTimeout,
        ),
        (
            "443.502090 sender_body [1244] poll error on 3 ring 0-3",
            Noise::PollError,
        ),
        (
            "443.502090 rxseq_body [2000] Sequence GAP: exp 7 found 9",
            Noise::Sequence,
        ),
        (
            "443.502090 main [3000] Unable to open netmap:ix9: Device not configured",
            Noise::Complaint,
        ),
        ("443.502090 main [3000] aborting", Noise::Complaint),
        // netmap, `apps/pkt-gen/pkt-gen.c`: `main`, `parse_nmr_config`.
        (
            "443.502090 main [3146] pkt_size (9000) must be <= mtu (1500)",
            Noise::Complaint,
        ),
        (
            "443.502090 parse_nmr_config [560] ignored config: 7",
            Noise::Complaint,
        ),
        (
            "ring 0x7f1b cur     3 [buf   1234 flags 0x0000 len    60]",
            Noise::PacketDump,
        ),
        (
            "    0: ff ff ff ff ff ff 00 25 90 91 14 0a 08 00 45 10 .......%......E.",
            Noise::PacketDump,
        ),
        ("ix0: link state changed to UP", Noise::Kernel),
        ("[ 1234.567890] e1000e: eth0 NIC Link is Up", Noise::Kernel),
        (
            "443.502090 [ 835] netmap_attach             success for ix0",
            Noise::Kernel,
        ),
        (
            "Nov 27 20:00:00 bigone kernel: ix0: link state changed to UP",
            Noise::Kernel,
        ),
        (
            "Warning: Permanently added '10.0.0.1' (ED25519) to the list of known hosts.",
            Noise::Ssh,
        ),
    ] {
        let log = PktGenLog::parse(format!("{}{line}\n", command(line)).as_bytes()).unwrap();
        assert_eq!(log.unknown, [], "{line}");
        assert_eq!(log.noise.get(&noise), Some(&1), "{line}");
    }
    for line in [
        "398.212350 sender_body [1676] drop copy",
        "1.000000 sigint_h [700] received control-C on thread 0x800e1d000",
        "1.000000 extract_ip_range [90] 10.0.0.1 starts at 10.0.0.1",
        "1.000000 tap_alloc [90] /dev/tap0 open successful",
        "1.000000 main [90]    TX0 at offset 0x1000 slots 512",
        "sender_body [480] start",
    ] {
        let log = PktGenLog::parse(format!("CMD: pkt-gen -f tx\n{line}\n").as_bytes()).unwrap();
        assert_eq!((log.unknown, log.setup_lines), (vec![], 1), "{line}");
    }
}

const REPORT: &str = "1.000000 main_thread [1] 900.000 Kpps (900.000 Kpkts 432.000 Mbps in 1000000 usec) 2.95 avg_batch 0 min_space";

#[test]
fn files_of_every_kind_are_read_or_refused() {
    let text = format!("CMD: pkt-gen -f rx\n{REPORT}\n");
    let utf16 = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        "\u{feff}"
            .encode_utf16()
            .chain(text.encode_utf16())
            .flat_map(bytes)
            .collect()
    };
    let samples_and_unknown =
        |bytes: &[u8]| PktGenLog::parse(bytes).map(|log| (log.samples.len(), log.unknown_lines));
    for (what, bytes, expected) in [
        ("plain", text.clone().into_bytes(), Ok((1, 0))),
        (
            "a byte order mark",
            format!("\u{feff}{text}").into_bytes(),
            Ok((1, 0)),
        ),
        (
            "carriage returns",
            text.replace('\n', "\r\n").into_bytes(),
            Ok((1, 0)),
        ),
        (
            "no newline at the end",
            text.trim_end().as_bytes().to_vec(),
            Ok((1, 0)),
        ),
        (
            "a line cut at the end",
            text.as_bytes()[..text.len() - 20].to_vec(),
            Ok((0, 1)),
        ),
        (
            "NUL in a line",
            text.replace("Kpps", "K\0pps").into_bytes(),
            Ok((0, 1)),
        ),
        (
            "a block of NUL",
            format!("{text}{}", "\0".repeat(4096)).into_bytes(),
            Ok((1, 1)),
        ),
        (
            "empty lines",
            format!("\n \n{text}\n\t\n").into_bytes(),
            Ok((1, 0)),
        ),
        (
            "a line of a million words",
            format!("{text}{}\n", "pps (".repeat(1_000_000)).into_bytes(),
            Ok((1, 1)),
        ),
        (
            "a report of a million words",
            format!("{text}{REPORT}{}\n", " 1".repeat(1_000_000)).into_bytes(),
            Ok((1, 1)),
        ),
        (
            "little-endian UTF-16",
            utf16(&text, u16::to_le_bytes),
            Err(PktGenError::Utf16),
        ),
        (
            "big-endian UTF-16",
            utf16(&text, u16::to_be_bytes),
            Err(PktGenError::Utf16),
        ),
        ("nothing", vec![], Err(PktGenError::Empty)),
        (
            "a mark and nothing",
            "\u{feff}".as_bytes().to_vec(),
            Err(PktGenError::Empty),
        ),
        ("one line", b"CMD: pkt-gen -f rx".to_vec(), Ok((0, 0))),
    ] {
        assert_eq!(samples_and_unknown(&bytes), expected, "{what}");
    }
}

#[test]
fn of_lines_that_nobody_knows_the_first_are_kept_and_all_are_counted() {
    let log = PktGenLog::parse(
        format!("{REPORT}\nCMD: pkt-gen\n{}", "\u{e9}\n".repeat(100_000)).as_bytes(),
    )
    .unwrap();
    assert_eq!((log.unknown_lines, log.unknown.len()), (100_000, 20));
    assert_eq!(log.unknown[19].line, 22);
    let log =
        PktGenLog::parse(format!("CMD: pkt-gen\n{}", "\u{e9}".repeat(100_000)).as_bytes()).unwrap();
    assert_eq!(log.unknown[0].text.chars().count(), 200);
}
