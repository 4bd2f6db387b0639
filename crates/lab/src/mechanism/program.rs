//! Programs that mechanisms attach to the ports of a DUT.

use std::collections::BTreeMap;

use fwdlab_traffic::{CountingProgram, TrafficError};
use serde::{Deserialize, Serialize};

use super::tc;
use super::xdp::{FORWARDER_DROPPED, fib_forwarder};
use crate::LabError;

/// Where a kernel runs programs on a port's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Hook {
    /// In the driver, before anything of the kernel's stack.
    Xdp,
    /// Behind the driver, in front of the rest of the kernel's stack.
    TcIngress,
}

impl Hook {
    /// Whether only attaching a program tells whether it can be: of XDP, drivers decide.
    pub(crate) const fn is_tried(self) -> bool {
        match self {
            Self::Xdp => true,
            Self::TcIngress => false,
        }
    }

    /// What a program there does, as messages begin.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Xdp => "forwarding by XDP",
            Self::TcIngress => "a tc program",
        }
    }
}

/// A program for a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Program {
    /// By XDP: the forwarder that asks the kernel's FIB for every frame.
    Forwarder,
    /// By tc: one of the owner's.
    Tc {
        /// The object file.
        object: Vec<u8>,
        /// Its function; the only one without.
        name: Option<String>,
    },
}

impl Program {
    /// Where it runs.
    pub(crate) const fn hook(&self) -> Hook {
        match self {
            Self::Forwarder => Hook::Xdp,
            Self::Tc { .. } => Hook::TcIngress,
        }
    }
}

/// What a hook of some ports is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) hook: Hook,
    pub(crate) ports: Vec<String>,
    /// Nothing without.
    pub(crate) program: Option<Program>,
}

/// A program that the kernel has taken.
pub(crate) trait Loaded: Send {
    /// Attaches it to one more interface in this thread's namespace. An XDP program is detached when the process ends, a tc
    /// filter is not.
    ///
    /// # Errors
    /// Where there is no such interface, or it has a program there already.
    fn attach(&mut self, interface: &str) -> Result<(), TrafficError>;

    /// Takes it off all interfaces that it is on.
    ///
    /// # Errors
    /// What the kernel refuses.
    fn detach(&mut self) -> Result<(), TrafficError>;

    /// The kernel's number for it.
    ///
    /// # Errors
    /// Where the kernel does not say.
    fn id(&self) -> Result<u32, TrafficError>;

    /// Frames that it has dropped, by reason, where it counts them.
    ///
    /// # Errors
    /// Where the kernel does not say.
    fn drops(&self) -> Result<BTreeMap<String, u64>, TrafficError>;
}

/// The kernel's number for a program, as messages show it.
pub(super) fn number(of: Option<u32>) -> String {
    of.map_or("none".to_owned(), |id| id.to_string())
}

/// Has the kernel take a program.
///
/// # Errors
/// Without the privilege, and where the kernel does not take it.
pub(crate) fn load(program: &Program) -> Result<Box<dyn Loaded>, LabError> {
    Ok(match program {
        Program::Forwarder => Box::new(fib_forwarder()?),
        Program::Tc { object, name } => tc::loaded(object, name.as_deref())?,
    })
}

impl Loaded for CountingProgram {
    fn attach(&mut self, interface: &str) -> Result<(), TrafficError> {
        self.xdp.attach(interface)
    }

    fn detach(&mut self) -> Result<(), TrafficError> {
        self.xdp.detach()
    }

    fn id(&self) -> Result<u32, TrafficError> {
        self.xdp.id()
    }

    fn drops(&self) -> Result<BTreeMap<String, u64>, TrafficError> {
        let frames = self.frames(FORWARDER_DROPPED)?;
        Ok(BTreeMap::from([("XDP forwarder".to_owned(), frames)]))
    }
}
