//! Names that more than one mechanism has.

use crate::diagnostic::Span;
use crate::document::Reading;
use crate::placeholder;

pub(super) fn is_path_part(part: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_plain)
}

/// Whether a name is one that FreeBSD's kernel may have, `{0,1}` for several devices in it included.
pub(super) fn is_freebsd_name(
    reading: &mut Reading<'_>,
    span: Span,
    name: &str,
    what: &str,
) -> bool {
    let is_plain = |part: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-%".contains(&byte);
        !part.is_empty() && !part.starts_with('-') && part.bytes().all(plain)
    };
    let is_part = |part: &str| match in_braces(part) {
        Some(devices) => devices.split(',').all(is_plain),
        None => is_plain(part),
    };
    let wrong = if let Some(part) = name.split('.').find(|part| !is_part(part)) {
        Some(format!(
            "{part:?} is not made of letters, digits, `_`, `-` and `%`, nor a list of such in braces"
        ))
    } else if name.split('.').filter_map(in_braces).count() > 1 {
        Some("one pair of braces is all that a name may have".to_owned())
    } else if placeholder::unknown(name, &[]).next().is_some() {
        Some("the DUT's interfaces have no placeholders in a name of FreeBSD".to_owned())
    } else {
        None
    };
    if let Some(wrong) = &wrong {
        reading
            .error(span, format!("{name:?} is not a {what} of FreeBSD"))
            .with_help(wrong)
            .with_help("write \"dev.ix.{0,1}.iflib.tx_abdicate\" for the devices 0 and 1");
    }
    wrong.is_none()
}

/// What stands between braces around a whole part of a name.
pub(super) fn in_braces(part: &str) -> Option<&str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

/// The names that a sysctl's or a tunable's name with several devices in braces (`dev.ix.{0,1}.x`) stands
/// for; itself where it has none.
#[must_use]
pub fn devices(name: &str) -> Vec<String> {
    let parts: Vec<&str> = name.split('.').collect();
    let Some(place) = parts.iter().position(|part| in_braces(part).is_some()) else {
        return vec![name.to_owned()];
    };
    let devices = in_braces(parts[place]).unwrap_or_default().split(',');
    let named = |device| {
        let mut parts = parts.clone();
        parts[place] = device;
        parts.join(".")
    };
    devices.map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::errors_in;
    use super::devices;

    #[test]
    fn names_of_freebsd_are_names_and_nothing_else() {
        for (name, allowed) in [
            ("net.inet.ip.redirect", true),
            ("dev.ix.{0,1}.iflib.tx_reclaim_thresh", true),
            ("dev.ix.{0}.iflib.tx_abdicate", true),
            ("dev.ix.0.%driver", true),
            ("if_ix_load", true),
            ("", false),
            ("dev..x", false),
            ("dev.ix.{}.x", false),
            ("dev.ix.{0,}.x", false),
            ("dev.ix.{0,1}.queue.{0,1}", false),
            ("dev.ix{0,1}.x", false),
            ("dev.ix.{dut-in}.x", false),
            ("dev.ix.0.x=1", false),
            ("dev.ix.0.x;reboot", false),
            ("dev.ix.$(reboot).x", false),
            ("-a", false),
            ("a b", false),
        ] {
            for mechanism in ["sysctl", "loader"] {
                let errors = errors_in("freebsd-ssh", &format!("{mechanism} = {name:?}"));
                assert_eq!(errors.is_empty(), allowed, "{mechanism} {name}\n{errors}");
            }
        }
    }

    #[test]
    fn a_name_in_braces_stands_for_several() {
        assert_eq!(
            devices("dev.ix.{0,1}.iflib.tx_abdicate"),
            ["dev.ix.0.iflib.tx_abdicate", "dev.ix.1.iflib.tx_abdicate"]
        );
        assert_eq!(devices("net.inet.ip.redirect"), ["net.inet.ip.redirect"]);
    }
}
