//! Which results are meant.

use std::fmt;
use std::str::FromStr;

/// Which results are meant: all that agree with everything that is said.
///
/// A text is a part of what it is compared with, or, with `*`, `?` or `[…]` in it, a pattern for the
/// whole; small and capital letters are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The CPU, the machine or what the results call their hardware.
    pub platform: Option<String>,
    /// The network interface controller.
    pub nic: Option<String>,
    /// Release of the kernel, or revision of the operating system.
    pub os: Option<String>,
    /// The experiment's name, its question or the topic.
    pub topic: Option<String>,
    /// A factor of the variants, or `factor=level`; the level then is the whole of it.
    pub factor: Option<String>,
    /// Not measured before.
    pub since: Option<Moment>,
    /// Not measured after.
    pub until: Option<Moment>,
    /// A variant, by its name in files or its label.
    pub variant: Option<String>,
    /// The address family, or the stratum: `inet` is every traffic of that family, `inet-imix` one.
    pub family: Option<String>,
}

/// A day, or as much of it as is said: `2016`, `2016-08`, `2016-08-03`, also with a time of day behind
/// it, UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment(String);

/// A text that is no [`Moment`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a date, like 2016, 2016-08, 2016-08-03 or 2016-08-03T12:00:00Z")]
pub struct MomentError;

impl FromStr for Moment {
    type Err = MomentError;

    fn from_str(text: &str) -> Result<Self, MomentError> {
        const WHOLE: &[u8] = b"0000-00-00T00:00:00Z";
        let has_form = text.bytes().zip(WHOLE).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            other => byte == *other,
        });
        let number = |from: usize| text.get(from..from + 2).and_then(|text| text.parse().ok());
        let is_calendar = |from: usize, most: u32| {
            text.len() <= from || number(from).is_some_and(|number| (1..=most).contains(&number))
        };
        let is_whole = matches!(text.len(), 4 | 7 | 10 | 20);
        if has_form && is_whole && is_calendar(5, 12) && is_calendar(8, 31) {
            Ok(Self(text.to_owned()))
        } else {
            Err(MomentError)
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Conditions in SQL on the columns of `results` and, where `of_variants`, of `variants` and `family`.
#[derive(Debug)]
pub(crate) struct Conditions {
    pub(crate) sql: String,
    pub(crate) parameters: Vec<String>,
}

impl Filter {
    /// The same whatever the date is.
    pub(crate) fn without_dates(&self) -> Self {
        Self {
            since: None,
            until: None,
            ..self.clone()
        }
    }

    pub(crate) fn conditions(&self, of_variants: bool) -> Conditions {
        let mut conditions = Conditions {
            sql: "TRUE".to_owned(),
            parameters: Vec::new(),
        };
        for (columns, text) in [
            (&["results.platform", "results.machine"][..], &self.platform),
            (&["results.nic"], &self.nic),
            (&["results.os"], &self.os),
            (&["results.topic", "results.question"], &self.topic),
        ] {
            if let Some(text) = text {
                conditions.and_any(columns, text);
            }
        }
        if let Some(factor) = &self.factor {
            conditions.and_factor(factor, of_variants);
        }
        // What is known of one of them less exactly is compared as far as it is known.
        for (moment, comparison) in [(&self.since, ">="), (&self.until, "<=")] {
            if let Some(moment) = moment {
                let parameter = conditions.parameter(moment.to_string());
                conditions.and(&format!(
                    "substr(results.date, 1, length({parameter})) {comparison} \
                     substr({parameter}, 1, length(results.date))"
                ));
            }
        }
        if of_variants {
            if let Some(text) = &self.variant {
                conditions.and_any(&["variants.name", "variants.label"], text);
            }
            if let Some(family) = &self.family {
                let parameter = conditions.parameter(family.clone());
                conditions.and(&format!(
                    "(family = {parameter} OR substr(family, 1, length({parameter}) + 1) = {parameter} || '-')"
                ));
            }
        }
        conditions
    }
}

impl Conditions {
    fn parameter(&mut self, text: String) -> String {
        self.parameters.push(text);
        format!("?{}", self.parameters.len())
    }

    fn and(&mut self, condition: &str) {
        self.sql += &format!(" AND ({condition})");
    }

    fn and_any(&mut self, columns: &[&str], text: &str) {
        let parameter = self.parameter(text.to_ascii_lowercase());
        let any: Vec<String> = columns
            .iter()
            .map(|column| matches(column, text, &parameter))
            .collect();
        self.and(&any.join(" OR "));
    }

    fn and_factor(&mut self, text: &str, of_variants: bool) {
        let (factor, level) = match text.split_once('=') {
            Some((factor, level)) => (factor, Some(level)),
            None => (text, None),
        };
        let parameter = self.parameter(factor.to_ascii_lowercase());
        let mut condition = matches("factor", factor, &parameter);
        if let Some(level) = level {
            let parameter = self.parameter(level.to_ascii_lowercase());
            // A part of a level is another level: 1 is not 10.
            let comparison = if is_pattern(level) { "GLOB" } else { "=" };
            condition += &format!(" AND lower(level) {comparison} {parameter}");
        }
        self.and(&if of_variants {
            format!(
                "EXISTS (SELECT 1 FROM levels WHERE levels.variant = variants.id AND {condition})"
            )
        } else {
            format!(
                "EXISTS (SELECT 1 FROM levels JOIN variants ON variants.id = levels.variant \
                 WHERE variants.results = results.id AND {condition})"
            )
        });
    }
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

fn matches(column: &str, text: &str, parameter: &str) -> String {
    if is_pattern(text) {
        format!("lower({column}) GLOB {parameter}")
    } else {
        format!("instr(lower({column}), {parameter}) > 0")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_moment_is_a_date_as_far_as_it_is_said() {
        for text in ["2016", "2016-08", "2016-08-03", "2016-08-03T12:00:00Z"] {
            assert_eq!(text.parse::<Moment>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "16",
            "2016-8",
            "2016-13",
            "2016-00-01",
            "2016-08-32",
            "2016-08-03T12",
            "today",
        ] {
            assert_eq!(text.parse::<Moment>(), Err(MomentError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_moment_or_refused(text: String) {
            if let Ok(moment) = text.parse::<Moment>() {
                prop_assert_eq!(moment.to_string(), text);
            }
        }
    }
}
