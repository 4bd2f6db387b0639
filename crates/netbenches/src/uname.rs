//! What `uname -a` prints.

use crate::time::PrintedTime;

/// A system, as far as `uname -a` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uname {
    /// The line as it stands.
    pub text: String,
    /// `FreeBSD`, `Linux` and the like.
    pub operating_system: String,
    /// The name of the machine.
    pub host: String,
    /// `11.1-RELEASE-p1` and the like.
    pub release: String,
    /// The machine's architecture: `amd64`.
    pub architecture: String,
    /// The state of the source the kernel was built from, where the line has it.
    pub revision: Option<OsRevision>,
}

/// A state of an operating system's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OsRevision {
    /// As it is printed: `r322489M`, `n249132-f21fcae4870-dirty`, `c255412`, `6694007(master)-dirty`.
    pub text: String,
    /// How the commits are counted; `None` where a hash stands alone.
    pub count: Option<CommitCount>,
    /// The number of the commit, counted so.
    pub number: Option<u64>,
    /// The abbreviated hash of a commit of git.
    pub hash: Option<String>,
    /// Whether the source was changed after that.
    pub is_modified: bool,
}

/// How a revision's number counts commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitCount {
    /// `r`: the numbers of subversion, until the end of 2020.
    Subversion,
    /// `n`: the commits behind first parents, since 2021.
    FirstParents,
    /// `c`: all commits, in the first weeks of git.
    All,
}

impl Uname {
    /// Reads a line; `None` where it does not have the words of one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let (operating_system, rest) = words.split_first()?;
        let [host, release, version @ .., architecture] = rest else {
            return None;
        };
        let is_name = operating_system
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic());
        let begins_with_digit = |word: &str| {
            word.bytes()
                .next()
                .is_some_and(|byte| byte.is_ascii_digit())
        };
        if !is_name || host.contains(':') || !begins_with_digit(release) || version.is_empty() {
            return None;
        }
        // Linux has the system's name once more in the end.
        let (version, architecture) = match version.split_last() {
            Some((before, rest)) if architecture.contains('/') => (rest, before),
            _ => (version, architecture),
        };
        Some(Self {
            text: text.to_owned(),
            operating_system: (*operating_system).to_owned(),
            host: (*host).to_owned(),
            release: (*release).to_owned(),
            architecture: (*architecture).to_owned(),
            revision: version
                .iter()
                .find_map(|word| OsRevision::parse(word.trim_end_matches(':'))),
        })
    }
}

impl Uname {
    /// The second since 1970 at which its kernel was built; `None` where the line does not say.
    #[must_use]
    pub fn built_s(&self) -> Option<i64> {
        let words: Vec<&str> = self.text.split_ascii_whitespace().collect();
        // `Fri Sep  8 00:32:53 CEST 2017`.
        words
            .windows(6)
            .find_map(|words| PrintedTime::parse(&words.join(" "))?.epoch_s)
    }
}

impl OsRevision {
    /// Reads a word; `None` where it is no revision.
    ///
    /// # Source
    /// FreeBSD `sys/conf/newvers.sh`.
    ///
    /// # Examples
    /// ```
    /// use fwdlab_netbenches::OsRevision;
    /// assert_eq!(OsRevision::parse("r287478").and_then(|revision| revision.number), Some(287_478));
    /// assert_eq!(OsRevision::parse("amd64"), None);
    /// ```
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let (rest, is_dirty) = match word.strip_suffix("-dirty") {
            Some(rest) => (rest, true),
            None => (word, false),
        };
        let count = match rest.bytes().next()? {
            b'r' => Some(CommitCount::Subversion),
            b'n' => Some(CommitCount::FirstParents),
            b'c' => Some(CommitCount::All),
            _ => None,
        };
        let revision = |count, number, hash: Option<&str>, is_modified| Self {
            text: word.to_owned(),
            count,
            number,
            hash: hash.map(str::to_owned),
            is_modified,
        };
        let (digits, hash) = match rest.split_once('-') {
            Some((digits, hash)) => (digits, Some(hash)),
            None => (rest, None),
        };
        if let Some(count) = count
            && hash.is_none_or(is_hash)
        {
            let (digits, is_modified) = match digits.strip_suffix('M') {
                Some(digits) if count == CommitCount::Subversion => (digits, true),
                _ => (digits, is_dirty),
            };
            let digits = &digits[1..];
            // Five digits or more: since 2002.
            if digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Some(revision(
                    Some(count),
                    Some(digits.parse().ok()?),
                    hash,
                    is_modified,
                ));
            }
        }
        let (hash, branch) = rest.split_once('(')?;
        let is_branch = branch.len() > 1 && branch.ends_with(')');
        (is_hash(hash) && is_branch).then(|| revision(None, None, Some(hash), is_dirty))
    }
}

fn is_hash(text: &str) -> bool {
    (7..=40).contains(&text.len())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn systems_are_told_apart() {
        for (text, host, release, architecture, revision) in [
            (
                "FreeBSD netgate.bsdrp.net 10.2-RELEASE-p8 FreeBSD 10.2-RELEASE-p8 #0 r291856M: Tue Dec  8 02:25:58 CET 2015     root@orange:/usr/obj/FreeBSD/src/sys/amd64  amd64",
                "netgate.bsdrp.net",
                "10.2-RELEASE-p8",
                "amd64",
                Some("r291856M"),
            ),
            (
                "FreeBSD sm2 15.0-PRERELEASE FreeBSD 15.0-PRERELEASE BSDRP-AMD64 amd64",
                "sm2",
                "15.0-PRERELEASE",
                "amd64",
                None,
            ),
            (
                "FreeBSD apu2 12.0-CURRENT FreeBSD 12.0-CURRENT #0 f0f4817(master)-dirty: Mon Dec 12 09:10:58 CET 2016 x  amd64",
                "apu2",
                "12.0-CURRENT",
                "amd64",
                Some("f0f4817(master)-dirty"),
            ),
            (
                "Linux r630 5.10.0-9-amd64 #1 SMP Debian 5.10.70-1 (2021-09-30) x86_64 GNU/Linux",
                "r630",
                "5.10.0-9-amd64",
                "x86_64",
                None,
            ),
        ] {
            let uname = Uname::parse(text).unwrap();
            let found = uname
                .revision
                .as_ref()
                .map(|revision| revision.text.as_str());
            assert_eq!(
                (
                    uname.host.as_str(),
                    uname.release.as_str(),
                    uname.architecture.as_str(),
                    found
                ),
                (host, release, architecture, revision)
            );
        }
        for text in [
            "",
            "FreeBSD",
            "FreeBSD hp 12.0 amd64",
            "Start time: 12 x y z",
            "a b c d e",
        ] {
            assert_eq!(Uname::parse(text), None, "{text}");
        }
    }

    #[test]
    fn revisions_are_of_subversion_or_git() {
        let read = |word: &str| {
            OsRevision::parse(word)
                .map(|read| (read.count, read.number, read.hash, read.is_modified))
        };
        let hash = |text: &str| Some(text.to_owned());
        for (word, expected) in [
            (
                "r287478",
                Some((Some(CommitCount::Subversion), Some(287_478), None, false)),
            ),
            (
                "r322489M",
                Some((Some(CommitCount::Subversion), Some(322_489), None, true)),
            ),
            (
                "n302145",
                Some((Some(CommitCount::FirstParents), Some(302_145), None, false)),
            ),
            (
                "c255412",
                Some((Some(CommitCount::All), Some(255_412), None, false)),
            ),
            (
                "n249132-f21fcae4870-dirty",
                Some((
                    Some(CommitCount::FirstParents),
                    Some(249_132),
                    hash("f21fcae4870"),
                    true,
                )),
            ),
            (
                "12803d8a99c(HEAD)-dirty",
                Some((None, None, hash("12803d8a99c"), true)),
            ),
            ("n302145M", None),
            ("r630", None),
            ("root@orange", None),
            ("1234567", None),
            ("1234567()", None),
            ("n249132-x", None),
            ("", None),
        ] {
            assert_eq!(read(word), expected, "{word}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String, word in "[rnc]?[0-9a-fM]{0,12}(-[0-9a-f]{0,9})?[()M:-]{0,3}(-dirty)?") {
            if let Some(uname) = Uname::parse(&text) {
                prop_assert_eq!(uname.text, text.trim());
            }
            if let Some(revision) = OsRevision::parse(&word) {
                prop_assert_eq!(revision.text, word);
                prop_assert_eq!(revision.count.is_some(), revision.number.is_some());
            }
        }
    }
}
