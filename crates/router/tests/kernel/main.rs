//! The same frames through this router and through the Linux kernel: what comes out is the same, or differs
//! for a reason that stands here.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cases;
mod differences;
mod linux;
#[path = "../rig/mod.rs"]
mod rig;

use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_router::{Knobs, NetworkConfig};
use fwdlab_sys::{NetworkNamespace, PinnedThread};

use cases::{Case, cases, config, late_cases};
use differences::{Reason, explained};
use linux::{Linux, Sent, is_inet, without_padding};
use rig::Rig;

/// The kernels that are known to have every reason; others may have changed their minds.
const KNOWN_KERNELS: &str = "6.18.";
/// How long Linux may take to find that neighbours do not answer.
const NEIGHBOUR_WAIT: Duration = Duration::from_secs(30);

#[test]
fn the_router_does_what_linux_does_or_there_is_a_reason() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let namespace = NetworkNamespace::create("kernel").unwrap();
    namespace.run(compare).unwrap();
}

fn compare() {
    // What Linux makes of a frame is made on the CPU that sends it, so that everything has its order.
    let _cpu = PinnedThread::to_cpu(fwdlab_sys::online_cpus().unwrap()[0]).unwrap();
    let config = config();
    let mut linux = Linux::set_up(&config);
    let mut router = Router::new(&config);
    let mut comparison = Comparison::default();
    for case in cases() {
        let theirs = linux.pass(case.port, &case.frame);
        comparison.add(&case, &router.pass(&case), &theirs);
    }
    let late = late_cases();
    for (case, theirs) in late.iter().zip(late_answers(&mut linux, &late)) {
        comparison.add(case, &router.pass(case), &theirs);
    }
    comparison.judge();
}

struct Router {
    rig: Rig,
}

impl Router {
    fn new(config: &NetworkConfig) -> Self {
        Self {
            rig: Rig::new(config, &Knobs::default()),
        }
    }

    fn pass(&mut self, case: &Case) -> Sent {
        // So that no error is over the limit.
        self.rig.now_ns += 1_000_000_000;
        self.rig
            .pass(case.port, &case.frame)
            .map(|sent| sent.iter().map(|frame| without_padding(frame)).collect())
    }
}

/// What comes of each when its neighbour is given up.
fn late_answers(linux: &mut Linux, cases: &[Case]) -> Vec<Sent> {
    for case in cases {
        linux.send(case.port, &case.frame);
    }
    let mut sent = Sent::default();
    let start = Instant::now();
    while sent[0].len() < cases.len() && start.elapsed() < NEIGHBOUR_WAIT {
        sleep(Duration::from_millis(5));
        linux.receive(&mut sent);
    }
    let about = |case: &Case| {
        let addresses = if is_inet(&case.frame) { 26..34 } else { 22..54 };
        let addresses = &case.frame[addresses];
        // An error quotes them.
        let is_about = |answer: &Vec<u8>| {
            answer
                .windows(addresses.len())
                .any(|some| some == addresses)
        };
        sent.clone()
            .map(|sent| sent.into_iter().filter(is_about).collect())
    };
    cases.iter().map(about).collect()
}

#[derive(Default)]
struct Comparison {
    frames: usize,
    same: usize,
    differences: BTreeMap<Reason, usize>,
    unexplained: Vec<String>,
}

impl Comparison {
    fn add(&mut self, case: &Case, ours: &Sent, linux: &Sent) {
        self.frames += 1;
        let Some(reasons) = explained(&case.frame, ours, linux) else {
            let (name, ours, linux) = (&case.name, text(ours), text(linux));
            self.unexplained
                .push(format!("{name}\n ours\n{ours} Linux's\n{linux}"));
            return;
        };
        self.same += usize::from(reasons.is_empty());
        for reason in reasons {
            *self.differences.entry(reason).or_default() += 1;
        }
    }

    #[allow(clippy::print_stdout, reason = "what was compared is worth knowing")]
    fn judge(&self) {
        let Self {
            frames,
            same,
            differences,
            unexplained,
        } = self;
        let count = unexplained.len();
        println!(
            "{frames} frames: {same} the same, {} for a reason, {count} unexplained; {differences:?}",
            frames - same - count
        );
        assert_eq!(count, 0, "unexplained:\n{}", unexplained.join("\n"));
        // The list of reasons is closed from both sides.
        let idle: Vec<_> = Reason::ALL
            .into_iter()
            .filter(|reason| !differences.contains_key(reason))
            .collect();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        if kernel.starts_with(KNOWN_KERNELS) {
            assert_eq!(idle, [], "they make no difference");
        } else if !idle.is_empty() {
            println!("with kernel {} no difference: {idle:?}", kernel.trim());
        }
        assert!(
            differences
                .keys()
                .all(|reason| Reason::ALL.contains(reason)),
            "a reason is not in the list"
        );
    }
}

/// Frames as they are told of: their headers.
fn text(sent: &Sent) -> String {
    let mut text = String::new();
    for (port, frames) in sent.iter().enumerate() {
        for frame in frames {
            let headers = &frame[14..frame.len().min(120)];
            text += &format!("  port {port}: {} bytes {headers:02x?}\n", frame.len());
        }
    }
    text
}
