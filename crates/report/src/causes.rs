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
        let (summary, noun) = self.summary(profiles, room);
        let subjects: BTreeSet<&str> = self
            .warnings
            .iter()
            .flat_map(|warning| &warning.subjects)
            .map(String::as_str)
            .collect();
        let text = match noun {
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

    /// What its warnings have in common, and what they are about, where that is worth naming.
    fn summary(
        &self,
        profiles: Option<&ProfilesSection>,
        room: usize,
    ) -> (String, Option<&'static str>) {
        const VARIANT: Option<&str> = Some("variant");
        const COMPARISON: Option<&str> = Some("comparison");
        let number = self.warnings.len() as u64;
        let (text, noun) = match self.code {
            "W101" => ("too few blocks to show any difference", COMPARISON),
            "W102" => ("too few blocks for so many comparisons at once", COMPARISON),
            "W103" => (
                "too few blocks for the A/A control to be able to fail",
                None,
            ),
            "W104" => {
                let size = self.range(true);
                return (
                    format!("the baseline differs from its own copy by {size}"),
                    None,
                );
            }
            "W105" => {
                let size = self.range(true);
                let text = format!("effects below the control's half-width, {size}");
                return (text, COMPARISON);
            }
            "W106" => {
                let blocks = counted(number, "outlying block");
                let size = self.range(false);
                return (
                    format!("{blocks}, kept; estimates move by {size}"),
                    COMPARISON,
                );
            }
            "W107" => ("held by a limit that several variants share", VARIANT),
            "W108" => {
                let size = self.range(false);
                let text = format!("slices depend on the one before; effects move by up to {size}");
                return (text, None);
            }
            "W109" => {
                let size = self.range(false);
                let text = format!("slices depend on their place; effects move by up to {size}");
                return (text, None);
            }
            "W110" => ("block effects or slices lie in two groups", VARIANT),
            "W201" => ("the run is not finished", None),
            "W202" => ("the blocks come from several sessions", None),
            "W203" => {
                let sources = counted(number, "source");
                return (format!("{sources} of noise on this machine"), None);
            }
            "W204" => ("not run in this lab", VARIANT),
            "W205" => {
                let effects = counted(number, "block effect");
                return (
                    format!("{effects} left out, because rates are missing"),
                    VARIANT,
                );
            }
            "W225" => {
                let size = self.range(false);
                return (
                    format!("others had the load's CPU for {size} of the time"),
                    Some("program"),
                );
            }
            "W226" => ("observations of 0 although frames were forwarded", VARIANT),
            "W227" => ("the system clock was changed during the run", None),
            "W228" => {
                let size = self.range(false);
                return (
                    format!("CPUs of the load were clocked down by {size}"),
                    None,
                );
            }
            "W229" => {
                let size = self.range(false);
                let text = format!("disturbed blocks have another effect, by {size}");
                return (text, COMPARISON);
            }
            "W224" => ("the records of some blocks are missing", None),
            "W223" => ("nothing was forwarded in some blocks", VARIANT),
            "W206" => (
                "verdicts that would change if invalid trials were counted",
                COMPARISON,
            ),
            "W207" => ("there is no A/A control", None),
            "W208" => ("blocks given up, because every attempt was invalid", None),
            "W209" => (
                "records were cut short; their blocks are measured again",
                None,
            ),
            "W210" => (
                "verdicts that would change if disturbed time were counted",
                COMPARISON,
            ),
            "W211" => ("the rates of some blocks rest on disturbed time too", None),
            "W212" => (
                "the order of the slices was not random; drift reads as an effect",
                None,
            ),
            "W213" if self.is_dearer() => (
                "measured without eBPF programs: the same effect is a smaller part",
                None,
            ),
            "W213" => ("frames were not sent and counted by eBPF programs", None),
            "W217" => {
                let size = self.range(true);
                let text = format!("offered load differs from the baseline's by {size}");
                return (text, VARIANT);
            }
            "W218" => ("forwarded all that was offered, and could do more", VARIANT),
            "W219" => (
                "no profiles, though asked for: nothing says why a rate changed",
                None,
            ),
            "W220" => {
                let left_out = profiles.map(|section| left_out(section, " profiles", room));
                return (
                    left_out.unwrap_or_else(|| "profiles left out".to_owned()),
                    None,
                );
            }
            _ => return (counted(number, "warning"), VARIANT),
        };
        (text.to_owned(), noun)
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

    /// Every code that `docs/warnings.md` has for a run is summed up in words of its own.
    #[test]
    fn a_dearer_tester_makes_effects_smaller_and_another_one_does_not() {
        let mut dearer = warning("W213", "lab", 0.0);
        dearer.text = format!("frames were sent otherwise, which is {PART_OF_A_PACKET}");
        for (warning, part) in [(dearer, true), (warning("W213", "lab", 0.0), false)] {
            let cause = Cause {
                code: "W213",
                warnings: vec![&warning],
            };
            let (text, _) = cause.summary(None, 74);
            assert_eq!(text.contains("a smaller part"), part, "{text}");
            assert!(columns(&format!("W213  {text}")) <= 80, "{text}");
        }
    }

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
            let (text, noun) = cause.summary(None, 74);
            assert!(!text.contains("warning"), "{code}: {text}");
            let counted = noun.map_or_else(String::new, |noun| format!(": 123 {noun}s"));
            let line = format!("{code}  {text}{counted}");
            assert!(columns(&line) <= 80, "{line}");
        }
        assert!(codes > 20, "{codes}");
    }
}
