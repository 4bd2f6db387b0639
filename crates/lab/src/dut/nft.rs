//! The DUT's nftables ruleset: set by nft's own command, and watched by its generation.

use std::collections::BTreeMap;
use std::io;

use fwdlab_model::{Binding, Lab, Variant, VariantName};
use fwdlab_sys::NetworkNamespace;
use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};

use super::{Mechanism, Site, bound, moved, unbound_level};
use crate::{LabError, Topology, program};

/// The ruleset of all factors that set one together.
pub(super) struct Nft {
    /// The text of each level, by factor.
    rulesets: BTreeMap<String, BTreeMap<String, String>>,
    /// Each variant's ruleset as nft listed it when it was first applied.
    listed: BTreeMap<VariantName, String>,
    /// Of the ruleset that was read back last; opened when a variant first has one.
    generation: Option<Generation>,
}

impl Nft {
    /// None where the lab binds no factor to rulesets.
    pub(super) fn new(lab: &Lab) -> Option<Self> {
        let rulesets: BTreeMap<_, _> = bound(lab, |binding| match binding {
            Binding::Nft(rulesets) => Some(rulesets.clone()),
            _ => None,
        })
        .collect();
        (!rulesets.is_empty()).then(|| Self {
            rulesets,
            listed: BTreeMap::new(),
            generation: None,
        })
    }

    /// The variant's whole ruleset, where any factor sets one.
    fn ruleset(&self, variant: &Variant) -> Result<Option<String>, LabError> {
        let mut all: Option<String> = None;
        for (factor, rulesets) in &self.rulesets {
            if let Some(level) = variant.levels.get(factor) {
                let ruleset = rulesets.get(&level.to_string());
                let all = all.get_or_insert_default();
                all.push_str(ruleset.ok_or_else(|| unbound_level(factor, level))?);
                // The last line of a file need not end as one; the next ruleset starts its own.
                all.push('\n');
            }
        }
        Ok(all)
    }

    /// nft lists a ruleset in its own words, so what it lists first is what it must list ever after.
    fn list(
        &mut self,
        topology: &Topology,
        variant: &Variant,
        ruleset: &str,
    ) -> Result<(), LabError> {
        let seen = nft(topology, &["--stateless", "list", "ruleset"], "")?;
        let known = self
            .listed
            .entry(variant.name.clone())
            .or_insert_with(|| seen.clone());
        let is_listed = !seen.trim().is_empty();
        if *known == seen && is_listed != ruleset.trim().is_empty() {
            return Ok(());
        }
        let asked = if known.trim().is_empty() {
            ruleset
        } else {
            known
        };
        Err(moved("the nft ruleset", asked, seen))
    }
}

impl Mechanism for Nft {
    fn unavailable(
        &self,
        topology: &mut Topology,
        variant: &Variant,
    ) -> Result<Option<String>, LabError> {
        let ruleset = self.ruleset(variant)?;
        let Some(ruleset) = ruleset.filter(|ruleset| !ruleset.trim().is_empty()) else {
            return Ok(None);
        };
        if !is_installed() {
            return Ok(Some(
                "nft is not installed; install it (apt-get install nftables)".into(),
            ));
        }
        // Asks the kernel for all of it, and has it forget that again.
        match nft(topology, &["--check", "-f", "-"], &ruleset) {
            Err(LabError::Command { stderr, .. }) => Ok(refused_by_kernel(&stderr)),
            // What nft itself does not understand is an error of whoever wrote it, told when it is applied.
            _ => Ok(None),
        }
    }

    fn apply(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        if let Some(ruleset) = self.ruleset(variant)? {
            let script = format!("flush ruleset\n{ruleset}");
            nft(site.topology, &["-f", "-"], &script)?;
        }
        Ok(())
    }

    fn read_back(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let Some(ruleset) = self.ruleset(variant)? else {
            return Ok(());
        };
        // Noted before the ruleset is listed: what changes after this is seen by `prove_unmoved`.
        match &mut self.generation {
            Some(generation) => generation.note()?,
            none => *none = Some(Generation::open(site.topology.dut())?),
        }
        self.list(site.topology, variant, &ruleset)
    }

    fn prove_unmoved(&mut self, site: &mut Site<'_>, variant: &Variant) -> Result<(), LabError> {
        let (Some(ruleset), Some(generation)) = (self.ruleset(variant)?, &mut self.generation)
        else {
            return Ok(());
        };
        let noted = generation.noted();
        let seen = generation.ask()?;
        if seen == noted {
            return Ok(());
        }
        // Says what it is now, where it is another one.
        self.list(site.topology, variant, &ruleset)?;
        let setting = "the generation of the nft ruleset";
        Err(moved(setting, noted.to_string(), seen.to_string()))
    }
}

/// The number of the ruleset that the kernel counts up with every transaction.
///
/// Asking for it takes some microseconds, listing the ruleset some milliseconds.
struct Generation {
    socket: Socket,
    noted: u32,
    sequence_number: u32,
    namespace: String,
}

impl Generation {
    /// Opens nfnetlink in a namespace and notes the generation.
    fn open(namespace: &NetworkNamespace) -> Result<Self, LabError> {
        let open = || {
            let mut socket = Socket::new(NETLINK_NETFILTER)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        let socket = namespace
            .run(open)?
            .map_err(|source| error(namespace.name(), source))?;
        let mut generation = Self {
            socket,
            noted: 0,
            sequence_number: 0,
            namespace: namespace.name().to_owned(),
        };
        generation.note()?;
        Ok(generation)
    }

    /// Remembers the generation as it is now.
    fn note(&mut self) -> Result<(), LabError> {
        self.noted = self.ask()?;
        Ok(())
    }

    /// What was remembered.
    fn noted(&self) -> u32 {
        self.noted
    }

    /// The generation as it is now.
    fn ask(&mut self) -> Result<u32, LabError> {
        self.request()
            .map_err(|source| error(&self.namespace, source))
    }

    fn request(&mut self) -> io::Result<u32> {
        self.sequence_number = self.sequence_number.wrapping_add(1);
        self.socket.send(&get_generation(self.sequence_number), 0)?;
        let mut answer = [0; 1024];
        loop {
            let length = self.socket.recv(&mut &mut answer[..], 0)?;
            // An answer to an earlier, interrupted request may still be in the socket.
            if let Some(generation) = generation_in(&answer[..length], self.sequence_number) {
                return generation;
            }
        }
    }
}

fn error(namespace: &str, source: io::Error) -> LabError {
    LabError::Netlink {
        namespace: namespace.to_owned(),
        what: "asking nftables for its generation".into(),
        source,
    }
}

const HEADER_SIZE: usize = 16;
/// `struct nfgenmsg`, between a message's header and its attributes.
const FAMILY_HEADER_SIZE: usize = 4;
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFT_MSG_NEWGEN: u16 = 15;
const NFT_MSG_GETGEN: u16 = 16;
const NFTA_GEN_ID: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;

/// The request `NFT_MSG_GETGEN`.
fn get_generation(sequence_number: u32) -> [u8; HEADER_SIZE + FAMILY_HEADER_SIZE] {
    let mut message = [0; HEADER_SIZE + FAMILY_HEADER_SIZE];
    let length = u32::try_from(message.len()).expect("it is 20");
    message[0..4].copy_from_slice(&length.to_ne_bytes());
    message[4..6].copy_from_slice(&(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN).to_ne_bytes());
    message[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    message[8..12].copy_from_slice(&sequence_number.to_ne_bytes());
    message
}

/// The generation in an answer, or the kernel's refusal; nothing where it answers another request.
fn generation_in(answer: &[u8], sequence_number: u32) -> Option<io::Result<u32>> {
    let damaged = || Some(Err(io::ErrorKind::InvalidData.into()));
    let half = |at: usize| Some(u16::from_ne_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| answer.get(at..at + 4)?.try_into().ok();
    let (Some(kind), Some(sequence)) = (half(4), word(8)) else {
        return damaged();
    };
    if u32::from_ne_bytes(sequence) != sequence_number {
        return None;
    }
    if kind == NLMSG_ERROR {
        let Some(code) = word(HEADER_SIZE) else {
            return damaged();
        };
        let errno = i32::from_ne_bytes(code).saturating_neg();
        return Some(Err(io::Error::from_raw_os_error(errno)));
    }
    if kind != NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN {
        return damaged();
    }
    let mut at = HEADER_SIZE + FAMILY_HEADER_SIZE;
    while let (Some(length), Some(kind)) = (half(at), half(at + 2)) {
        if kind == NFTA_GEN_ID {
            return match word(at + 4) {
                Some(generation) => Some(Ok(u32::from_be_bytes(generation))),
                None => damaged(),
            };
        }
        // Attributes begin at multiples of four; one shorter than its header would never end.
        at += usize::from(length.max(4)).next_multiple_of(4);
    }
    damaged()
}

/// What of a ruleset this kernel does not have, from nft's complaint; none where nft itself did not
/// understand it.
fn refused_by_kernel(stderr: &str) -> Option<String> {
    let (_, reason) = stderr.split_once("Could not process rule: ")?;
    // Behind the message stands the line with marks below.
    let mut lines = reason.lines();
    let reason = lines.next().unwrap_or_default();
    let rule = lines.next().unwrap_or_default().trim();
    Some(format!(
        "this kernel refuses `{rule}` in the nft ruleset: {reason}"
    ))
}

/// Whether there is a command to set rulesets with.
pub(crate) fn is_installed() -> bool {
    program::run(&["nft", "--version"], "").is_ok()
}

/// Runs nft in the DUT's namespace: arguments as they are, the script on its standard input.
fn nft(topology: &Topology, arguments: &[&str], script: &str) -> Result<String, LabError> {
    let command: Vec<_> = ["nft"].iter().chain(arguments).collect();
    topology.dut().run(|| program::run(&command, script))?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What Linux 6.18 answered to request 7: generation 1, a process and its name.
    const ANSWER: &str = "300000000f0a00000700000094370000000000010800010000000001\
                          08000200000037940c000300707974686f6e3300";

    /// What it answered to request 8, of a kind that there is not.
    const REFUSAL: &str = "28000000020000000800000094370000eaffffff14000000630a0100080000000000\
                           000000000000";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex
            .chars()
            .filter_map(|digit| digit.to_digit(16))
            .map(|digit| u8::try_from(digit).unwrap())
            .collect();
        digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    }

    /// What nft 1.0.6 said of a flow table to Linux 6.18 built without.
    const NO_FLOW_TABLE: &str = "/dev/stdin:3:12-15: Error: Could not process rule: No such file or directory\n\
                                 \tflowtable fast {\n\t          ^^^^";

    #[test]
    fn a_kernel_that_lacks_something_is_told_from_a_ruleset_that_is_wrong() {
        assert_eq!(
            refused_by_kernel(NO_FLOW_TABLE).unwrap(),
            "this kernel refuses `flowtable fast {` in the nft ruleset: No such file or directory"
        );
        let wrong = "/dev/stdin:1:1-4: Error: syntax error, unexpected string\ntabel inet x\n^^^^^";
        assert_eq!(refused_by_kernel(wrong), None);
    }

    #[test]
    fn the_generation_is_found_among_the_attributes() {
        let answer = bytes(ANSWER);
        assert_eq!(generation_in(&answer, 7).unwrap().unwrap(), 1);
        assert!(generation_in(&answer, 8).is_none());
    }

    #[test]
    fn a_refusal_is_the_kernels_error() {
        let error = generation_in(&bytes(REFUSAL), 8).unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(answer: Vec<u8>, sequence_number: u32) {
            let _ = generation_in(&answer, sequence_number);
            let mut own = get_generation(sequence_number).to_vec();
            own[4..6].copy_from_slice(&(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN).to_ne_bytes());
            own.extend(answer);
            let _ = generation_in(&own, sequence_number);
        }
    }
}
