//! A forwarder in user space, as a record has it.

use serde::{Deserialize, Serialize};

use crate::placeholder::fill_words;

/// A forwarder in user space: a program that takes the frames from the DUT's receiving interface and sends them.
///
/// In the words of its programs placeholders stand for the DUT's interfaces, their peers' MAC addresses and the CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forwarder {
    /// The program and its arguments; it runs until it is ended.
    pub start: Vec<String>,
    /// How fwdlab knows that it forwards.
    pub ready: Ready,
    /// The program that ends it; without one, it gets `SIGTERM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// What comes out.
    #[serde(default, skip_serializing_if = "Forwards::is_routed")]
    pub forwards: Forwards,
}

/// How fwdlab knows that a forwarder forwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Ready {
    /// It has printed this text.
    Prints(String),
    /// This program succeeds.
    Succeeds(Vec<String>),
}

/// What comes out of a forwarder, of a frame that came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forwards {
    /// What a router makes of it: a TTL or hop limit that is one less, and the MAC addresses of the next cable.
    #[default]
    Routed,
    /// The same packet with the MAC addresses of the next cable.
    Mac,
    /// The frame as it came in.
    Unchanged,
}

impl Forwards {
    const fn is_routed(&self) -> bool {
        matches!(self, Self::Routed)
    }
}

impl Forwarder {
    /// The same with what is to stand in the place of each placeholder.
    #[must_use]
    pub fn with(&self, places: &[(&str, String)]) -> Self {
        let filled = |words: &Vec<String>| fill_words(words, places);
        Self {
            start: filled(&self.start),
            ready: match &self.ready {
                Ready::Prints(text) => Ready::Prints(text.clone()),
                Ready::Succeeds(program) => Ready::Succeeds(filled(program)),
            },
            stop: self.stop.as_ref().map(filled),
            forwards: self.forwards,
        }
    }

    /// The names or paths of its programs.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        let ready = match &self.ready {
            Ready::Prints(_) => None,
            Ready::Succeeds(program) => Some(program),
        };
        let all = std::iter::once(&self.start).chain(ready).chain(&self.stop);
        all.filter_map(|words| words.first().map(String::as_str))
    }
}
