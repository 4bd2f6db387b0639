//! The values that assignments leave behind, as a shell that runs nothing would have them.

use std::collections::BTreeMap;
use std::path::Path;

use fwdlab_archive::Place;

use super::Note;
use crate::{Assignment, Expansion, Operator};

/// Longer values are left as they stand: a few lines that name each other could ask for all memory.
const VALUE_BYTES_MAX: usize = 1 << 16;

/// What a variable is in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    /// Its text; where [`Value::is_open`], with what could not be expanded as it stands.
    pub(super) text: String,
    /// Where it is set.
    pub(super) place: Place,
    /// Whether something in it is no plain text: a command, or a variable that nothing sets.
    pub(super) is_open: bool,
}

/// The variables of some files, read one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Environment {
    values: BTreeMap<String, Value>,
}

impl Environment {
    /// Takes the assignments of one more file, and notes what stays as it stands.
    pub(super) fn read(&mut self, path: &Path, assignments: &[Assignment], notes: &mut Vec<Note>) {
        for assignment in assignments {
            let place = Place::line(path, assignment.line);
            let before = self.values.get(&assignment.name);
            let is_set = before.is_some_and(|value| !value.text.is_empty());
            if assignment.operator == Operator::Default && is_set {
                continue;
            }
            let (mut text, why_open) = self.expanded(assignment);
            let mut is_open = why_open.is_some();
            if let Some(why) = why_open {
                let name = &assignment.name;
                notes.push(Note::at(place.clone(), format!("{name}: {why}")));
            }
            if assignment.operator == Operator::Append
                && let Some(before) = before
            {
                text = format!("{}{text}", before.text);
                is_open |= before.is_open;
            }
            let value = Value {
                text,
                place,
                is_open,
            };
            self.values.insert(assignment.name.clone(), value);
        }
    }

    /// A variable that is set to something.
    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name).filter(|value| !value.text.is_empty())
    }

    /// All variables that are set to something, by name.
    pub(super) fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        let values = self
            .values
            .iter()
            .filter(|(_, value)| !value.text.is_empty());
        values.map(|(name, value)| (name.as_str(), value))
    }

    /// The text of an assignment, and why it is none of its own.
    fn expanded(&self, assignment: &Assignment) -> (String, Option<String>) {
        let text = assignment.value.as_str();
        match assignment.expansion {
            None => return (text.to_owned(), None),
            Some(Expansion::Command) => {
                let why = "holds a command, and nothing here is run; it stays as it stands";
                return (text.to_owned(), Some(why.into()));
            }
            Some(Expansion::Variable) => {}
        }
        let (mut expanded, mut why_open) = (String::new(), None);
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            expanded += &rest[..at];
            let (reference, behind) = reference(&rest[at..]);
            rest = behind;
            match reference.name.and_then(|name| self.values.get(name)) {
                Some(value) => {
                    expanded += &value.text;
                    if value.is_open {
                        why_open.get_or_insert_with(|| {
                            format!("{} is no plain text; it stays as it stands", reference.text)
                        });
                    }
                }
                None => {
                    expanded += reference.text;
                    why_open.get_or_insert_with(|| {
                        format!(
                            "nothing above it sets {}; it stays as it stands",
                            reference.text
                        )
                    });
                }
            }
            if expanded.len() > VALUE_BYTES_MAX {
                let why = "is longer than 64 KiB with its variables; it stays as it stands";
                return (text.to_owned(), Some(why.into()));
            }
        }
        expanded += rest;
        (expanded, why_open)
    }
}

/// `$NAME`, `${NAME}`, or what else begins with a dollar.
struct Reference<'a> {
    text: &'a str,
    /// None where it is more than a name.
    name: Option<&'a str>,
}

/// What a text that begins with a dollar refers to, and what stands behind that.
fn reference(text: &str) -> (Reference<'_>, &str) {
    let is_of_name = |character: char| character == '_' || character.is_ascii_alphanumeric();
    let of_length = |length: usize, name| {
        let (text, behind) = text.split_at(length);
        (Reference { text, name }, behind)
    };
    let inner = &text[1..];
    if let Some(braced) = inner.strip_prefix('{') {
        let Some(end) = braced.find('}') else {
            return of_length(text.len(), None);
        };
        let name = &braced[..end];
        let is_name = !name.is_empty() && name.chars().all(is_of_name);
        return of_length(end + 3, is_name.then_some(name));
    }
    let end = inner
        .find(|character| !is_of_name(character))
        .unwrap_or(inner.len());
    let name = &inner[..end];
    let is_name = name.starts_with(|first: char| first == '_' || first.is_ascii_alphabetic());
    of_length(end + 1, is_name.then_some(name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::LabConfig;

    fn environment(text: &str) -> (Environment, Vec<String>) {
        let (mut environment, mut notes) = (Environment::default(), Vec::new());
        if let Ok(lab) = LabConfig::parse(text.as_bytes()) {
            environment.read(Path::new("x.config"), &lab.variables, &mut notes);
        }
        let notes = notes.iter().map(ToString::to_string).collect();
        (environment, notes)
    }

    fn text<'a>(environment: &'a Environment, name: &str) -> Option<(&'a str, bool)> {
        let value = environment.value(name)?;
        Some((&value.text, value.is_open))
    }

    #[test]
    fn variables_above_are_put_in_place_and_nothing_else_is() {
        let (environment, notes) = environment(
            "A=\"a\"\nB=${A}\nC=\"$A-${A}_$B\"\n: ${D:=\"${C}!\"}\n: ${D:=\"no\"}\nE='$A'\n\
             F=\"$LATER\"\nLATER=1\nG=\"$(id) $A\"\nH=\"${A:-x} $F\"\nI=\n",
        );
        assert_eq!(text(&environment, "B"), Some(("a", false)));
        assert_eq!(text(&environment, "C"), Some(("a-a_a", false)));
        assert_eq!(text(&environment, "D"), Some(("a-a_a!", false)));
        assert_eq!(text(&environment, "E"), Some(("$A", false)));
        assert_eq!(text(&environment, "F"), Some(("$LATER", true)));
        assert_eq!(text(&environment, "G"), Some(("$(id) $A", true)));
        assert_eq!(text(&environment, "H"), Some(("${A:-x} $LATER", true)));
        assert_eq!(text(&environment, "I"), None);
        assert_eq!(
            notes,
            [
                "x.config:7: F: nothing above it sets $LATER; it stays as it stands",
                "x.config:9: G: holds a command, and nothing here is run; it stays as it stands",
                "x.config:10: H: nothing above it sets ${A:-x}; it stays as it stands",
            ]
        );
    }

    #[test]
    fn values_that_double_with_every_line_end() {
        let mut config = "A=xxxxxxxxxxxxxxxx\n".to_owned();
        for _ in 0..40 {
            config += "A=\"$A$A\"\n";
        }
        let (environment, notes) = environment(&config);
        assert!(environment.value("A").unwrap().text.len() <= VALUE_BYTES_MAX);
        assert!(notes[0].contains("longer than 64 KiB"), "{notes:?}");
    }

    proptest! {
        #[test]
        fn any_text_is_read(config in "([A-C]=|: \\$\\{A:=|[\"'${}A-C()é\\\\ \n+:-]){0,60}") {
            environment(&config);
        }
    }
}
