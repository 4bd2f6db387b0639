//! Earlier data that an experiment refers to: read, checked and kept with the experiment.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;

use crate::diagnostic::listed;
use crate::digest::sha256;
use crate::document::Reading;
use crate::experiment::{ExperimentFile, ReferenceEntry};
use crate::files::{Read, beside, open, shown};
use crate::resolved::{Reference, ReferenceData, Variant};
use crate::traffic::TrafficEntry;

/// More than any published run has; a file beyond that is another kind of file.
const OBSERVATIONS_MAX: usize = 10_000;

/// The experiment's references, with what their files hold.
pub(crate) fn references(
    reading: &mut Reading<'_>,
    file: &ExperimentFile,
    variants: &[Variant],
    read: Read<'_>,
) -> Vec<Reference> {
    let mut labels: BTreeSet<&str> = variants.iter().map(|v| v.label.as_str()).collect();
    let mut references = Vec::new();
    for entry in &file.references {
        let label = entry.label.get_ref();
        if !labels.insert(label) {
            reading
                .error(
                    entry.label.span(),
                    format!("label {label:?} is given twice"),
                )
                .with_help("a label names one variant, or one set of earlier data");
        }
        let mut strata = BTreeMap::new();
        let traffic = traffic(reading, file, entry);
        for (family, named) in traffic.into_iter().flat_map(|_| &entry.files) {
            let measured = traffic.and_then(|of| of.strata().find(|of| of.family == *family));
            let Some(stratum) = measured else {
                reading
                    .warning(named.span(), format!("{family} is not measured"))
                    .with_help("these data are not shown");
                continue;
            };
            if let Some(data) = data(reading, named, read) {
                strata.insert(stratum, data);
            }
        }
        references.push(Reference {
            label: label.clone(),
            strata,
        });
    }
    references
}

/// The traffic under which a reference was measured; an error where that is none of the experiment's.
fn traffic<'f>(
    reading: &mut Reading<'_>,
    file: &'f ExperimentFile,
    entry: &ReferenceEntry,
) -> Option<&'f TrafficEntry> {
    let named = match (&entry.traffic, file.traffics.as_slice()) {
        (Some(named), _) => named,
        (None, [only]) => return Some(only),
        (None, _) => {
            let message = "`traffic` is missing: the experiment has several";
            let span = entry.label.span();
            let diagnostic = reading.error(span, message);
            diagnostic.with_help("name one of the experiment's: traffic = \"imix\"");
            return None;
        }
    };
    let names = || file.traffics.iter().filter_map(TrafficEntry::name);
    let found = file.traffics.iter().find(|of| {
        let name = of.name();
        name.is_some_and(|name| name.as_str() == named.get_ref())
    });
    if found.is_none() {
        let message = format!("no [[traffic]] has the name {:?}", named.get_ref());
        let all = listed(names().map(|name| name.to_string()));
        let diagnostic = reading.error(named.span(), message);
        diagnostic.with_help(match all.as_str() {
            "" => "leave it out: the only traffic has no name".to_owned(),
            all => format!("there are: {all}"),
        });
    }
    found
}

fn data(
    reading: &mut Reading<'_>,
    named: &Spanned<String>,
    read: Read<'_>,
) -> Option<ReferenceData> {
    let path = beside(&reading.source.path, named.get_ref());
    let place = Some((reading.source, named.span()));
    let source = open(&path, read, place, reading.diagnostics)?;
    // Whatever the file is, the messages quote nothing of it.
    match observations(&source.text) {
        Ok(observations_pps) => Some(ReferenceData {
            path: named.get_ref().clone(),
            sha256: sha256(source.text.as_bytes()),
            observations_pps,
        }),
        Err(Unreadable { line, what }) => {
            let mut at = shown(&path);
            if let Some(line) = line {
                at = format!("{at}:{line}");
            }
            let place = Some((reading.source, named.span()));
            reading
                .diagnostics
                .error(place, format!("{at}: {what}"))
                .with_help(
                    "give one observation a line, in frames per second, as ministat reads them",
                );
            None
        }
    }
}

/// What keeps a file from being a list of observations.
#[derive(Debug, PartialEq, Eq)]
struct Unreadable {
    /// From 1; none where it is the whole file.
    line: Option<usize>,
    what: String,
}

/// The first word of every line; empty lines and those that begin with `#` hold none.
fn observations(text: &str) -> Result<Vec<f64>, Unreadable> {
    let mut observations = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some(word) = line.split_whitespace().next() else {
            continue;
        };
        if word.starts_with('#') {
            continue;
        }
        let unreadable = |what: String| Unreadable {
            line: Some(number),
            what,
        };
        let observation: Option<f64> = word.parse().ok();
        match observation.filter(|pps| pps.is_finite() && *pps >= 0.0) {
            Some(pps) => observations.push(pps),
            None => {
                return Err(unreadable(
                    "the line does not begin with a forwarding rate".into(),
                ));
            }
        }
        if observations.len() > OBSERVATIONS_MAX {
            let what = format!("there are more than {OBSERVATIONS_MAX} observations");
            return Err(unreadable(what));
        }
    }
    if observations.is_empty() {
        return Err(Unreadable {
            line: None,
            what: "there is no observation in it".into(),
        });
    }
    Ok(observations)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NO_RATE: &str = "the line does not begin with a forwarding rate";

    #[test]
    fn the_first_word_of_a_line_is_the_observation() {
        assert_eq!(
            observations("# pps\n\n 1200000.5 x\n0\r\n3e6\n"),
            Ok(vec![1_200_000.5, 0.0, 3e6])
        );
        for (text, line, what) in [
            ("", None, "there is no observation in it"),
            ("1\n-2\n", Some(2), NO_RATE),
            ("nan", Some(1), NO_RATE),
            ("\ninf", Some(2), NO_RATE),
            ("root:x:0:0", Some(1), NO_RATE),
        ] {
            let what = what.to_owned();
            assert_eq!(
                observations(text),
                Err(Unreadable { line, what }),
                "{text:?}"
            );
        }
        let many = "1\n".repeat(OBSERVATIONS_MAX + 1);
        assert!(observations(&many).is_err());
        assert!(observations(&many[2..]).is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            if let Ok(observations) = observations(&text) {
                prop_assert!(!observations.is_empty());
                prop_assert!(observations.iter().all(|pps| pps.is_finite()));
            }
        }
    }
}
