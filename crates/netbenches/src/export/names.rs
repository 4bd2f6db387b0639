//! Names in the archive's form.

use std::collections::BTreeSet;

use fwdlab_archive::name::first_free;
use fwdlab_model::{AddressFamily, LabKind, Stratum};

/// What the longest part of a path may be, so that every file system can hold it.
const LENGTH_MAX: usize = 100;

/// A text as one part of a path: letters, digits, `.`, `-` and `_`, the latter for anything else.
pub(super) fn safe_component(text: &str) -> String {
    let mut name = String::new();
    for character in text.chars() {
        let is_safe = character.is_ascii_alphanumeric() || matches!(character, '.' | '-');
        if is_safe && !(name.is_empty() && matches!(character, '.' | '-')) {
            name.push(character);
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
        if name.len() >= LENGTH_MAX {
            break;
        }
    }
    let name = name.trim_end_matches(['_', '.']);
    if name.is_empty() { "unknown" } else { name }.to_owned()
}

/// A key, with a number behind it where it is taken.
pub(super) fn unique(key: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = |number| format!("{key}-{number}");
    first_free(key.to_owned(), numbered, |name| taken.insert(name.clone()))
}

/// What stands where the archive has the network interface controller.
pub(super) const fn nic(kind: LabKind) -> &'static str {
    match kind {
        LabKind::Netns => "veth",
        LabKind::Router => "memory",
        LabKind::Ssh(_) => "unknown",
    }
}

/// The archive's name for the traffic of a stratum.
pub(super) fn pktgen_set(stratum: Stratum) -> String {
    let family = match stratum.family {
        AddressFamily::Inet => "inet4",
        AddressFamily::Inet6 => "inet6",
    };
    match stratum.traffic {
        Some(traffic) => format!("{family}-{traffic}"),
        None => family.to_owned(),
    }
}

/// A text that means itself between double quotes of a shell: the archive's scripts run `.info` files.
pub(super) fn shell_text(text: &str) -> String {
    let is_plain = |character: char| {
        (character == ' ' || character.is_ascii_graphic())
            && !matches!(character, '"' | '$' | '`' | '\\' | '!')
    };
    let plain = |character| if is_plain(character) { character } else { '_' };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_look_like_the_archives() {
        for (text, name) in [
            (
                "Intel(R) Xeon(R) CPU E5-2650 @ 2.00GHz",
                "Intel_R_Xeon_R_CPU_E5-2650_2.00GHz",
            ),
            ("../../etc", "etc"),
            ("..", "unknown"),
            ("-rf *", "rf"),
            ("a\nb", "a_b"),
            ("", "unknown"),
        ] {
            assert_eq!(safe_component(text), name);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_one_part_of_a_path(text: String) {
            let name = safe_component(&text);
            let parts: Vec<Component<'_>> = Path::new(&name).components().collect();
            prop_assert!(matches!(parts[..], [Component::Normal(_)]), "{}", name);
            prop_assert!(name.len() <= LENGTH_MAX && !name.starts_with(['.', '-']));
        }

        #[test]
        fn keys_are_unique(keys in prop::collection::vec("[ab](-2)?", 1..8)) {
            let mut taken = BTreeSet::new();
            let names: BTreeSet<String> = keys.iter().map(|key| unique(key, &mut taken)).collect();
            prop_assert_eq!(names.len(), keys.len());
        }

        #[test]
        fn any_text_means_itself_between_double_quotes(text: String) {
            prop_assert!(!shell_text(&text).contains(['"', '$', '`', '\\', '\n', '\0']));
        }
    }
}
