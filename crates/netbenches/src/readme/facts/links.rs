//! Texts of links against what they lead to.

use std::collections::BTreeSet;

use super::super::{Link, PublishedReadme, plain_spaces};
use super::labels::exchanged_words;
use super::words::{
    Contradiction, ContradictionKind, contradiction, has_negation, names_word, said_words,
};

/// A link whose text and target cannot both be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkContradiction {
    /// The link.
    pub link: Link,
    /// What its text and the name of the file disagree about.
    pub contradiction: Contradiction,
}

/// A link that may be of another.
struct Named<'a> {
    link: &'a Link,
    name: Name<'a>,
    /// What its text may name a file by.
    words: BTreeSet<String>,
}

/// The name of a file; of a page on many datasets its whole path.
struct Name<'a> {
    text: &'a str,
    words: BTreeSet<String>,
}

impl<'a> Name<'a> {
    fn new(text: &'a str) -> Self {
        let words = said_words(text);
        Self { text, words }
    }

    fn is_page(&self) -> bool {
        self.text.ends_with(".md")
    }

    fn says(&self, word: &str) -> bool {
        names_word(&self.words, word)
    }
}

/// A text with more links is an index: each is held against its own target alone.
const LINKS_MAX: usize = 128;
/// Links that were exchanged stand near each other.
const NEAR: usize = 8;

/// Links whose text names another dataset than the file they lead to, or another file.
///
/// Silent on images, whose text describes what is seen, and on what leads out of the archive.
///
/// Shape: `files` are the names of the datasets beside the README.
pub fn link_contradictions<'a>(
    readme: &'a PublishedReadme,
    files: &[&'a str],
) -> Vec<LinkContradiction> {
    let links = readme.links.iter().filter(|link| !link.is_image);
    let named: Vec<Named<'_>> = links
        .filter_map(|link| {
            let is_page = link.file()?.ends_with(".md");
            let name = if is_page {
                link.file()?
            } else {
                link.file_name()?
            };
            Some(Named {
                link,
                name: Name::new(name),
                words: said_words(&plain_spaces(&link.text)),
            })
        })
        .collect();
    let stem = |name: &&'a str| Name::new(name.strip_suffix(".pps").unwrap_or(name));
    let files: Vec<Name<'_>> = files.iter().map(stem).collect();
    let contradicts = |(at, one): (usize, &Named<'_>)| {
        let own = contradiction(&one.link.text, one.name.text).filter(|_| !one.name.is_page());
        let near = &named[at.saturating_sub(NEAR)..named.len().min(at + NEAR)];
        let of_others = || {
            let are_few = named.len() <= LINKS_MAX;
            are_few.then(|| exchanged(one, near).or_else(|| names_another(one, &named, &files)))?
        };
        Some(LinkContradiction {
            link: one.link.clone(),
            contradiction: own.or_else(of_others)?,
        })
    };
    named.iter().enumerate().filter_map(contradicts).collect()
}

/// Whether another link has the text that this one's target is named after, and this one the other's.
fn exchanged(one: &Named<'_>, named: &[Named<'_>]) -> Option<Contradiction> {
    fn pair<'a>(named: &Named<'a>) -> (&'a str, &'a str) {
        (&named.link.text, named.name.text)
    }
    let words = |other: &Named<'_>| {
        // Most have nothing to do with each other, which is seen at once: either text has more words of the other's name.
        let has_more = |one: &Named<'_>, other: &Named<'_>| {
            let count = |name: &Name<'_>| one.words.iter().filter(|word| name.says(word)).count();
            count(&other.name) > count(&one.name)
        };
        let may_be = has_more(one, other) && has_more(other, one);
        may_be.then(|| exchanged_words(pair(one), pair(other), ""))?
    };
    let [text_says, name_says] = named.iter().find_map(words)?;
    Some(Contradiction {
        kind: ContradictionKind::Exchanged,
        text_says,
        name_says,
    })
}

/// Whether all that a text says of what files are called after is in the name of another file, and not in
/// that of its own.
fn names_another(
    one: &Named<'_>,
    named: &[Named<'_>],
    files: &[Name<'_>],
) -> Option<Contradiction> {
    let missing: Vec<&String> = one
        .words
        .iter()
        .filter(|word| !one.name.says(word))
        .collect();
    let says_missing = |name: &Name<'_>| missing.iter().any(|word| name.says(word));
    let is_negated = |words: &BTreeSet<String>| {
        let words: Vec<String> = words.iter().cloned().collect();
        has_negation(&words)
    };
    // Most say nothing that another name says.
    let may_be = !missing.is_empty()
        && (named.iter().any(|other| says_missing(&other.name)) || files.iter().any(says_missing));
    if !may_be || is_negated(&one.words) || is_negated(&one.name.words) {
        return None;
    }
    let said = |name: &Name<'_>| -> BTreeSet<&String> {
        let words = one.words.iter();
        words.filter(|word| name.says(word)).collect()
    };
    let own_said = said(&one.name);
    // Files are meant only where the text says something of the link's own as well, which is called after one.
    let is_of_own = |file: &&Name<'_>| file.words.iter().all(|word| one.name.words.contains(word));
    let own_file = files.iter().find(is_of_own);
    let files = files
        .iter()
        .filter(|_| own_file.is_some() && !one.name.is_page() && !own_said.is_empty());
    let linked = named.iter().map(|other| &other.name);
    let linked = linked.filter(|name| name.is_page() == one.name.is_page());
    let with_said = |name| (name, said(name));
    let linked: Vec<(&Name<'_>, BTreeSet<&String>)> = linked.map(with_said).collect();
    let linked_count = linked.len();
    let others: Vec<(&Name<'_>, BTreeSet<&String>)> =
        linked.into_iter().chain(files.map(with_said)).collect();
    // What any of the names is called after, of the words of the text.
    let known: BTreeSet<&String> = others
        .iter()
        .flat_map(|(_, said)| said.iter().copied())
        .collect();
    let missing = known.difference(&own_said).next()?;
    let at = others.iter().position(|(_, said)| *said == known)?;
    let (other, _) = &others[at];
    // What the name says and neither the text nor the other name does.
    let own_name = if at < linked_count {
        &one.name
    } else {
        own_file?
    };
    let name_says = own_name
        .words
        .iter()
        .find(|word| !names_word(&one.words, word) && !other.says(word))?;
    // Where another text names the other file as well, this one may say more than that.
    let is_taken = named.iter().any(|taken| {
        let says_all = |words: &BTreeSet<&String>| words.iter().all(|word| taken.name.says(word));
        let is_known = |word: &&String| named.iter().any(|named| named.name.says(word));
        let taken_words = taken.words.iter().filter(is_known).collect();
        taken.words != one.words && says_all(&known) && says_all(&taken_words)
    });
    (!is_taken).then(|| Contradiction {
        kind: ContradictionKind::NamesAnother,
        text_says: (*missing).clone(),
        name_says: name_says.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, files: &[&str]) -> Vec<(usize, ContradictionKind)> {
        let readme = PublishedReadme::parse(text.as_bytes());
        let found = link_contradictions(&readme, files).into_iter();
        found
            .map(|found| (found.link.line, found.contradiction.kind))
            .collect()
    }

    #[test]
    fn a_links_text_is_held_against_its_target() {
        assert_eq!(
            found("\n- [r368287: inet4](bench.r368606.inet4.pmc.svg)", &[]),
            [(2, ContradictionKind::Revision)]
        );
        assert_eq!(
            found("[pf-stateless](bench.pf-stateful.svg)", &[]),
            [(1, ContradictionKind::Word)]
        );
        for right in [
            "[simple_tx=0, prefetch=1](a/bench.simple_tx_off_prefetch_on.pmc.svg)",
            "![r368287](r368606.png)",
            "[IPv6](https://example.org/ipv4)",
            "[IPv6](../inet4/README.md)",
            "[pf-statefuless](bench.pf-stateless.svg)",
        ] {
            assert_eq!(found(right, &[]), [], "{right}");
        }
    }

    #[test]
    fn links_with_each_others_target_are_found() {
        use ContradictionKind::Exchanged;
        assert_eq!(
            found(
                "- [pf: inet](b.ipfw.inet4.svg)\n- [ipfw: inet](b.pf.inet4.svg)\n",
                &[]
            ),
            [(1, Exchanged), (2, Exchanged)]
        );
        let pages = "- [Atom](A_Atom/1/README.md)\n- [Xeon](B_Xeon/1/README.md)\n";
        assert_eq!(found(pages, &[]), []);
        let pages = "- [Atom](B_Xeon/1/README.md)\n- [Xeon](A_Atom/1/README.md)\n";
        assert_eq!(found(pages, &[]), [(1, Exchanged), (2, Exchanged)]);
    }

    #[test]
    fn a_link_that_names_another_file_is_found() {
        use ContradictionKind::NamesAnother;
        let copied = "- [pf: inet](b.ipfw.inet4.svg)\n- [ipfw: inet](b.ipfw.inet4.svg)\n";
        assert_eq!(
            found(copied, &["pf.inet4.pps", "ipfw.inet4.pps"]),
            [(1, NamesAnother)]
        );
        assert_eq!(found(copied, &[]), []);
        let same_text = "- [pf: inet](b.pf.inet4.svg)\n- [pf: inet](b.ipfw.inet4.svg)\n";
        assert_eq!(found(same_text, &[]), [(2, NamesAnother)]);
        for right in [
            // What the first says more is no word of a name.
            "[n1 with IPSEC_SUPPORT](b.n1GENERIC.svg)\n[n1 with IPSEC](b.n1IPSEC.svg)\n",
            "[n1 with BOTH](b.n1GENERIC.svg)\n[n1 with IPSEC](b.n1IPSEC.svg)\n",
            "[r1](b.r1.svg)\n[r1 with D27401](b.r1D27401v2.svg)\n",
            "[Before](b.2020.svg)\n[After](b.2021.svg)\n",
            "[without bridge](b.default.svg)\n",
        ] {
            let files = [
                "n1IPSEC.pps",
                "n1BOTH.pps",
                "bench.x.1.before",
                "if_bridge.pps",
            ];
            assert_eq!(found(right, &files), [], "{right}");
        }
    }
}
