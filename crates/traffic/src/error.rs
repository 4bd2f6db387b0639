use std::error::Error;
use std::io;

use fwdlab_model::{Tester, TrafficFault};
use fwdlab_packet::{MacAddress, PacketError};
use fwdlab_sys::SysError;

use crate::interlock::Needed;

/// What can go wrong with the generator or the sink.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// A generator that sends although it is held.
    #[error(
        "the generator still sends {seconds} s after fwdlab held it; others have taken its CPU: \
         run the same command again at a quieter time, or free the CPU"
    )]
    NotHeld {
        /// How long it was waited for.
        seconds: u64,
    },
    /// A generator without a ring to fill.
    #[error("a generator needs at least one receive ring")]
    NoRing,
    /// The kernel refused a program or a map.
    #[error("{what}: {}{}", causes(source.as_ref()), remedy(source.as_ref()))]
    Bpf {
        /// What was tried.
        what: String,
        /// What the kernel or the loader said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The kernel's verifier refused a program.
    #[error(
        "the kernel's verifier refuses program {program}{}",
        verdict(log).unwrap_or_else(|| format!(" and does not say why: {source}"))
    )]
    Verifier {
        /// The program's function.
        program: String,
        /// What the kernel said.
        source: io::Error,
        /// All that the verifier said.
        log: String,
    },
    /// Nothing sends or forwards that traffic.
    #[error("traffic: {}; {}", .0, .0.advice())]
    Traffic(#[from] TrafficFault),
    /// An interface's counters could not be read.
    #[error(
        "reading the counters of interface {interface_index}: {source}{}",
        counters_remedy(source)
    )]
    Counters {
        /// The interface.
        interface_index: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// No size at all.
    #[error("traffic.frame_sizes: no size; give at least one")]
    NoFrameSize,
    /// A size that never comes.
    #[error(
        "traffic.frame_sizes: {frame_size} bytes have share 0; give at least 1, or leave them out"
    )]
    NoShare {
        /// Size asked for, with FCS.
        frame_size: u16,
    },
    /// Shares so far apart that the order of sizes does not fit the generator.
    #[error(
        "traffic.frame_sizes: the shares add up to {slots} frames a turn, more than the generator \
         holds ({max}); use smaller shares",
        max = crate::SLOTS_MAX
    )]
    LongTurn {
        /// Frames in a turn of all sizes.
        slots: i64,
    },
    /// More CPUs than there are flows to share.
    #[error(
        "more CPUs are to send ({cpus}) than there are flows ({flows}); name fewer CPUs, or \
         ask for more sources, destinations or ports"
    )]
    TooManyCpus {
        /// CPUs named.
        cpus: usize,
        /// Flows of the traffic.
        flows: u32,
    },
    /// A pace that leaves a CPU nothing to send.
    #[error(
        "{pps} a second are too few frames for {cpus} CPUs; name fewer CPUs, or raise the pace"
    )]
    TooSlowForCpus {
        /// Frames a second of all CPUs.
        pps: u64,
        /// CPUs named.
        cpus: usize,
    },
    /// An interface with fewer queues than AF_XDP sockets are to be opened.
    #[error(
        "{interface}: AF_XDP needs a transmit queue for each of {cpus} CPUs, and the interface has {queues}; give \
         it more (ethtool -L {interface} combined {cpus}), or another sender"
    )]
    TooFewQueues {
        /// The interface.
        interface: String,
        /// Transmit queues that it has.
        queues: u32,
        /// CPUs named.
        cpus: usize,
    },
    /// What went wrong on one of several CPUs that send.
    #[error("CPU {cpu}: {source}")]
    OnCpu {
        /// The CPU.
        cpu: u32,
        /// What went wrong.
        source: Box<Self>,
    },
    /// The interface by which the machine is reached.
    #[error(
        "{interface}: {}, and a load there could cut its machine off; name another interface{}",
        needed.told_of("it"),
        if needed.is_by_ssh() { ", or log in through another one" } else { "" }
    )]
    Needed {
        /// The interface.
        interface: String,
        /// What it is needed for.
        needed: Needed,
    },
    /// The kernel does not tell how the machine is reached, so no interface is known to be safe.
    #[error("cannot tell which interfaces this machine is reached by: {what}: {source}")]
    Unknown {
        /// What was attempted.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// There is none of that name.
    #[error(
        "{interface}: there is no such interface in this network namespace; `ip link` lists those \
         that there are; fwdlab takes no alternative names (altname)"
    )]
    NoSuchInterface {
        /// The name.
        interface: String,
    },
    /// An interface that is no Ethernet.
    #[error("{interface}: it has no MAC address; name an Ethernet interface")]
    NoEthernet {
        /// The interface.
        interface: String,
    },
    /// A station at one end of a cable that is the one at the other end, too.
    #[error("{interface}: {station} is its own MAC address; give that of the other end")]
    ToItself {
        /// The interface.
        interface: String,
        /// Its address.
        station: MacAddress,
    },
    /// An interface that is not set up.
    #[error("{interface}: it is down; set it up: ip link set dev {interface} up")]
    InterfaceDown {
        /// The interface.
        interface: String,
    },
    /// An interface without anything at its other end.
    #[error(
        "{interface}: it has no carrier; set up what is at the other end of its cable, or plug it in"
    )]
    NoCarrier {
        /// The interface.
        interface: String,
    },
    /// An interface that went while it was used.
    #[error("{interface}: it was removed, or moved to another network namespace, while in use")]
    InterfaceGone {
        /// The interface.
        interface: String,
    },
    /// An interface took no frame of the generator's.
    #[error("{interface}: transmitted none of {offered} frames; {}", not_transmitted(*sender))]
    NotTransmitted {
        /// The interface.
        interface: String,
        /// What sent.
        sender: Tester,
        /// Frames handed to it.
        offered: u64,
    },
    /// A frame that cannot be.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// A system call.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The generator ended before it was told to.
    #[error("the generator stopped by itself: {what}")]
    GeneratorStopped {
        /// What it said.
        what: String,
    },
}

impl TrafficError {
    /// Whether it is something else that has to be asked for: neither the machine nor the kernel
    /// refused it.
    #[must_use]
    pub fn is_users(&self) -> bool {
        matches!(
            self,
            Self::Traffic(_)
                | Self::NoFrameSize
                | Self::NoShare { .. }
                | Self::LongTurn { .. }
                | Self::TooManyCpus { .. }
                | Self::TooSlowForCpus { .. }
                | Self::ToItself { .. }
                | Self::Needed { .. }
                | Self::NoSuchInterface { .. }
                | Self::NoEthernet { .. }
                | Self::Packet(_)
        )
    }

    /// All that the kernel's verifier said, where it refused a program.
    #[must_use]
    pub fn into_verifier_log(self) -> Option<String> {
        match self {
            Self::Verifier { log, .. } => Some(log),
            _ => None,
        }
    }

    /// Whether an XDP program could not be attached because its interface has another.
    #[must_use]
    pub fn is_of_another_program(&self) -> bool {
        match self.on_any_cpu() {
            Self::Bpf { source, .. } => kinds(&**source).any(is_of_another_program),
            _ => false,
        }
    }

    /// What went wrong, without which of several CPUs it was on.
    #[must_use]
    pub fn on_any_cpu(&self) -> &Self {
        match self {
            Self::OnCpu { source, .. } => source.on_any_cpu(),
            error => error,
        }
    }

    pub(crate) fn bpf(
        what: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Bpf {
            what: what.into(),
            source: source.into(),
        }
    }

    /// A generator's error as that of one which nobody had told to stop.
    pub(crate) fn stopped_by_itself(error: Self) -> Self {
        match error {
            stopped @ Self::GeneratorStopped { .. } => stopped,
            error => Self::GeneratorStopped {
                what: error.to_string(),
            },
        }
    }
}

/// The last lines of what a verifier said, without its statistics.
fn verdict(log: &str) -> Option<String> {
    const LINES: usize = 5;
    const STATISTICS: [&str; 3] = ["verification time ", "stack depth ", "processed "];
    let lines = log.lines().map(str::trim_end);
    let is_said = |line: &&str| {
        let mut statistics = STATISTICS.iter();
        !line.is_empty() && !statistics.any(|begin| line.starts_with(begin))
    };
    let lines: Vec<&str> = lines.filter(is_said).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    let last: Vec<String> = last.iter().map(|line| format!("    {line}")).collect();
    (!last.is_empty()).then(|| format!("; its last lines:\n{}", last.join("\n")))
}

fn counters_remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::Unsupported => {
            "; without eBPF programs Linux 5.19 or newer is needed, or run as root (sudo)"
        }
        _ => "",
    }
}

fn not_transmitted(sender: Tester) -> &'static str {
    match sender {
        Tester::Ebpf => {
            "not every driver transmits XDP frames, some do only while an XDP program is attached to \
             the interface, and the other end of a veth must poll (ethtool -K PEER gro on)"
        }
        _ => "see what drops them: ip -s -s link show, tc -s qdisc show",
    }
}

/// The chain of causes in one line: each says where another part of the loader was.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.contains(&part) {
            text += &format!(": {part}");
        }
        cause = error.source();
    }
    text
}

/// What the kernel said, in the chain of causes.
fn kinds(error: &(dyn Error + 'static)) -> impl Iterator<Item = io::ErrorKind> {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.filter_map(|error| error.downcast_ref::<io::Error>().map(io::Error::kind))
}

/// Whether that is that an interface has an XDP program already.
fn is_of_another_program(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::AlreadyExists | io::ErrorKind::ResourceBusy
    )
}

/// Finds what to do in the chain of causes.
fn remedy(error: &(dyn Error + 'static)) -> &'static str {
    for kind in kinds(error) {
        // Root is refused by the kernel's verifier.
        if kind == io::ErrorKind::PermissionDenied && !fwdlab_sys::is_root() {
            return "; run as root (sudo)";
        }
        if is_of_another_program(kind) {
            return "; another XDP program is attached to the interface (ip link shows it)";
        }
    }
    ""
}
