//! The settings of each variant as the files that a host is configured by.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fwdlab_model::{Binding, Resolved, devices};

/// The configuration sets, `<variant>/etc/sysctl.conf` and the like, by their paths.
///
/// Only what such files can say: levels that are set by programs, knobs or kernels are in the README.
pub(super) fn files(resolved: &Resolved) -> BTreeMap<PathBuf, String> {
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    for variant in &resolved.variants {
        let set = Path::new(variant.name.as_str());
        for (factor, level) in &variant.levels {
            let (file, lines) = match resolved.lab.bindings.get(factor) {
                Some(Binding::Sysctl { key, values, .. }) => {
                    let value = values.value(level);
                    ("etc/sysctl.conf", assignments(key, &one_line(&value)))
                }
                Some(Binding::Loader { tunable, values }) => {
                    let value = one_line(&values.value(level)).replace(['"', '\\'], "_");
                    let quoted = format!("\"{value}\"");
                    ("boot/loader.conf.local", assignments(tunable, &quoted))
                }
                Some(Binding::Nft(rulesets)) => match rulesets.get(&level.to_string()) {
                    Some(ruleset) if !ruleset.is_empty() => {
                        ("etc/nftables.conf", format!("{}\n", ruleset.trim_end()))
                    }
                    _ => continue,
                },
                _ => continue,
            };
            files.entry(set.join(file)).or_default().push_str(&lines);
        }
    }
    files
}

fn assignments(name: &str, value: &str) -> String {
    let mut lines = String::new();
    for name in devices(name) {
        let _ = writeln!(lines, "{}={value}", one_line(&name));
    }
    lines
}

/// A name or a value that stays on its line.
fn one_line(text: &str) -> String {
    let visible = |character: char| {
        if character.is_control() {
            '_'
        } else {
            character
        }
    };
    text.chars().map(visible).collect()
}
