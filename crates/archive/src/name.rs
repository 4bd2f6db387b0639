//! Names of files and directories.

use std::iter;

use crate::error::ArchiveError;

/// What the longest name may be: two names of variants and one of a stratum fit in, and every file system can hold it,
/// with what stands around it while the file is written.
const LENGTH_MAX: usize = 225;

/// A text as a name: what a file's name should not hold becomes `-`.
#[must_use]
pub fn safe_name(text: &str) -> String {
    let name: String = text
        .chars()
        .map(|character| if is_safe(character) { character } else { '-' })
        .take(LENGTH_MAX)
        .collect();
    let name = name.trim_start_matches(['.', '-']);
    if name.is_empty() {
        "unnamed".into()
    } else {
        name.into()
    }
}

/// The first that is free of a name and those numbered from 2.
pub fn first_free<N>(name: N, numbered: impl Fn(usize) -> N, is_free: impl FnMut(&N) -> bool) -> N {
    let mut names = iter::once(name).chain((2..).map(numbered));
    let free = names.find(is_free);
    free.expect("there are more numbers than names")
}

/// Refuses a text that is no safe name.
pub(crate) fn checked_name(what: &'static str, text: &str) -> Result<(), ArchiveError> {
    let suggestion = safe_name(text);
    if suggestion == text {
        Ok(())
    } else {
        Err(ArchiveError::BadName {
            what,
            name: text.to_owned(),
            suggestion,
        })
    }
}

const fn is_safe(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_file_name_should_not_hold_is_replaced() {
        for (text, name) in [
            ("6.18.44", "6.18.44"),
            ("6.1.0-13-amd64 #1 SMP", "6.1.0-13-amd64--1-SMP"),
            ("../../etc/passwd", "etc-passwd"),
            ("-rf", "rf"),
            (".", "unnamed"),
            ("", "unnamed"),
        ] {
            assert_eq!(safe_name(text), name);
        }
        assert!(checked_name("label", "my.label_1-A").is_ok());
        assert!(checked_name("label", "a/b").is_err());
        assert!(checked_name("label", "").is_err());
    }

    proptest! {
        #[test]
        fn a_safe_name_is_one_part_of_a_path(text: String) {
            let name = safe_name(&text);
            prop_assert_eq!(std::path::Path::new(&name).components().count(), 1);
            prop_assert!(!name.starts_with('.') && name.len() <= LENGTH_MAX);
            prop_assert!(checked_name("label", &name).is_ok());
        }
    }
}
