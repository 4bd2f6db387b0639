//! The machine as something that one run at a time has to itself.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use fwdlab_model::Lab;

use crate::LabError;
use crate::restore::host_journal;

/// A name that the kernel keeps for all users of this machine, as long as its socket is open.
const NAME: &str = "fwdlab-machine";

/// The right to load this machine, until the value or its process goes.
///
/// Two runs at once would measure each other, whoever started them. So it is no file, which an ordinary
/// user could not share with root.
#[derive(Debug)]
pub struct MachineClaim {
    // The name goes with the socket.
    _socket: UnixListener,
}

impl MachineClaim {
    /// Claims the machine of a lab for this process: this one, or the host that is its DUT, against other
    /// processes of this machine.
    ///
    /// # Errors
    /// `MachineTaken` where another process has it.
    pub fn acquire(lab: &Lab) -> Result<Self, LabError> {
        match &lab.hosts {
            None => Self::acquire_name(NAME),
            Some(hosts) => Self::acquire_name(&host_journal(&hosts.dut.host)),
        }
    }

    fn acquire_name(name: &str) -> Result<Self, LabError> {
        let claim = || {
            let address = SocketAddr::from_abstract_name(name)?;
            match UnixListener::bind_addr(&address) {
                Ok(socket) => Ok(Ok(Self { _socket: socket })),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    // Whoever has it may have gone in this moment.
                    let holder = UnixStream::connect_addr(&address);
                    let pid = holder.ok().as_ref().and_then(fwdlab_sys::peer_process);
                    Ok(Err(LabError::MachineTaken { pid }))
                }
                Err(error) => Err(error),
            }
        };
        claim().map_err(LabError::Claim)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_claim_at_a_time() {
        let pid = std::process::id();
        let name = format!("fwdlab-test-{pid}");
        let claim = MachineClaim::acquire_name(&name).unwrap();
        let refused = MachineClaim::acquire_name(&name).unwrap_err();
        assert!(matches!(refused, LabError::MachineTaken { pid: Some(seen) } if seen == pid));
        assert!(refused.to_string().contains(&pid.to_string()));
        drop(claim);
        MachineClaim::acquire_name(&name).unwrap();
    }
}
