//! A sysctl: a file of the kernel's on Linux, set by `sysctl` on FreeBSD.

use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_model::{Values, devices, nearest};
use fwdlab_sys::NetworkNamespace;

use super::DutPlace;
use super::held::{Held, Holder};
use super::reading::Form;
use super::step::{Errand, Step, owned};
use crate::LabError;
use crate::topology::{DUT_IN, DUT_OUT};

const PROC_SYS: &str = "/proc/sys";

/// The file of a sysctl below `/proc/sys`: dots become slashes, placeholders the DUT's interfaces, whose own dots stay.
fn path(key: &str, [interface_in, interface_out]: [&str; 2]) -> String {
    let parts = key.split('.').map(|part| match part {
        "{dut-in}" => interface_in,
        "{dut-out}" => interface_out,
        part => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

/// The file of a sysctl of a Linux kernel.
pub(crate) fn path_at(place: &DutPlace, key: &str) -> String {
    format!("{PROC_SYS}/{}", path(key, place.ports()))
}

/// One of a Linux kernel.
pub(super) fn on_linux(factor: &str, key: &str, values: &Values, place: &DutPlace) -> Held {
    let holder = Holder::Files(Form::Words);
    Held::new(factor, vec![path_at(place, key)], values, holder)
}

/// Why a namespace has no readable sysctl at a path below `/proc/sys`.
///
/// # Errors
/// Where the namespace cannot be entered.
pub(crate) fn unreadable_in(
    namespace: &NetworkNamespace,
    path: &Path,
) -> Result<Option<String>, LabError> {
    let Ok(setting) = path.strip_prefix(PROC_SYS) else {
        return Ok(None);
    };
    let setting = setting.to_string_lossy();
    let key = key_of(&setting);
    if path.exists() {
        return Ok(Some(format!(
            "sysctl {key} exists only in the machine's own network namespace, not in the DUT's; measure it on a host \
             (docs/labs.md)"
        )));
    }
    let meant = namespace.run(|| nearest_setting(&setting))?;
    let meant = meant.map(|setting| format!("; did you mean {}?", key_of(&setting)));
    Ok(Some(format!(
        "this kernel has no readable sysctl {key}{}",
        meant.unwrap_or_default()
    )))
}

/// One of a FreeBSD host, or of several of its devices.
pub(super) fn on_freebsd(factor: &str, key: &str, values: &Values) -> Held {
    Held::new(factor, devices(key), values, Holder::Sysctls)
}

/// What reads a sysctl of FreeBSD.
pub(crate) fn shown(name: &str) -> Vec<String> {
    owned(&["sysctl", "-n", name])
}

/// What sets a sysctl of FreeBSD.
pub(super) fn set(name: &str, value: &str) -> Errand {
    Errand::of(&["sysctl", &format!("{name}={value}")])
}

/// A sysctl of FreeBSD that is put back as it was.
pub(crate) fn kept(name: &str, value: &str) -> Step {
    Step::kept(format!("sysctl {name} ({value})"), set(name, value))
}

/// The setting below `/proc/sys` that was probably meant: at every step the entry that is there, or the nearest one.
fn nearest_setting(setting: &str) -> Option<String> {
    let mut found = PathBuf::new();
    for part in setting.split('/') {
        let folder = Path::new(PROC_SYS).join(&found);
        if folder.join(part).exists() {
            found.push(part);
            continue;
        }
        let entries = fs::read_dir(folder).ok()?.flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        found.push(nearest(part, names.iter().map(String::as_str))?);
    }
    let is_setting = Path::new(PROC_SYS).join(&found).is_file();
    is_setting.then(|| found.to_string_lossy().into_owned())
}

/// The key of a setting, as a lab file has it.
fn key_of(setting: &str) -> String {
    let parts = setting.split('/').map(|part| match part {
        DUT_IN => "{dut-in}",
        DUT_OUT => "{dut-out}",
        part => part,
    });
    parts.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fwdlab_model::{Level, Variant, VariantName};

    use super::*;
    use crate::mechanism::Mechanism as _;
    use crate::mechanism::question::Answers;

    #[test]
    fn a_value_that_the_kernel_changes_reads_back_as_the_lab_says() {
        let rounded = BTreeMap::from([("1000".to_owned(), "992".to_owned())]);
        let held = on_freebsd("f", "kern.x", &Values::default());
        let mut held = held.reading_back(&rounded);
        for (level, stands, is_as_asked) in [
            (1000, "992", true),
            (1000, "1000", false),
            (2000, "2000", true),
            (2000, "1984", false),
        ] {
            let variant = Variant {
                name: VariantName::from_label("a"),
                label: "a".to_owned(),
                levels: BTreeMap::from([("f".to_owned(), Level::Integer(level))]),
                control_of: None,
                unavailable: None,
            };
            let answers = Answers::of("router", [(shown("kern.x"), stands)]);
            let moved = held.moved(&variant, &answers).unwrap();
            assert_eq!(moved.is_none(), is_as_asked, "{level} {stands}: {moved:?}");
        }
    }

    #[test]
    fn a_slip_in_a_key_is_seen_in_every_part() {
        let meant = |key: &str| {
            nearest_setting(&path(key, [DUT_IN, DUT_OUT])).map(|setting| key_of(&setting))
        };
        let rp_filter = Some("net.ipv4.conf.all.rp_filter".to_owned());
        assert_eq!(meant("net.ipv4.conf.all.rp_filer"), rp_filter);
        assert_eq!(meant("net.ipv4.cnf.all.rpfilter"), rp_filter);
        assert_eq!(meant("net.ipv4.conf.all.something_else"), None);
        assert_eq!(meant("net.ipv4.conf"), None);
    }

    #[test]
    fn sysctl_keys_name_files_and_interfaces() {
        assert_eq!(
            path("net.ipv4.conf.{dut-in}.rp_filter", ["eth0.10", "eth1"]),
            "net/ipv4/conf/eth0.10/rp_filter"
        );
    }
}
