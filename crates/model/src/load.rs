//! How much is offered.

use serde::{Deserialize, Serialize};

use crate::words::LoadRegime;

/// How much is offered: a load regime, with its number where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "WrittenLoad", try_from = "WrittenLoad")]
pub enum Load {
    /// As much as the DUT takes: generator and DUT take turns.
    SelfClocked,
    /// More than the DUT can forward.
    Overload,
    /// An intended load, below what the DUT can forward.
    Paced {
        /// Frames per second.
        pps: u64,
    },
}

impl Load {
    /// Its regime.
    #[must_use]
    pub const fn regime(self) -> LoadRegime {
        match self {
            Self::SelfClocked => LoadRegime::SelfClocked,
            Self::Overload => LoadRegime::Overload,
            Self::Paced { .. } => LoadRegime::Paced,
        }
    }

    /// What is asked of the generator, in frames per second; only of a paced load.
    #[must_use]
    pub const fn intended_pps(self) -> Option<u64> {
        match self {
            Self::Paced { pps } => Some(pps),
            Self::SelfClocked | Self::Overload => None,
        }
    }
}

/// Its form in files: two keys that agree.
#[derive(Serialize, Deserialize)]
struct WrittenLoad {
    regime: LoadRegime,
    intended_load_pps: Option<u64>,
}

impl From<Load> for WrittenLoad {
    fn from(load: Load) -> Self {
        Self {
            regime: load.regime(),
            intended_load_pps: load.intended_pps(),
        }
    }
}

impl TryFrom<WrittenLoad> for Load {
    type Error = String;

    fn try_from(written: WrittenLoad) -> Result<Self, String> {
        match (written.regime, written.intended_load_pps) {
            (LoadRegime::SelfClocked, None) => Ok(Self::SelfClocked),
            (LoadRegime::Overload, None) => Ok(Self::Overload),
            (LoadRegime::Paced, Some(pps)) => Ok(Self::Paced { pps }),
            (LoadRegime::Paced, None) => Err("a paced load without intended_load_pps".to_owned()),
            (regime, Some(_)) => Err(format!("intended_load_pps, and the load is {regime}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regime_and_number_agree() {
        for (load, written) in [
            (
                Load::SelfClocked,
                r#"{"regime":"self-clocked","intended_load_pps":null}"#,
            ),
            (
                Load::Overload,
                r#"{"regime":"overload","intended_load_pps":null}"#,
            ),
            (
                Load::Paced { pps: 7 },
                r#"{"regime":"paced","intended_load_pps":7}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&load).unwrap(), written);
            assert_eq!(serde_json::from_str::<Load>(written).unwrap(), load);
        }
        for wrong in [
            r#"{"regime":"paced","intended_load_pps":null}"#,
            r#"{"regime":"overload","intended_load_pps":7}"#,
        ] {
            assert!(serde_json::from_str::<Load>(wrong).is_err(), "{wrong}");
        }
    }
}
