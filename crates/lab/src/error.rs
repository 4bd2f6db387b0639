use std::borrow::Cow;
use std::fmt::Display;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use fwdlab_model::{LoadRegime, Stratum, VariantName};
use fwdlab_sys::{NoUserNamespace, SysError};
use fwdlab_traffic::TrafficError;

/// What can go wrong with a lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Threads that no CPU is left for.
    #[error(
        "a tester in threads of its own and {queues} queues need {} CPUs, and this process may use {cpus}; \
         ask for fewer queues, or for tester = \"auto\" or \"inline\" in the lab file",
        queues + 1
    )]
    Oversubscribed {
        /// Queues, each with a worker.
        queues: u32,
        /// CPUs that this process may use.
        cpus: usize,
    },

    /// A slice of a variant that the lab does not have in this block.
    #[error("the plan asks for variant {name}: {why}; make the plan anew")]
    NoVariant {
        /// Its name.
        name: VariantName,
        /// Why not.
        why: String,
    },

    /// A stratum that the experiment does not have.
    #[error("the plan asks for {stratum}, which the experiment does not have; make the plan anew")]
    UnknownStratum {
        /// The stratum.
        stratum: Stratum,
    },

    /// A slice under a load that the lab cannot offer in this block.
    #[error(
        "this block is measured {regime}, and its CPUs are assigned for that; give a slice with a {asked} load an \
         experiment of its own"
    )]
    OtherRegime {
        /// The load regime of the slice.
        asked: LoadRegime,
        /// That of the block.
        regime: LoadRegime,
    },

    /// A router that cannot be built.
    #[error(transparent)]
    Router(#[from] fwdlab_router::RouterError),

    /// A lab of hosts that are not named.
    #[error(
        "lab {lab}: it names no hosts and can only be planned; `fwdlab plan` shows what would be measured there, \
         [dut] and [tester] in its file name hosts (docs/labs.md), and `--lab labs/router.toml` of fwdlab's repository \
         runs the same experiment on the reference router"
    )]
    NoHosts {
        /// The lab.
        lab: String,
    },
    /// A ruleset that nft does not understand.
    #[error("the nft ruleset of level {level:?} of {factor:?}, line {line}: {reason}: `{rule}`")]
    Ruleset {
        /// The factor.
        factor: String,
        /// Its level.
        level: String,
        /// The line of the level's ruleset, from 1.
        line: usize,
        /// The line itself.
        rule: String,
        /// What nft says of it.
        reason: String,
    },
    /// A level's object file that no program can be taken from, or a file of what is set in it.
    #[error("{}: {what}", path.display())]
    Object {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// A map that another program has pinned under the name of a level's.
    #[error(
        "{} is there already: another program's map, and the level's has the same name; end that program, or remove the file",
        pin.display()
    )]
    Pinned {
        /// The file.
        pin: PathBuf,
    },
    /// An XDP program of the owner's that no undo takes away.
    #[error(
        "{port} still has an XDP program when `undo` of {} has run, and the cost of the generator is measured without any; \
         have `undo` take off what `do` has attached: ip link set dev {port} xdp off",
        quoted(factors)
    )]
    XdpStays {
        /// The DUT's port.
        port: String,
        /// The factors whose programs had set a level.
        factors: Vec<String>,
    },
    /// A forwarder in user space that does not forward.
    #[error("forwarder {level:?}: {what}")]
    Forwarder {
        /// Its level.
        level: String,
        /// What is wrong with it, what it said, and what to do.
        what: String,
    },
    /// The lab needs a privilege that this process cannot get.
    #[error(
        "lab {lab}: without root (this process has user id {uid}) it needs a user namespace of its \
         own, which this machine refuses: {source}; or run fwdlab as root (sudo)"
    )]
    NoUserNamespace {
        /// The lab.
        lab: String,
        /// The effective user id.
        uid: u32,
        /// Why.
        source: NoUserNamespace,
    },
    /// Nothing to watch.
    #[error("{interface}: no load has come in {seconds} s")]
    NoLoad {
        /// Where it was to come in.
        interface: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// Frames that were offered and did not arrive at the DUT.
    #[error(
        "{frames} frames were still on their way to the DUT {seconds} s after the generator was held; \
         fwdlab attaches no XDP program while frames come in; free this machine's CPUs, and run again"
    )]
    UnderWay {
        /// How many.
        frames: u64,
        /// How long they were waited for.
        seconds: u64,
    },
    /// Frames that the DUT goes on to send when no more come in.
    #[error(
        "the DUT still sent frames {seconds} s after the load was held; give its forwarder smaller buffers, or ask for a lower \
         load"
    )]
    StillSends {
        /// How long it was waited for their end.
        seconds: u64,
    },
    /// A sender that does not send.
    #[error("{sender}: of {handed_over} frames the interface sent {sent}")]
    SenderSilent {
        /// What was to send.
        sender: &'static str,
        /// Frames that it was handed.
        handed_over: u32,
        /// Frames that the interface has counted.
        sent: u64,
    },
    /// The tester's addresses are not all where the DUT has a route to.
    #[error(
        "traffic: the lab routes {routed} except {link}, and not all {count} {what} from {first} are \
         in there; begin elsewhere or ask for fewer"
    )]
    NotRouted {
        /// Sources or destinations.
        what: &'static str,
        /// The first of them.
        first: IpAddr,
        /// How many there are.
        count: u32,
        /// What is routed.
        routed: String,
        /// The part of it that is the cable's own.
        link: String,
    },
    /// rtnetlink refused.
    #[error("namespace {namespace}: {what}: {source}")]
    Netlink {
        /// Where.
        namespace: String,
        /// What was tried.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A file of the kernel's could not be read or written.
    #[error("{what} {path:?}: {source}")]
    File {
        /// Reading or writing.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// An interface does not take a value of a file in sysfs.
    #[error(
        "{path:?} does not take {value:?} ({source}); where another interface does, name it in the binding: interfaces \
         = [\"dut-in\"]"
    )]
    SysfsValue {
        /// The file.
        path: PathBuf,
        /// What was written.
        value: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A journal of changes could not be used.
    #[error(
        "{what} the undo journal {path:?}: {error}; nothing is changed without it: make that folder \
         writable, or name another one in XDG_STATE_HOME"
    )]
    Journal {
        /// What was tried.
        what: &'static str,
        /// The journal, or its folder.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// A journal holds what is no line of a journal.
    #[error(
        "{path:?}:{line}: not a line of an undo journal ({what}); see by hand what is left to undo, \
         then remove the file"
    )]
    JournalDamaged {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// Another process keeps a journal to itself.
    #[error(
        "{path:?}: another process kept this journal to itself for {seconds} s; end that first"
    )]
    JournalTaken {
        /// The journal.
        path: PathBuf,
        /// How long it was waited for.
        seconds: u64,
    },
    /// There is no place for journals.
    #[error("no folder for the undo journal: neither XDG_STATE_HOME nor HOME is set; set one")]
    NoStateDirectory,
    /// What a run that is gone left could not be put back.
    #[error(
        "{leftover}; nothing is measured on a machine that is not as it was: `fwdlab restore` tries again; \
         what has been put back by hand is struck out by `fwdlab restore --forget`"
    )]
    NotRestored {
        /// What it is, and why not.
        leftover: String,
    },
    /// A command failed.
    #[error("command `{command}` failed ({status}): {stderr}")]
    Command {
        /// The whole command line.
        command: String,
        /// How it ended.
        status: String,
        /// Its last lines of complaint.
        stderr: String,
    },
    /// A host that does not let us in.
    #[error(
        "host {host}: {what}: ssh failed: {stderr}; fwdlab answers no questions of ssh and takes no unknown host keys: make \
         `{trial}` work"
    )]
    Ssh {
        /// The host, as ssh knows it.
        host: String,
        /// What was tried.
        what: String,
        /// What ssh said.
        stderr: String,
        /// The command to try, which does nothing there.
        trial: String,
    },
    /// A command on a host failed.
    #[error("host {host}: `{command}` failed ({status}): {stderr}")]
    OnHost {
        /// The host, as ssh knows it.
        host: String,
        /// The command line.
        command: String,
        /// How it ended.
        status: String,
        /// Its last lines of complaint.
        stderr: String,
    },
    /// A process of fwdlab's own on a host did not do what it was asked.
    #[error("fwdlab on host {host}: {what}: {why}")]
    RemoteProcess {
        /// The host, as ssh knows it.
        host: String,
        /// What it was asked for.
        what: String,
        /// What it said.
        why: String,
    },
    /// The connection to a process of fwdlab's own on a host was lost.
    #[error("the connection to {host} closed while {what}{said}")]
    RemoteClosed {
        /// The host, as ssh knows it.
        host: String,
        /// What it was asked for.
        what: String,
        /// What was said last, behind a colon; nothing where nothing was.
        said: String,
    },
    /// A host that is not as a lab needs it.
    #[error("host {host}: {why}")]
    Host {
        /// The host, as ssh knows it.
        host: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A host that has booted without being asked to.
    #[error("host {host}: it has booted meanwhile, and nobody here asked it to")]
    Rebooted {
        /// The host, as ssh knows it.
        host: String,
    },
    /// A setting, read back, was not what had been asked.
    #[error(transparent)]
    ReadBack(#[from] Moved),
    /// The DUT did not forward every probe frame as it should.
    #[error(
        "variant {variant:?} ({stratum}): of {sent} probe frames the sink got {}{kinds}; the DUT does not forward as \
         planned{reasons}, so nothing was measured{advice}",
        got(*forwarded, *wrong)
    )]
    Probe {
        /// The variant's label.
        variant: String,
        /// The stratum.
        stratum: Box<Stratum>,
        /// Frames sent.
        sent: u64,
        /// Frames that arrived.
        forwarded: u64,
        /// Of those, how many were not as expected.
        wrong: u64,
        /// What was wrong with them.
        kinds: String,
        /// Why the DUT's kernel dropped the others, where it says.
        reasons: String,
        /// What to do, where that is known.
        advice: Box<str>,
    },
    /// A level that the lab file lets through but this lab does not know.
    #[error("factor {factor:?}: level {level:?} is not bound; bind it in the lab file")]
    Unbound {
        /// The factor.
        factor: String,
        /// The level.
        level: String,
    },
    /// A CPU that this process may not use.
    #[error(
        "lab placement: CPU {cpu} is not among those this process may use ({cpus}); choose another"
    )]
    Cpu {
        /// The CPU asked for.
        cpu: u32,
        /// Those there are.
        cpus: String,
    },
    /// Something keeps the load CPU to itself.
    #[error(
        "CPU {cpu}: it was not to be had for {seconds} s; do not run this at a real-time priority, or \
         choose another load_cpu in the lab file"
    )]
    CpuTaken {
        /// The load CPU.
        cpu: u32,
        /// How long it was waited for.
        seconds: u64,
    },
    /// Another run loads this machine.
    #[error(
        "another fwdlab{} is already measuring on this machine, and two loads would spoil each other; run again when \
         it has ended",
        pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
    )]
    MachineTaken {
        /// The process, where it says.
        pid: Option<u32>,
    },
    /// Whether another run loads this machine cannot be found out.
    #[error("claiming this machine: {0}")]
    Claim(io::Error),
    /// The user asked to stop now.
    #[error("stopped on request")]
    Interrupted,
    /// The generator or the sink.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// A system call.
    #[error(transparent)]
    Sys(#[from] SysError),
}

impl LabError {
    /// A file that is not to be had; `what` was done with it.
    pub(crate) fn file(what: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::File { what, path, source }
    }

    /// The host that a connection leads to.
    pub(crate) fn host(&self) -> Option<&str> {
        match self {
            Self::Ssh { host, .. }
            | Self::OnHost { host, .. }
            | Self::RemoteProcess { host, .. }
            | Self::RemoteClosed { host, .. }
            | Self::Host { host, .. }
            | Self::Rebooted { host } => Some(host),
            _ => None,
        }
    }

    /// Whether hosts answered, or need not be asked: a lab of theirs is not as an experiment needs it, or is not like that
    /// now.
    #[must_use]
    pub fn is_an_answer_of_hosts(&self) -> bool {
        match self {
            Self::NotRouted { .. } | Self::Traffic(_) => true,
            // Where it failed for the connection, another one may do.
            Self::Ssh { .. } | Self::NotRestored { .. } | Self::Rebooted { .. } => false,
            _ => self.host().is_some(),
        }
    }

    /// Whether a connection to a host, or what stood on it, is what failed, so that another one may do.
    pub(crate) fn is_of_a_connection(&self) -> bool {
        match self {
            // Another key is not one that will do later.
            Self::Ssh { stderr, .. } => !stderr.contains("Host key verification failed"),
            Self::RemoteProcess { .. } | Self::RemoteClosed { .. } | Self::Rebooted { .. } => true,
            _ => false,
        }
    }
}

/// Names of factors, as messages list them.
fn quoted(factors: &[String]) -> String {
    let factors: Vec<String> = factors.iter().map(|factor| format!("{factor:?}")).collect();
    factors.join(", ")
}

/// How many frames came of a probe.
fn got(forwarded: u64, wrong: u64) -> String {
    match forwarded {
        0 => "none".to_owned(),
        forwarded => format!("{forwarded}, {wrong} of them wrong"),
    }
}

/// Of a text what a message takes: rulesets, and what programs print, may be of any length.
pub(crate) fn start(text: &str) -> Cow<'_, str> {
    if text.len() <= SHOWN_BYTES_MAX {
        return text.into();
    }
    let shown = &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)];
    format!("{shown}… ({} bytes)", text.len()).into()
}

/// Longer texts are cut in messages.
const SHOWN_BYTES_MAX: usize = 2000;

/// What is said of a setting that reads back as something else than was asked for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Moved(pub(crate) String);

impl Moved {
    /// Without the white space around what was seen.
    pub(crate) fn of(setting: impl Display, asked: impl AsRef<str>, seen: impl AsRef<str>) -> Self {
        let (asked, seen) = (start(asked.as_ref()), start(seen.as_ref().trim()));
        Self(format!(
            "{setting} was set to {asked:?} and reads back as {seen:?}"
        ))
    }
}
