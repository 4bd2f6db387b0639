//! The machine as something that one run at a time has to itself.

use std::io::{self, Read as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use std::thread::sleep;
use std::time::Duration;

use fwdlab_model::Lab;
use fwdlab_sys::Interrupts;

use crate::LabError;
use crate::journal::host_journal;
use crate::sequence::stop_at_once_if_asked;

/// A name that the kernel keeps for all users of this machine, as long as its socket is open.
const NAME: &str = "fwdlab-machine";
/// How soon a wish to stop ends a wait.
const LOOK_EVERY: Duration = Duration::from_millis(200);

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
        match Self::try_name(&name(lab))? {
            Ok(claim) => Ok(claim),
            Err(holder) => Err(LabError::MachineTaken { pid: holder.pid() }),
        }
    }

    /// Claims a host by the name that ssh knows it by, as a run claims its DUT.
    ///
    /// # Errors
    /// As of [`MachineClaim::acquire`].
    pub(crate) fn of_host(host: &str) -> Result<Self, LabError> {
        match Self::try_name(&host_journal(host))? {
            Ok(claim) => Ok(claim),
            Err(holder) => Err(LabError::MachineTaken { pid: holder.pid() }),
        }
    }

    /// Claims the machine as [`MachineClaim::acquire`] does, and waits while other processes have it; `on_wait` gets
    /// the number of each of them, where it is known.
    ///
    /// # Errors
    /// `Interrupted` where the user asks to stop meanwhile.
    pub fn wait(
        lab: &Lab,
        interrupts: Interrupts,
        on_wait: &mut dyn FnMut(Option<u32>),
    ) -> Result<Self, LabError> {
        Self::wait_for_name(&name(lab), interrupts, on_wait)
    }

    fn wait_for_name(
        name: &str,
        interrupts: Interrupts,
        on_wait: &mut dyn FnMut(Option<u32>),
    ) -> Result<Self, LabError> {
        let mut told = None;
        loop {
            let holder = match Self::try_name(name)? {
                Ok(claim) => return Ok(claim),
                Err(holder) => holder,
            };
            let pid = holder.pid();
            if told != Some(pid) {
                on_wait(pid);
                told = Some(pid);
            }
            holder.wait(interrupts)?;
        }
    }

    /// The claim, or who has it.
    fn try_name(name: &str) -> Result<Result<Self, Holder>, LabError> {
        let claim = || {
            let address = SocketAddr::from_abstract_name(name)?;
            match UnixListener::bind_addr(&address) {
                Ok(socket) => Ok(Ok(Self { _socket: socket })),
                // Its holder may be gone by now.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    Ok(Err(Holder(UnixStream::connect_addr(&address).ok())))
                }
                Err(error) => Err(error),
            }
        };
        claim().map_err(LabError::Claim)
    }
}

/// The name of a lab's machine.
fn name(lab: &Lab) -> String {
    let hosts = lab.hosts.as_ref();
    hosts.map_or_else(|| NAME.to_owned(), |hosts| host_journal(&hosts.dut.host))
}

/// The process that has the machine, by a connection to its socket.
#[derive(Debug)]
struct Holder(Option<UnixStream>);

impl Holder {
    fn pid(&self) -> Option<u32> {
        self.0.as_ref().and_then(fwdlab_sys::peer_process)
    }

    /// Waits until its socket goes: nothing is ever sent.
    fn wait(self, interrupts: Interrupts) -> Result<(), LabError> {
        let Some(mut stream) = self.0 else {
            sleep(LOOK_EVERY);
            return stop_at_once_if_asked(interrupts);
        };
        stream
            .set_read_timeout(Some(LOOK_EVERY))
            .map_err(LabError::Claim)?;
        loop {
            stop_at_once_if_asked(interrupts)?;
            match stream.read(&mut [0]) {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                _ => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_machine_has_one_claim_at_a_time() {
        let pid = std::process::id();
        let name = format!("fwdlab-test-{pid}");
        let claim = MachineClaim::try_name(&name).unwrap().unwrap();
        let Err(holder) = MachineClaim::try_name(&name).unwrap() else {
            panic!("claimed twice");
        };
        assert_eq!(holder.pid(), Some(pid));
        drop(claim);
        assert!(MachineClaim::try_name(&name).unwrap().is_ok());
    }

    #[test]
    fn who_waits_gets_the_machine_when_it_is_free() {
        let name = format!("fwdlab-test-wait-{}", std::process::id());
        let interrupts = fwdlab_sys::watch_interrupts().unwrap();
        let claim = Mutex::new(Some(MachineClaim::try_name(&name).unwrap().unwrap()));
        let mut waited_for = Vec::new();
        let mut on_wait = |pid| {
            waited_for.push(pid);
            // The holder goes only once the other waits for it.
            claim.lock().unwrap().take();
        };
        MachineClaim::wait_for_name(&name, interrupts, &mut on_wait).unwrap();
        assert_eq!(waited_for, [Some(std::process::id())]);
    }
}
