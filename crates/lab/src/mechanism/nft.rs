//! The DUT's nftables ruleset: set by nft's own command, and in a namespace watched by its generation.

use std::collections::BTreeMap;
use std::io;

use fwdlab_model::Variant;
use fwdlab_sys::{Netlink, NetworkNamespace, netlink_attribute};

use super::by_level::{Rulesets, has_rules};
use super::question::{Answers, Look, Question};
use super::step::{Action, Errand, Rehearsal, Step, owned};
use super::tools::Tool;
use super::transport::{Watch, Watched};
use super::{DutPlace, Mechanism};
use crate::netlink::failed;
use crate::{LabError, Moved, program};

/// The ruleset of a Linux kernel, of all factors that set one together.
pub(super) struct LinuxNft {
    rulesets: Rulesets,
    /// In a namespace nothing is there beside it.
    is_alone: bool,
    /// What each ruleset is listed as, by its text.
    listed: BTreeMap<String, String>,
    /// Whether there may be a ruleset to be emptied: where none can be set there is none.
    may_stand: bool,
}

const OWNERS: [&str; 3] = ["nft", "list", "ruleset"];
const LISTING: [&str; 4] = ["nft", "--stateless", "list", "ruleset"];

/// What loads a ruleset in the place of all that is there.
fn in_place_of_all(ruleset: &str) -> String {
    format!("flush ruleset\n{ruleset}\n")
}

/// What finds out whether a ruleset can be loaded.
fn check(ruleset: &str) -> Errand {
    Errand::reading(&["nft", "--check", "-f", "-"], ruleset)
}

impl LinuxNft {
    pub(super) fn new(rulesets: Rulesets, place: &DutPlace) -> Self {
        Self {
            rulesets,
            is_alone: place.is_namespace,
            listed: BTreeMap::new(),
            may_stand: place.has_nftables,
        }
    }

    /// The variant's whole ruleset, where any factor sets one and something has to be done for it.
    fn settable(&self, variant: &Variant) -> Result<Option<String>, LabError> {
        let ruleset = self.rulesets.whole(variant)?;
        Ok(ruleset.filter(|text| self.may_stand || !text.trim().is_empty()))
    }

    /// What nft complained of in a variant's ruleset, where it names a line of it.
    fn not_understood(
        &self,
        variant: &Variant,
        stderr: &str,
    ) -> Result<Option<LabError>, LabError> {
        let Some((mut line, reason)) = complaint(stderr) else {
            return Ok(None);
        };
        for (factor, level, ruleset) in self.rulesets.parts(variant)? {
            // As many as it has in the whole.
            let lines: Vec<&str> = ruleset.split('\n').collect();
            if line <= lines.len() {
                return Ok(Some(LabError::Ruleset {
                    factor: factor.clone(),
                    level: level.to_string(),
                    line,
                    rule: lines[line - 1].trim().to_owned(),
                    reason,
                }));
            }
            line -= lines.len();
        }
        Ok(None)
    }
}

impl Mechanism for LinuxNft {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let Some(ruleset) = self.rulesets.with_rules(variant)? else {
            return Ok(Vec::new());
        };
        let mut questions = vec![Tool::Nft.question(), Question::Complaint(check(&ruleset))];
        if self.is_alone {
            questions.push(Question::Complaint(Errand::of(&OWNERS)));
        }
        Ok(questions)
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let Some(ruleset) = self.rulesets.with_rules(variant)? else {
            return Ok(None);
        };
        if let Some(missing) = Tool::Nft.lacking(answers) {
            return Ok(Some(missing));
        }
        if let Some(stderr) = answers.complaint(&Errand::of(&OWNERS)) {
            let why = stderr.lines().next().unwrap_or_default();
            return Ok(Some(format!("this kernel has no nftables: {why}")));
        }
        let Some(complaint) = answers.complaint(&check(&ruleset)) else {
            return Ok(None);
        };
        match refused_by_kernel(complaint) {
            Some(reason) => Ok(Some(reason)),
            None => self
                .not_understood(variant, complaint)?
                .map_or(Ok(None), Err),
        }
    }

    fn looks(&self) -> Vec<Question> {
        vec![Tool::Nft.question(), Question::maybe(owned(&OWNERS))]
    }

    fn keep(&mut self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        let is_installed = Tool::Nft.lacking(answers).is_none();
        self.may_stand = is_installed;
        // Where no ruleset can be set, the owner's is neither read nor kept.
        if !is_installed {
            return Ok(Vec::new());
        }
        let ruleset = answers.needed(&owned(&OWNERS))?;
        let owners = in_place_of_all(ruleset);
        Ok(vec![Step {
            what: "the nft ruleset".to_owned(),
            undo: Errand::reading(&["nft", "-f", "-"], &owners),
            errands: Vec::new(),
            rehearsal: (!ruleset.is_empty()).then(|| Rehearsal {
                errand: check(&owners),
                refused: not_put_back,
            }),
        }])
    }

    fn forget(&mut self) {
        self.listed.clear();
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        let ruleset = self.settable(variant)?;
        self.may_stand |= ruleset.is_some();
        let actions = ruleset.into_iter().map(|text| {
            let script = format!("flush ruleset\n{text}");
            Action::Run(Errand::reading(&["nft", "-f", "-"], &script))
        });
        Ok(actions.collect())
    }

    fn reads(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let ruleset = self.settable(variant)?.into_iter();
        let look = Look::Command(owned(&LISTING));
        Ok(ruleset.map(|_| Question::Needed(look.clone())).collect())
    }

    fn moved(&mut self, variant: &Variant, answers: &Answers) -> Result<Option<Moved>, LabError> {
        let Some(text) = self.settable(variant)? else {
            return Ok(None);
        };
        let seen = answers.needed(&owned(&LISTING))?;
        let has_rules = has_rules(&text);
        // nft lists a ruleset in its own words, so what it lists first is what it must list ever after.
        let asked = text.clone();
        let first = self.listed.entry(text).or_insert_with(|| seen.to_owned());
        let is_whole = *first == seen && seen.is_empty() != has_rules;
        let asked = if *first == seen { &asked } else { &*first };
        Ok((!is_whole).then(|| Moved::of("the nft ruleset", asked, seen)))
    }

    fn watch(&self, variant: &Variant) -> Result<Option<Watch>, LabError> {
        let ruleset = self.settable(variant)?;
        Ok(ruleset.map(|_| Watch {
            of: Watched::Generation,
            setting: "the generation of the nft ruleset".to_owned(),
        }))
    }
}

/// What is wrong with a host whose nft does not load again what it lists: of rules that were made by other means it shows
/// what it cannot read.
fn not_put_back(stderr: &str) -> String {
    format!(
        "its own ruleset could not be put back: nft does not load what `nft list ruleset` shows ({}); have the \
         rules that other programs made (iptables, Docker) taken away while it is measured, or leave rulesets out \
         of the experiment",
        stderr.lines().next().unwrap_or_default()
    )
}

/// The number of the ruleset that the kernel counts up with every transaction.
///
/// Asking for it takes some microseconds, listing the ruleset some milliseconds.
pub(crate) struct Generation {
    netlink: Netlink,
    noted: u32,
    namespace: String,
}

impl Generation {
    /// Opens nfnetlink in a namespace and notes the generation.
    pub(crate) fn open(namespace: &NetworkNamespace) -> Result<Self, LabError> {
        let netlink = namespace
            .run(Netlink::netfilter)?
            .map_err(|source| error(namespace.name(), source))?;
        let mut generation = Self {
            netlink,
            noted: 0,
            namespace: namespace.name().to_owned(),
        };
        generation.note()?;
        Ok(generation)
    }

    /// Remembers the generation as it is now.
    pub(crate) fn note(&mut self) -> Result<(), LabError> {
        self.noted = self.ask()?;
        Ok(())
    }

    /// What was remembered.
    pub(crate) fn noted(&self) -> u32 {
        self.noted
    }

    /// The generation as it is now.
    pub(crate) fn ask(&mut self) -> Result<u32, LabError> {
        let kind = |kind: u16| NFNL_SUBSYS_NFTABLES << 8 | kind;
        self.netlink
            .ask(
                kind(NFT_MSG_GETGEN),
                &[0; FAMILY_HEADER_SIZE],
                kind(NFT_MSG_NEWGEN),
            )
            .and_then(|answer| generation_in(&answer))
            .map_err(|source| error(&self.namespace, source))
    }
}

fn error(namespace: &str, source: io::Error) -> LabError {
    failed(namespace, "asking nftables for its generation", source)
}

/// `struct nfgenmsg`, between a message's header and its attributes.
const FAMILY_HEADER_SIZE: usize = 4;
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFT_MSG_NEWGEN: u16 = 15;
const NFT_MSG_GETGEN: u16 = 16;
const NFTA_GEN_ID: u16 = 1;

/// The generation in an answer.
fn generation_in(answer: &[u8]) -> io::Result<u32> {
    netlink_attribute(answer, FAMILY_HEADER_SIZE, NFTA_GEN_ID)?
        .first_chunk()
        .map(|bytes| u32::from_be_bytes(*bytes))
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// What of a ruleset this kernel does not have, from nft's complaint; none where nft itself did not
/// understand it.
pub(crate) fn refused_by_kernel(stderr: &str) -> Option<String> {
    let (_, reason) = stderr.split_once("Could not process rule: ")?;
    // Behind the message stands the line with marks below.
    let mut lines = reason.lines();
    let reason = lines.next().unwrap_or_default();
    let rule = lines.next().unwrap_or_default().trim();
    Some(format!(
        "this kernel refuses `{rule}` in the nft ruleset: {reason}"
    ))
}

/// The line of a script that nft does not understand, from 1, and what it says of it; none where its complaint names
/// no line.
fn complaint(stderr: &str) -> Option<(usize, String)> {
    stderr.lines().find_map(|text| {
        let (place, reason) = text.split_once(": Error: ")?;
        // The script's name, the line, and columns.
        let line = place.rsplit(':').nth(1)?.parse().ok()?;
        (line > 0).then(|| (line, reason.to_owned()))
    })
}

/// Whether a ruleset can be listed in the calling thread's namespace.
pub(crate) fn can_be_listed() -> bool {
    program::run(&OWNERS, "").is_ok()
}

/// Whether there is a command to set rulesets with.
pub(crate) fn is_installed() -> bool {
    program::run(&["nft", "--version"], "").is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        let (line, reason) = complaint(wrong).unwrap();
        assert_eq!(
            (line, reason.as_str()),
            (1, "syntax error, unexpected string")
        );
        assert_eq!(complaint("nft: command not found"), None);
        assert_eq!(complaint("/dev/stdin:0:1-2: Error: x"), None);
    }

    #[test]
    fn the_generation_is_found_among_the_attributes() {
        // As Linux 6.18 answers: the generation, and a process.
        let answer = [
            0, 0, 0, 1, 8, 0, 1, 0, 2, 0, 0, 1, 8, 0, 2, 0, 0, 0, 0x37, 0x94,
        ];
        assert_eq!(generation_in(&answer).unwrap(), 0x0200_0001);
        assert!(generation_in(&answer[..10]).is_err());
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(answer: Vec<u8>) {
            let _ = generation_in(&answer);
            let mut own = vec![0; FAMILY_HEADER_SIZE];
            own.extend(answer);
            let _ = generation_in(&own);
        }
    }
}
