//! Warnings summed up by their cause: a line for each code, with counts and ranges.

use std::collections::BTreeSet;

use crate::format::{counted, percent_range};
use crate::profile_sections::ProfilesSection;
use crate::profiles::left_out;
use crate::report::{Report, Warning};
use crate::text::columns;

/// A warning with its subjects and, where it has one, its remedy.
pub(crate) fn in_full(warning: &Warning) -> String {
    let remedy = warning
        .remedy
        .as_ref()
        .map_or_else(String::new, |remedy| format!("; {remedy}"));
    format!("{}{remedy}", without_remedy(warning))
}

fn without_remedy(warning: &Warning) -> String {
    match warning.subjects.join("; ") {
        subjects if subjects.is_empty() => warning.text.clone(),
        subjects => format!("{subjects}: {}", warning.text),
    }
}

/// In a warning of a tester that costs more than the best: what that makes of every rate.
pub(crate) const PART_OF_A_PACKET: &str = "part of every ns/packet";

/// All warnings of one code.
pub(crate) struct Cause<'a> {
    pub(crate) code: &'a str,
    warnings: Vec<&'a Warning>,
}

/// A line that stands for the warnings of a cause.
pub(crate) struct Line {
    pub(crate) text: String,
    /// Whether it says all that they say.
    pub(crate) is_whole: bool,
}

/// The causes of a report's warnings, in the order in which they come first.
pub(crate) fn causes(report: &Report) -> Vec<Cause<'_>> {
    let mut causes: Vec<Cause<'_>> = Vec::new();
    for warning in &report.warnings {
        match causes.iter_mut().find(|cause| cause.code == warning.code) {
            Some(cause) => cause.warnings.push(warning),
            None => causes.push(Cause {
                code: &warning.code,
                warnings: vec![warning],
            }),
        }
    }
    causes
}

impl Cause<'_> {
    /// As much as fits in `room` columns: a single warning as it is, with its remedy or without; else what
    /// the warnings have in common, with whom they concern, named or counted.
    pub(crate) fn line(&self, profiles: Option<&ProfilesSection>, room: usize) -> Line {
        let fits = |text: &String| columns(text) <= room;
        if let [warning] = self.warnings[..] {
            let whole = Some(in_full(warning)).filter(fits);
            let is_whole = whole.is_some();
            if let Some(text) = whole.or_else(|| Some(without_remedy(warning)).filter(fits)) {
                return Line { text, is_whole };
            }
        }
        let summary = self.summary(profiles, room);
        let subjects: BTreeSet<&str> = self
            .warnings
            .iter()
            .flat_map(|warning| &warning.subjects)
            .map(String::as_str)
            .collect();
        let text = match self.noun() {
            Some(noun) if !subjects.is_empty() => {
                let names = subjects.iter().copied().collect::<Vec<_>>().join("; ");
                let named = format!("{summary}: {names}");
                let counted = format!("{summary}: {}", counted(subjects.len() as u64, noun));
                let mut texts = [named, counted].into_iter();
                texts.find(fits).unwrap_or(summary)
            }
            _ => summary,
        };
        Line {
            text,
            is_whole: false,
        }
    }

    /// What its warnings have in common.
    fn summary(&self, profiles: Option<&ProfilesSection>, room: usize) -> String {
        let number = self.warnings.len() as u64;
        let (size, signed) = (self.range(false), self.range(true));
        let text = match self.code {
            "W101" => "too few blocks to show any difference",
            "W102" => "too few blocks for so many comparisons at once",
            "W103" => "too few blocks for the A/A control to be able to fail",
            "W104" => return format!("the baseline differs from its own copy by {signed}"),
            "W105" => return format!("effects below the control's half-width, {signed}"),
            "W106" => {
                let blocks = counted(number, "outlying block");
                return format!("{blocks}, kept; estimates move by {size}");
            }
            "W107" => "held by a limit that several variants share",
            "W108" => {
                return format!("slices depend on the one before; effects move by up to {size}");
            }
            "W109" => return format!("slices depend on their place; effects move by up to {size}"),
            "W110" => "block effects or slices lie in two groups",
            "W201" => "the run is not finished",
            "W202" => "the blocks come from several sessions",
            "W203" => return format!("{} of noise on this machine", counted(number, "source")),
            "W204" => "not run in this lab",
            "W205" => {
                let effects = counted(number, "block effect");
                return format!("{effects} left out, because rates are missing");
            }
            "W206" => "verdicts that would change if invalid trials were counted",
            "W207" => "there is no A/A control",
            "W208" => "blocks given up, because every attempt was invalid",
            "W209" => "records were cut short; their blocks are measured again",
            "W210" => "verdicts that would change if disturbed time were counted",
            "W211" => "the rates of some blocks rest on disturbed time too",
            "W212" => "the order of the slices was not random; drift reads as an effect",
            "W213" if self.is_dearer() => {
                "measured without eBPF programs: the same effect is a smaller part"
            }
            "W213" => "frames were not sent and counted by eBPF programs",
            "W217" => return format!("offered load differs from the baseline's by {signed}"),
            "W218" => "forwarded all that was offered, and could do more",
            "W219" => "no profiles, though asked for: nothing says why a rate changed",
            "W220" => match profiles {
                Some(section) => return left_out(section, " profiles", room),
                None => "profiles left out",
            },
            "W223" => "nothing was forwarded in some blocks",
            "W224" => "the records of some blocks are missing",
            "W225" => return format!("others had the load's CPU for {size} of the time"),
            "W226" => "observations of 0 although frames were forwarded",
            "W227" => "the system clock was changed during the run",
            "W228" => return format!("CPUs of the load were clocked down by {size}"),
            "W229" => return format!("disturbed blocks have another effect, by {size}"),
            "W230" => "the kernel hides the names of eBPF programs",
            "W231" => "the kernel interprets eBPF programs",
            "W232" => "variants that do other work than their baseline",
            "W233" => "checked frames were wrong in attempts that do not count",
            _ => return counted(number, "warning"),
        };
        text.to_owned()
    }

    /// What its warnings are about, where that is worth naming.
    fn noun(&self) -> Option<&'static str> {
        match self.code {
            "W101" | "W102" | "W105" | "W106" | "W206" | "W210" | "W229" => Some("comparison"),
            "W103" | "W104" | "W108" | "W109" | "W201" | "W202" | "W203" | "W207" | "W208"
            | "W209" | "W211" | "W212" | "W213" | "W219" | "W220" | "W224" | "W227" | "W228"
            | "W230" | "W231" | "W232" => None,
            "W225" => Some("program"),
            _ => Some("variant"),
        }
    }

    /// Whether what sends and counts is part of every ns/packet.
    fn is_dearer(&self) -> bool {
        let mut warnings = self.warnings.iter();
        warnings.any(|warning| warning.text.contains(PART_OF_A_PACKET))
    }

    /// From the smallest to the largest figure of its warnings: `-1.2 to +0.8 %`, or without signs.
    fn range(&self, with_sign: bool) -> String {
        let sizes = self.warnings.iter().filter_map(|warning| warning.percent);
        percent_range(
            sizes.map(|size| if with_sign { size } else { size.abs() }),
            with_sign,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(code: &str, subject: &str, percent: f64) -> Warning {
        Warning {
            code: code.to_owned(),
            subjects: vec![subject.to_owned()],
            text: "a text that is far too long for a line of its own, as most of them are"
                .to_owned(),
            remedy: Some("do something about it".to_owned()),
            percent: Some(percent),
        }
    }

    #[test]
    fn a_dearer_tester_makes_effects_smaller_and_another_one_does_not() {
        let mut dearer = warning("W213", "lab", 0.0);
        dearer.text = format!("frames were sent otherwise, which is {PART_OF_A_PACKET}");
        for (warning, part) in [(dearer, true), (warning("W213", "lab", 0.0), false)] {
            let cause = Cause {
                code: "W213",
                warnings: vec![&warning],
            };
            let text = cause.summary(None, 74);
            assert_eq!(text.contains("a smaller part"), part, "{text}");
            assert!(columns(&format!("W213  {text}")) <= 80, "{text}");
        }
    }

    /// Every code that `docs/warnings.md` has for a run is summed up in words of its own.
    #[test]
    fn every_code_has_a_summary() {
        // Of `fwdlab compare` alone, which prints its warnings in full.
        let elsewhere = ["W111", "W112", "W214", "W215", "W216", "W221", "W222"];
        let documented = include_str!("../../../docs/warnings.md")
            .lines()
            .filter_map(|line| line.strip_prefix("| W")?.get(..3))
            .map(|digits| format!("W{digits}"))
            .filter(|code| !elsewhere.contains(&code.as_str()));
        let mut codes = 0;
        for code in documented {
            codes += 1;
            let warnings = [warning(&code, "a", 0.3), warning(&code, "b", 120.0)];
            let cause = Cause {
                code: &code,
                warnings: warnings.iter().collect(),
            };
            let text = cause.summary(None, 74);
            assert!(!text.contains("warning"), "{code}: {text}");
            let counted = cause
                .noun()
                .map_or_else(String::new, |noun| format!(": 123 {noun}s"));
            let line = format!("{code}  {text}{counted}");
            assert!(columns(&line) <= 80, "{line}");
        }
        assert!(codes > 20, "{codes}");
    }
}
