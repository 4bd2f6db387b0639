//! Tunables of FreeBSD's iflib(9) that a driver reads when it attaches. Their sysctls show what was asked for; what stands is
//! what the kernel printed then.
//!
//! # Source
//! FreeBSD, `sys/net/iflib.c` of 13 and 16: `iflib_add_device_sysctl_pre` has them as `CTLFLAG_RWTUN`, and `mp_ndesc_handler`
//! shows what was asked for; `iflib_reset_qvalues` takes a number of descriptors that is too small or too large for the
//! nearest that the driver has, and one that is no power of two, or 0, for its default; `iflib_device_register` prints how many
//! there are, `iflib_msix_init` how many queues. `libexec/rc/rc.d/dmesg` keeps what is printed at boot.

use super::step::owned;
use crate::Moved;

/// Prints what drivers have said of their queues and descriptors.
pub(crate) fn attached() -> Vec<String> {
    owned(&["grep", "-i", "using [0-9]", "/var/run/dmesg.boot"])
}

/// The device and the variable of a tunable of iflib: `dev.ix.0.iflib.disable_msix` is ix0's `disable_msix`.
fn parts(name: &str) -> Option<(String, &str)> {
    let (device, variable) = name.strip_prefix("dev.")?.split_once(".iflib.")?;
    let (driver, unit) = device.split_once('.')?;
    Some((format!("{driver}{unit}"), variable))
}

/// What a variable is a number of, as the kernel prints it.
fn counted(variable: &str) -> Option<(&'static str, &'static str)> {
    Some(match variable {
        "override_ntxds" => ("TX", "descriptors"),
        "override_nrxds" => ("RX", "descriptors"),
        "override_ntxqs" => ("TX", "queues"),
        "override_nrxqs" => ("RX", "queues"),
        _ => return None,
    })
}

/// Whether a tunable is one that can be written to at any time, and is read when the driver attaches alone.
pub(crate) fn is_read_at_attach(name: &str) -> bool {
    parts(name).is_some_and(|(_, variable)| {
        counted(variable).is_some() || ["override_qs_enable", "disable_msix"].contains(&variable)
    })
}

/// How many of it a device has, as it said last.
fn standing(device: &str, (way, what): (&str, &str), printed: &str) -> Option<u32> {
    let named = format!("{device}:");
    let lines = printed.lines().rev();
    let mut lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.find_map(|words| {
        let place = words.iter().position(|word| **word == named)?;
        let mut said = words[place..].windows(3);
        said.find_map(|said| {
            let is_it = said[1].eq_ignore_ascii_case(way) && said[2] == what;
            is_it.then(|| said[0].parse().ok())?
        })
    })
}

/// Whether a device has said nothing of what a tunable is a number of.
pub(super) fn is_silent(name: &str, printed: &str) -> bool {
    parts(name).is_some_and(|(device, variable)| {
        counted(variable).is_some_and(|counted| standing(&device, counted, printed).is_none())
    })
}

/// What is not as asked where the levels have these values; none where it is, or where nothing tells.
pub(super) fn moved(name: &str, asked: &str, of_levels: &[String], printed: &str) -> Option<Moved> {
    let (device, variable) = parts(name)?;
    let counted = counted(variable)?;
    let stands = standing(&device, counted, printed)?;
    let (way, what) = counted;
    let of_asked = numbers(asked);
    // One of several rings is printed, and 0 is the driver's default.
    if !of_asked.contains(&stands) && !of_asked.contains(&0) {
        return Some(Moved::of(name, asked, format!("{stands} {way} {what}")));
    }
    let mut others = of_levels.iter().filter(|_| of_asked == [0]);
    let alike = others.find(|other| numbers(other) == [stands])?;
    Some(Moved(format!(
        "{name}={asked} and {alike} are the same: the driver's default is {stands} {way} {what}"
    )))
}

/// The numbers of a value, one a ring.
fn numbers(value: &str) -> Vec<u32> {
    let numbers = value.split([',', ' ']);
    numbers.filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "ix0: <Intel(R) X520 82599ES (SFI/SFP+)> port 0xd020-0xd03f mem 0xdf080000\n\
                           ix0: Using 512 TX descriptors and 4096 RX descriptors\n\
                           [3] ix0: Using 2048 TX descriptors and 4096 RX descriptors\n\
                           [3] ix0: Using 8 RX queues 4 TX queues\n\
                           ix1: Using 1024 TX descriptors and 1024 RX descriptors\n\
                           ix0: netmap queues/slots: TX 8/2048, RX 8/4096\n";

    // FreeBSD, `sys/net/iflib.c`, `iflib_reset_qvalues`; 4096 is the most of ix, and 2048 its default.
    #[test]
    fn what_a_driver_has_made_of_a_number_is_what_stands() {
        let of_levels = ["0", "1024", "2048"].map(str::to_owned);
        for (variable, asked, expected) in [
            ("override_ntxds", "2048", None),
            (
                "override_ntxds",
                "1000",
                Some("was set to \"1000\" and reads back as \"2048 TX descriptors\""),
            ),
            (
                "override_ntxds",
                "0",
                Some("=0 and 2048 are the same: the driver's default is 2048 TX descriptors"),
            ),
            ("override_nrxds", "0", None),
            (
                "override_nrxds",
                "8192",
                Some("was set to \"8192\" and reads back as \"4096 RX descriptors\""),
            ),
            // A driver with a ring for completions says how many the other has.
            ("override_nrxds", "8192,4096", None),
            (
                "override_ntxqs",
                "8",
                Some("was set to \"8\" and reads back as \"4 TX queues\""),
            ),
            ("override_nrxqs", "8", None),
            ("tx_abdicate", "1", None),
        ] {
            let name = format!("dev.ix.0.iflib.{variable}");
            let moved = moved(&name, asked, &of_levels, PRINTED);
            let expected = expected.map(|expected| match expected.strip_prefix('=') {
                Some(_) => name.clone() + expected,
                None => format!("{name} {expected}"),
            });
            assert_eq!(moved.map(|moved| moved.0), expected, "{name}={asked}");
        }
    }

    #[test]
    fn a_device_that_says_nothing_is_noticed() {
        for (name, is_told) in [
            ("dev.ix.1.iflib.override_ntxds", true),
            ("dev.ix.1.iflib.override_ntxqs", false),
            ("dev.ix.10.iflib.override_ntxds", false),
            ("dev.ix.1.iflib.simple_tx", true),
            ("hw.ix.max_interrupt_rate", true),
        ] {
            assert_eq!(is_silent(name, PRINTED), !is_told, "{name}");
        }
    }
}
