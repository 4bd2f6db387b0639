//! FreeBSD's `kern.random.harvest.mask`: the kernel keeps some of its bits, whatever is written.

use fwdlab_model::{Values, Variant};

use super::Mechanism;
use super::held::Held;
use super::question::{Answers, Question};
use super::step::{Action, Step};
use super::sysctl::{on_freebsd, shown};
use crate::{LabError, Moved};

/// The name of the sysctl.
pub(super) const NAME: &str = "kern.random.harvest.mask";
/// The number of a release: 1500068 is one of FreeBSD 15.
const RELEASE: &str = "kern.osreldate";
/// With which options a kernel was built.
const CONFIGURATION: &str = "kern.conftxt";

const NET_ETHER: u32 = 1 << 5;
const UMA: u32 = 1 << 10;

/// The mask, set to a level's value.
pub(super) struct HarvestMask {
    held: Held,
    /// The values of all levels.
    values: Vec<String>,
}

impl HarvestMask {
    /// That of a factor whose levels have these values.
    pub(super) fn new(factor: &str, values: &Values, of_levels: Vec<String>) -> Self {
        Self {
            held: on_freebsd(factor, NAME, values),
            values: of_levels,
        }
    }
}

/// The bits that a kernel keeps as they were: those of the sources that are nothing but hardware, and two that it harvests
/// from only where it was built so.
///
/// # Source
/// FreeBSD, `sys/dev/random/random_harvestq.c`: `random_check_uint_harvestmask`, `_RANDOM_HARVEST_ETHER_OFF`,
/// `_RANDOM_HARVEST_UMA_OFF`; `RANDOM_PURE_START` of `sys/sys/random.h`, which 13 and 15 have moved: CALLOUT and RANDOMDEV
/// came before it. 11 keeps no bit.
fn kept_bits(answers: &Answers) -> u32 {
    let release = answers.get(&shown(RELEASE));
    let release = release.and_then(|number| number.parse::<u32>().ok());
    let first_of_hardware = match release.map(|number| number / 100_000) {
        None | Some(..=11) => return 0,
        Some(12) => 11,
        Some(13 | 14) => 12,
        Some(_) => 13,
    };
    let configuration = answers.get(&shown(CONFIGURATION)).unwrap_or_default();
    let has = |option| {
        let mut lines = configuration.lines();
        lines.any(|line| line.split_whitespace().eq(["options", option]))
    };
    let off = |is_built_in: bool, bit| if is_built_in { 0 } else { bit };
    u32::MAX << first_of_hardware
        | off(has("RANDOM_ENABLE_ETHER"), NET_ETHER)
        | off(has("RANDOM_ENABLE_UMA"), UMA)
}

/// Whether two masks are one to a kernel that keeps some bits.
fn is_same(one: &str, other: &str, kept: u32) -> bool {
    match (one.trim().parse::<u32>(), other.trim().parse::<u32>()) {
        (Ok(one), Ok(other)) => (one ^ other) & !kept == 0,
        _ => false,
    }
}

fn questions() -> [Question; 2] {
    [RELEASE, CONFIGURATION].map(|name| Question::maybe(shown(name)))
}

impl Mechanism for HarvestMask {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let mut needs = self.held.needs(variant)?;
        needs.extend(questions());
        Ok(needs)
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let lacking = self.held.lacking(variant, answers)?;
        let (None, Some(asked)) = (&lacking, self.held.value(variant)) else {
            return Ok(lacking);
        };
        let kept = kept_bits(answers);
        let mut others = self.values.iter().filter(|other| **other != asked);
        Ok(others.find(|other| is_same(other, &asked, kept)).map(|other| {
            format!(
                "{NAME}={asked} and {other} differ only in bits that its kernel keeps as they are (NET_ETHER and UMA, \
                 unless it is built with them, and hardware sources)"
            )
        }))
    }

    fn looks(&self) -> Vec<Question> {
        self.held.looks()
    }

    fn keep(&mut self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        self.held.keep(answers)
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        self.held.actions(variant)
    }

    fn reads(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let mut reads = self.held.reads(variant)?;
        if !reads.is_empty() {
            reads.extend(questions());
        }
        Ok(reads)
    }

    fn moved(&mut self, variant: &Variant, answers: &Answers) -> Result<Option<Moved>, LabError> {
        let Some(asked) = self.held.value(variant) else {
            return Ok(None);
        };
        let stands = answers.get(&shown(NAME)).unwrap_or_default();
        let is_as_asked = is_same(stands, &asked, kept_bits(answers));
        Ok((!is_as_asked).then(|| Moved::of(NAME, asked, stands)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(release: &str, configuration: &str) -> Answers {
        let answers = [
            (shown(RELEASE), release),
            (shown(CONFIGURATION), configuration),
        ];
        Answers::of("router", answers)
    }

    // FreeBSD, `sys/dev/random/random_harvestq.c`, `random_check_uint_harvestmask`. A 15 of amd64 with RDRAND (bit 17) reads
    // 131423 where 351 was written; on 13 and 14 that source is bit 16.
    #[test]
    fn bits_that_the_kernel_keeps_need_not_follow() {
        for (release, asked, stands, is_as_asked) in [
            ("1500068", "351", "131423", true),
            ("1600004", "351", "131423", true),
            ("1403000", "351", "65887", true),
            ("1203000", "351", "65887", true),
            // What it does not keep has to follow: INTERRUPT, then RANDOMDEV of 15 and CALLOUT of 13.
            ("1500068", "351", "131551", false),
            ("1500068", "351", "4447", false),
            ("1403000", "351", "2399", false),
            // NET_ETHER and UMA.
            ("1500068", "1407", "351", true),
            ("1104001", "351", "65887", false),
            ("", "351", "131423", false),
            ("1500068", "351", "", false),
            ("1500068", "default", "default", false),
        ] {
            let kept = kept_bits(&answers(release, "options\tINET\n"));
            let is_same = is_same(stands, asked, kept);
            assert_eq!(is_same, is_as_asked, "{release}: {asked} {stands}");
        }
    }

    #[test]
    fn a_kernel_that_harvests_from_frames_has_to_follow() {
        let built_so = "options\tRANDOM_ENABLE_ETHER\nident\tGENERIC\n";
        let kept = kept_bits(&answers("1500068", built_so));
        assert!(!is_same("351", "383", kept));
        assert!(is_same("351", "1375", kept));
    }
}
