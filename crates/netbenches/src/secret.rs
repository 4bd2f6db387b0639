//! What must not leave the archive: keys, and the certificates beside them. They are recognised and never
//! kept, copied or quoted.

/// What a file or a value gives away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Secret {
    /// A private key.
    PrivateKey,
    /// A key or password that several know.
    SharedKey,
    /// A certificate, a public key or what belongs to them.
    Certificate,
}

impl Secret {
    /// What a file gives away, told by its name and by its content; the worst of it.
    ///
    /// Shape: `path` may have folders in front; `content` is the whole file.
    ///
    /// # Examples
    /// ```
    /// use fwdlab_netbenches::Secret;
    /// assert_eq!(Secret::of_file("dut/etc/local/openvpn/dut.key", b""), Some(Secret::PrivateKey));
    /// assert_eq!(Secret::of_file("etc/pf.conf", b"pass all\n"), None);
    /// ```
    #[must_use]
    pub fn of_file(path: &str, content: &[u8]) -> Option<Self> {
        let of_content = Self::of_content(content);
        Self::of_name(path).into_iter().chain(of_content).min()
    }

    /// What a file's name says is in it.
    #[must_use]
    pub fn of_name(path: &str) -> Option<Self> {
        let name = path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let (stem, ending) = name.rsplit_once('.').unwrap_or((&name, ""));
        match ending {
            "key" | "priv" | "pk8" | "p12" | "pfx" | "jks" | "keytab" | "ppk" => {
                Some(Self::PrivateKey)
            }
            "psk" | "secrets" => Some(Self::SharedKey),
            "crt" | "cer" | "der" | "pem" | "csr" | "crl" | "p7b" | "pub" => {
                Some(Self::Certificate)
            }
            "conf" if is_wireguard(stem) => Some(Self::PrivateKey),
            _ if name.starts_with("id_") && ID_KINDS.contains(&&name[3..]) => {
                Some(Self::PrivateKey)
            }
            _ if ["psk.txt", "master.passwd", "spwd.db"].contains(&name.as_str()) => {
                Some(Self::SharedKey)
            }
            _ => None,
        }
    }

    /// What stands in a text.
    #[must_use]
    pub fn of_content(content: &[u8]) -> Option<Self> {
        let mut found = None;
        let mut is_association = false;
        for line in content.split(|&byte| byte == b'\n') {
            let line = line.trim_ascii();
            // A statement of setkey ends with a semicolon, often lines later.
            is_association |= line.starts_with(b"add ") || line.starts_with(b"add\t");
            let secret = of_line(line, is_association);
            is_association &= !line.contains(&b';');
            found = found.into_iter().chain(secret).min();
            if found == Some(Self::PrivateKey) {
                break;
            }
        }
        found
    }

    /// What a setting's value gives away.
    #[must_use]
    pub fn of_setting(name: &str, value: &str) -> Option<Self> {
        if value.is_empty() {
            return None;
        }
        let of_words = of_words(value.as_bytes());
        of_setting_name(name).into_iter().chain(of_words).min()
    }
}

/// What the private keys of OpenSSH are named, behind `id_`.
const ID_KINDS: &[&str] = &["rsa", "dsa", "ecdsa", "ed25519"];

/// `wg0` and the like.
fn is_wireguard(stem: &str) -> bool {
    stem.strip_prefix("wg")
        .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn of_line(line: &[u8], is_association: bool) -> Option<Secret> {
    if let Some(label) = behind(line, b"-----BEGIN ") {
        let is = |word: &[u8]| behind(label, word).is_some();
        return Some(if is(b"PRIVATE KEY") {
            Secret::PrivateKey
        } else if is(b"Static key") {
            Secret::SharedKey
        } else {
            Secret::Certificate
        });
    }
    // `-E` and `-A` are followed by a key.
    let is_key = |word: &[u8]| matches!(word, b"-E" | b"-A");
    if is_association && words(line).any(is_key) {
        return Some(Secret::SharedKey);
    }
    let assigned = line.iter().position(|&byte| byte == b'=').and_then(|at| {
        let (name, value) = (line[..at].trim_ascii(), line[at + 1..].trim_ascii());
        let name = str::from_utf8(name)
            .ok()
            .filter(|name| name.len() <= 64 && !name.starts_with('#'))?;
        let is_empty = value.iter().all(|byte| matches!(byte, b'"' | b'\''));
        (!is_empty).then(|| of_setting_name(name))?
    });
    assigned.into_iter().chain(of_words(line)).min()
}

/// What the name of a setting says that its value is.
fn of_setting_name(name: &str) -> Option<Secret> {
    let name = name.to_ascii_lowercase();
    let parts: Vec<&str> = name
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .collect();
    // `PrivateKey`, `private_key` and `private-key` alike.
    let secrets = (1..=3)
        .flat_map(|count| parts.windows(count))
        .filter_map(|parts| match parts.concat().as_str() {
            "privatekey" => Some(Secret::PrivateKey),
            "presharedkey" | "psk" | "authkey" | "password" | "passwd" | "passphrase"
            | "secret" | "wepkey" | "md5key" => Some(Secret::SharedKey),
            _ => None,
        });
    secrets.min()
}

/// What words of a line say, or are.
fn of_words(line: &[u8]) -> Option<Secret> {
    // Of CARP: `vhid 1 pass …`. `pass` alone is pf's.
    let is_carp = words(line).any(|word| word == b"vhid");
    let secrets = words(line).filter_map(|word| match word {
        b"pass" if is_carp => Some(Secret::SharedKey),
        b"private-key" => Some(Secret::PrivateKey),
        b"preshared-key" | b"wepkey" | b"authkey" => Some(Secret::SharedKey),
        // Nothing tells whether such a key is public.
        _ => is_curve25519_key(word).then_some(Secret::PrivateKey),
    });
    secrets.min()
}

/// 32 bytes in base 64, as WireGuard writes its keys.
fn is_curve25519_key(word: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    matches!(word, [digits @ .., b'='] if digits.len() == 43 && digits.iter().all(is_digit))
}

/// Words between white space and quotes.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_between = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'');
    line.split(is_between).filter(|word| !word.is_empty())
}

/// What follows the first occurrence of a text.
fn behind<'a>(line: &'a [u8], text: &[u8]) -> Option<&'a [u8]> {
    let at = line.windows(text.len()).position(|window| window == text)?;
    Some(&line[at + text.len()..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 32 bytes, all the same.
    const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

    #[test]
    fn names_tell_of_keys() {
        for (path, secret) in [
            ("dut/etc/local/openvpn/hp.key", Some(Secret::PrivateKey)),
            ("etc/local/tinc/vpn/rsa_key.priv", Some(Secret::PrivateKey)),
            ("etc/local/wireguard/wg0.conf", Some(Secret::PrivateKey)),
            ("root/.ssh/id_ed25519", Some(Secret::PrivateKey)),
            ("root/.ssh/id_ed25519.pub", Some(Secret::Certificate)),
            ("etc/local/openvpn/CA.CRT", Some(Secret::Certificate)),
            ("etc/psk.txt", Some(Secret::SharedKey)),
            ("etc/rc.conf", None),
            ("etc/wgx.conf", None),
            ("openvpn/openvpn.conf", None),
            ("etc/keymap", None),
            ("", None),
        ] {
            assert_eq!(Secret::of_name(path), secret, "{path}");
        }
    }

    #[test]
    fn contents_tell_of_keys_whatever_their_name() {
        for (text, secret) in [
            (
                "x\n-----BEGIN RSA PRIVATE KEY-----\nAA\n",
                Some(Secret::PrivateKey),
            ),
            (
                "<tls-auth>\n-----BEGIN OpenVPN Static key V1-----",
                Some(Secret::SharedKey),
            ),
            (
                "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----",
                Some(Secret::PrivateKey),
            ),
            ("-----BEGIN RSA PUBLIC KEY-----", Some(Secret::Certificate)),
            ("[Interface]\nPrivateKey = abc\n", Some(Secret::PrivateKey)),
            ("PresharedKey=abc", Some(Secret::SharedKey)),
            (
                "flush;\nadd 1.1.1.1 2.2.2.2 esp 0x1000 -E aes-cbc \"k\";",
                Some(Secret::SharedKey),
            ),
            (
                "add 1.1.1.1 2.2.2.2 esp 0x1000\n\t-m tunnel\n\t-A hmac-sha1 \"k\";",
                Some(Secret::SharedKey),
            ),
            (
                "create_args_wg0=\"private-key x listen-port 51820\"",
                Some(Secret::PrivateKey),
            ),
            (
                "spdadd 1.1.1.1 2.2.2.2 any -P out ipsec esp/tunnel/3.3.3.3-4.4.4.4/require;",
                None,
            ),
            (
                "add 100 allow ip from any to any\nadd 200 deny ip from any to any",
                None,
            ),
            ("password=\"\"", None),
            ("# password = x", None),
            ("dumpskip=1\nnet.inet.ip.redirect=0", None),
            ("", None),
        ] {
            assert_eq!(Secret::of_content(text.as_bytes()), secret, "{text}");
        }
        assert_eq!(
            Secret::of_content(format!("peer {KEY}").as_bytes()),
            Some(Secret::PrivateKey)
        );
        assert_eq!(
            Secret::of_file("a.crt", b"-----BEGIN PRIVATE KEY-----"),
            Some(Secret::PrivateKey)
        );
        assert_eq!(
            Secret::of_file("a.key", b"-----BEGIN CERTIFICATE-----"),
            Some(Secret::PrivateKey)
        );
    }

    #[test]
    fn settings_tell_of_keys_by_name_or_value() {
        for (name, value, secret) in [
            ("wpa_psk", "x", Some(Secret::SharedKey)),
            ("ifconfig_wlan0", "wepkey 1:x", Some(Secret::SharedKey)),
            ("vpn_private_key", "x", Some(Secret::PrivateKey)),
            ("vpn_private_key", "", None),
            ("create_args_wg0", KEY, Some(Secret::PrivateKey)),
            ("ifconfig_cxl0", "inet 198.18.0.10/24 -tso4", None),
            ("security.bsd.unprivileged_proc_debug", "0", None),
        ] {
            assert_eq!(Secret::of_setting(name, value), secret, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_key_is_found_wherever_it_stands(before in "[a-z =\n\"]{0,40}", after: Vec<u8>) {
            let text = [before.as_bytes(), b"\n-----BEGIN EC PRIVATE KEY-----\n", &after].concat();
            prop_assert_eq!(Secret::of_content(&text), Some(Secret::PrivateKey));
        }

        #[test]
        fn any_bytes_are_looked_at(path: String, bytes: Vec<u8>) {
            let found = Secret::of_file(&path, &bytes);
            prop_assert!(found <= Secret::of_name(&path) || Secret::of_name(&path).is_none());
        }
    }
}
