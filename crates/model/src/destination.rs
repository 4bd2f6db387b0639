//! Destinations for ssh, as files and arguments name them.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Checks that a text names a host as ssh takes it: `[user@]host`, or `ssh://[user@]host[:port]`.
///
/// # Errors
/// What is wrong with it.
pub fn check_destination(text: &str) -> Result<(), &'static str> {
    const USER_SIGNS: &[u8] = b"._-+@\\";
    let (rest, is_uri) = match text.strip_prefix("ssh://") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let (user, host) = match rest.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, rest),
    };
    if let Some(user) = user {
        let is_of_user = |byte: u8| byte.is_ascii_alphanumeric() || USER_SIGNS.contains(&byte);
        if user.is_empty() || user.starts_with('-') || !user.bytes().all(is_of_user) {
            return Err(
                "a user's name is made of letters, digits, `.`, `_` and `-`, and does not begin with `-`",
            );
        }
    }
    if !is_uri {
        return check_host(host);
    }
    let (host, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => {
            check_address(address)?;
            (None, port)
        }
        None => {
            let end = host.find(':').unwrap_or(host.len());
            (Some(&host[..end]), &host[end..])
        }
    };
    if let Some(host) = host {
        check_host(host)?;
    }
    let number = port
        .strip_prefix(':')
        .map(|digits| (digits, digits.parse::<u16>()));
    match (port, number) {
        ("", _) => Ok(()),
        (_, Some((digits, Ok(1..)))) if !digits.starts_with('+') => Ok(()),
        _ => Err("a port is a number from 1 to 65535, behind a colon"),
    }
}

/// Checks a name by RFC 952 and RFC 1123, with `_` as aliases have it, or an address.
fn check_host(host: &str) -> Result<(), &'static str> {
    /// What the domain name system can hold of a name, as text.
    const NAME_BYTES_MAX: usize = 253;
    const LABEL_BYTES_MAX: usize = 63;
    if host.contains(':') {
        return check_address(host);
    }
    if host.is_empty() {
        return Err("it names no host");
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    if name.len() > NAME_BYTES_MAX {
        return Err("a host's name has at most 253 characters");
    }
    for label in name.split('.') {
        if label.is_empty() || label.len() > LABEL_BYTES_MAX {
            return Err("the parts of a host's name between dots have 1 to 63 characters each");
        }
        let is_edge = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let bytes = label.as_bytes();
        if !is_edge(bytes.first()) || !is_edge(bytes.last()) || !label.bytes().all(is_of_name) {
            return Err(
                "a host's name is made of letters, digits, `-`, `_` and dots; `-` neither begins nor ends a part of it",
            );
        }
    }
    let is_numeric = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    if name.contains('.') && host.bytes().all(is_numeric) && host.parse::<Ipv4Addr>().is_err() {
        return Err("an IPv4 address is four numbers up to 255, with dots between");
    }
    Ok(())
}

/// Checks an IPv6 address, with its zone where it has one.
fn check_address(text: &str) -> Result<(), &'static str> {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    let is_of_zone = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_zone = |zone: &str| !zone.is_empty() && zone.bytes().all(is_of_zone);
    if address.parse::<Ipv6Addr>().is_ok() && zone.is_none_or(is_zone) {
        Ok(())
    } else {
        Err("what has a colon in it is to be an IPv6 address; a port goes into ssh://host:port")
    }
}

#[cfg(test)]
mod tests {
    use super::check_destination;

    #[test]
    fn hosts_may_be_called_what_hosts_may_be_called_and_nothing_else() {
        let label = "a".repeat(63);
        let longest = [&*label, &label, &label, &"a".repeat(61)].join(".");
        for good in [
            "dut",
            "DUT-1",
            "my_dut",
            "_alias",
            "3com.example.org",
            "example.org.",
            "root@dut",
            "first.last@example.org",
            "me@EXAMPLE@dut",
            "192.0.2.1",
            "root@192.0.2.1",
            "2001:db8::1",
            "root@fe80::1%eth0.5",
            "ssh://dut",
            "ssh://root@dut:2222",
            "ssh://[2001:db8::1]:22",
            "10",
            &label,
            &longest,
        ] {
            assert_eq!(check_destination(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "-oProxyCommand=id",
            "root@-oProxyCommand=id",
            "-root@dut",
            "@dut",
            "root@",
            "a b",
            "a\tb",
            "a\nb",
            "a\u{7f}b",
            "a\u{202e}b",
            "düt",
            ".dut",
            "a..b",
            "dut-",
            "a.-b",
            "dut:22",
            "$(id)",
            "a;b",
            "a,b",
            "a/b",
            "`id`@dut",
            "192.0.2.256",
            "1.2.3",
            "[::1]",
            "::1%",
            "::1%a b",
            "2001:db8::g",
            "ssh://",
            "ssh://dut:0",
            "ssh://dut:65536",
            "ssh://dut:+1",
            "ssh://dut:22:22",
            "ssh://[::1]x",
            "ssh://[::1",
            "telnet://dut",
            &format!("{label}a"),
            &format!("{longest}a"),
        ] {
            assert!(check_destination(bad).is_err(), "{bad:?}");
        }
    }
}
