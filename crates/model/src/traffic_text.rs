//! Parts of a traffic as one writes them in one word, in a file or on a command line.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::load::Load;
use crate::resolved::{FrameSize, PortRange};
use crate::traffic::{
    FRAME_SIZE, FRAME_SIZES_MAX, IMIX_WORD, INTENDED_LOAD_PPS, LINE_RATE_PERCENT, LOADS,
    LoadChoice, PORT, SHARE, imix,
};

/// What can be wrong with such a word.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrafficTextError {
    /// Not a port, and not a range of them.
    #[error(
        "expected a port from {} to {}, or a range like \"1024-1033\"",
        PORT.start(),
        PORT.end()
    )]
    Ports,
    /// A range whose last port is below its first.
    #[error("the range ends before it begins")]
    EndsBeforeItBegins,
    /// Not a size, not `imix`, and not a list of sizes with shares.
    #[error(
        "expected a size from {} to {}, {IMIX_WORD:?}, or sizes with shares from {} to {} like \
         \"64:7,594:4,1518:1\"",
        FRAME_SIZE.start(),
        FRAME_SIZE.end(),
        SHARE.start(),
        SHARE.end()
    )]
    FrameSizes,
    /// A list that is too long.
    #[error("{sizes} sizes are listed; give 1 to {FRAME_SIZES_MAX} of them")]
    TooManySizes {
        /// Sizes in the list.
        sizes: usize,
    },
    /// A size that comes twice.
    #[error("frames of {bytes} bytes are listed twice")]
    ListedTwice {
        /// The size, with FCS.
        bytes: u16,
    },
    /// Not a load.
    #[error(
        "expected self-clocked, overload or lab, frames per second from {} to {}, or a share of the line rate like \
         \"50%\"",
        INTENDED_LOAD_PPS.start(),
        INTENDED_LOAD_PPS.end()
    )]
    Load,
    /// Not an address.
    #[error("expected an address like 198.18.10.1 or 2001:2:0:10::1")]
    Address,
}

/// A port, or `first-last`.
impl FromStr for PortRange {
    type Err = TrafficTextError;

    fn from_str(text: &str) -> Result<Self, TrafficTextError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| number(text.trim()).filter(|port| PORT.contains(port));
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self { first, last }),
            (Some(_), Some(_)) => Err(TrafficTextError::EndsBeforeItBegins),
            _ => Err(TrafficTextError::Ports),
        }
    }
}

/// The sizes of frames, sent in turn: as text one size, `imix`, or a list like `64:7,594:4,1518:1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSizes(pub Vec<FrameSize>);

impl FromStr for FrameSizes {
    type Err = TrafficTextError;

    fn from_str(text: &str) -> Result<Self, TrafficTextError> {
        if text == IMIX_WORD {
            return Ok(Self(imix()));
        }
        let bytes = |text: &str| number(text).filter(|bytes| FRAME_SIZE.contains(bytes));
        if let Some(bytes) = bytes(text) {
            return Ok(Self(vec![FrameSize { bytes, share: 1 }]));
        }
        let mut sizes: Vec<FrameSize> = Vec::new();
        for item in text.split(',') {
            let size = item.trim().split_once(':').and_then(|(size, share)| {
                Some(FrameSize {
                    bytes: bytes(size)?,
                    share: number(share).filter(|share| SHARE.contains(share))?,
                })
            });
            let size = size.ok_or(TrafficTextError::FrameSizes)?;
            if sizes.iter().any(|other| other.bytes == size.bytes) {
                return Err(TrafficTextError::ListedTwice { bytes: size.bytes });
            }
            sizes.push(size);
        }
        match sizes.len() {
            1..=FRAME_SIZES_MAX => Ok(Self(sizes)),
            sizes => Err(TrafficTextError::TooManySizes { sizes }),
        }
    }
}

/// In the form that is read again.
impl fmt::Display for FrameSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [size] = self.0.as_slice() {
            return size.bytes.fmt(f);
        }
        for (position, FrameSize { bytes, share }) in self.0.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            write!(f, "{comma}{bytes}:{share}")?;
        }
        Ok(())
    }
}

/// What is asked of the generator: as text a word, a number of frames per second, or percent of the line rate.
impl FromStr for LoadChoice {
    type Err = TrafficTextError;

    fn from_str(text: &str) -> Result<Self, TrafficTextError> {
        if let Some((_, load)) = LOADS.iter().find(|(word, _)| *word == text) {
            return Ok(*load);
        }
        let load = match text.strip_suffix('%') {
            Some(percent) => {
                let percent = percent.parse().ok();
                let percent = percent.filter(|percent| LINE_RATE_PERCENT.contains(percent));
                percent.map(Self::LineRatePercent)
            }
            None => {
                let pps = number(text).filter(|pps| INTENDED_LOAD_PPS.contains(pps));
                pps.map(|pps| Self::Load(Load::Paced { pps }))
            }
        };
        load.ok_or(TrafficTextError::Load)
    }
}

/// Reads an address.
///
/// # Errors
/// `Address`.
pub fn parse_address(text: &str) -> Result<IpAddr, TrafficTextError> {
    text.parse().map_err(|_| TrafficTextError::Address)
}

/// A number of digits only: the standard library would take a sign.
fn number<T: FromStr>(text: &str) -> Option<T> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_digits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_cannot_be_says_what_could() {
        for (text, expected) in [
            ("", TrafficTextError::Ports),
            ("http", TrafficTextError::Ports),
            ("0", TrafficTextError::Ports),
            ("65536", TrafficTextError::Ports),
            ("+7", TrafficTextError::Ports),
            ("1-2-3", TrafficTextError::Ports),
            ("9-8", TrafficTextError::EndsBeforeItBegins),
        ] {
            assert_eq!(text.parse::<PortRange>(), Err(expected), "{text}");
        }
        let many = (100..117).map(|bytes| format!("{bytes}:1"));
        for (text, expected) in [
            ("", TrafficTextError::FrameSizes),
            ("63", TrafficTextError::FrameSizes),
            ("1519", TrafficTextError::FrameSizes),
            ("IMIX", TrafficTextError::FrameSizes),
            ("64,1518", TrafficTextError::FrameSizes),
            ("64:0", TrafficTextError::FrameSizes),
            ("64:1001", TrafficTextError::FrameSizes),
            ("64:1,", TrafficTextError::FrameSizes),
            ("64:1,64:2", TrafficTextError::ListedTwice { bytes: 64 }),
            (
                &many.collect::<Vec<_>>().join(","),
                TrafficTextError::TooManySizes { sizes: 17 },
            ),
        ] {
            assert_eq!(text.parse::<FrameSizes>(), Err(expected), "{text}");
        }
        assert_eq!(parse_address("10.0.0"), Err(TrafficTextError::Address));
    }

    #[test]
    fn the_word_of_a_mix_is_its_list() {
        assert_eq!("imix".parse::<FrameSizes>(), "64:7,594:4,1518:1".parse());
        assert_eq!(
            "imix".parse::<FrameSizes>().unwrap().to_string(),
            "64:7,594:4,1518:1"
        );
        assert_eq!("594".parse::<FrameSizes>().unwrap().to_string(), "594");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = text.parse::<PortRange>();
            let _ = text.parse::<FrameSizes>();
            let _ = parse_address(&text);
        }

        #[test]
        fn ports_are_read_as_they_are_written(a in 1_u16.., b in 1_u16..) {
            let range = PortRange { first: a.min(b), last: a.max(b) };
            let text = format!("{}-{}", range.first, range.last);
            prop_assert_eq!(text.parse(), Ok(range));
            let one = PortRange { first: a, last: a };
            prop_assert_eq!(a.to_string().parse(), Ok(one));
        }

        #[test]
        fn sizes_are_read_as_they_are_written(
            sizes in prop::collection::btree_map(FRAME_SIZE, SHARE, 2..=FRAME_SIZES_MAX),
        ) {
            let sizes = sizes.into_iter().map(|(bytes, share)| FrameSize { bytes, share });
            let sizes = FrameSizes(sizes.collect());
            prop_assert_eq!(sizes.to_string().parse(), Ok(sizes));
        }
    }
}
