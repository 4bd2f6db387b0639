//! The place of an interface where an XDP program can be.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fwdlab_model::XdpMode;

use crate::namespace::{make_nameless, run_inside};
use crate::netlink::Netlink;
use crate::{SysError, interface_index};

const RTM_NEWLINK: u16 = 16;
const RTM_SETLINK: u16 = 19;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_FD: u16 = 1;
const IFLA_XDP_FLAGS: u16 = 3;
const NLA_F_NESTED: u16 = 1 << 15;

/// Only where there is no program yet.
const UPDATE_IF_NOEXIST: u32 = 1;
/// By the kernel's stack.
const SKB_MODE: u32 = 2;
/// By the driver.
const DRV_MODE: u32 = 4;

/// The XDP slot of an interface.
///
/// A program that is put there belongs to the interface, not to a process: it stays when the process
/// ends, however that happens, and goes with the interface. So no program leaves while frames come in
/// because a process was killed.
#[derive(Debug)]
pub struct XdpSlot {
    netlink: Netlink,
    interface: String,
    index: u32,
    mode: XdpMode,
}

impl XdpSlot {
    /// Opens the slot of an interface of the calling thread's namespace; it may be used from any. An interface has one a
    /// mode.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn open(interface: &str, mode: XdpMode) -> Result<Self, SysError> {
        let failed = |source| SysError::new(format!("opening rtnetlink for {interface}"), source);
        Ok(Self {
            index: interface_index(interface)?,
            netlink: Netlink::route().map_err(failed)?,
            interface: interface.to_owned(),
            mode,
        })
    }

    /// Puts a program into the empty slot.
    ///
    /// # Errors
    /// When another one is there, or the driver cannot run it.
    pub fn fill(&mut self, program: BorrowedFd<'_>) -> Result<(), SysError> {
        let flags = UPDATE_IF_NOEXIST | self.flags();
        self.set(program.as_raw_fd(), flags, "attaching an XDP program to")
    }

    /// Takes the program out.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn empty(&mut self) -> Result<(), SysError> {
        self.set(-1, self.flags(), "detaching the XDP program from")
    }

    /// Where it runs is always said: left to itself, a kernel takes the slower way without a word.
    const fn flags(&self) -> u32 {
        match self.mode {
            XdpMode::Native => DRV_MODE,
            XdpMode::Generic => SKB_MODE,
        }
    }

    fn set(&mut self, program: i32, flags: u32, what: &str) -> Result<(), SysError> {
        let mut body = interface_message(self.index);
        let fd = attribute(IFLA_XDP_FD, &program.to_ne_bytes());
        let flags = attribute(IFLA_XDP_FLAGS, &flags.to_ne_bytes());
        body.extend(attribute(IFLA_XDP | NLA_F_NESTED, &[fd, flags].concat()));
        let told = self.netlink.tell(RTM_SETLINK, 0, &body);
        told.map_err(|source| SysError::new(format!("{what} {}", self.interface), source))
    }
}

/// An interface where no frame ever comes in, with an XDP program on it; in a network namespace without a name, which goes with
/// this process.
///
/// The kernel calls XDP programs through code that it rewrites, and then waits for all CPUs, whenever a
/// program is on its first interface or leaves its last one; running a program for a test counts as
/// one. A program that is parked comes and goes without that. It is let go when another one needs its place: that waits once
/// for both.
///
/// # Source
/// `bpf_dispatcher_change_prog` in `kernel/bpf/dispatcher.c`, `bpf_prog_test_run_xdp` in
/// `net/bpf/test_run.c`.
#[derive(Debug)]
pub struct XdpParking {
    /// None while this value is dropped.
    slot: Option<XdpSlot>,
}

/// Where this process parks programs.
static PARKED: Mutex<Parked> = Mutex::new(Parked {
    namespace: None,
    made: 0,
    free: Vec::new(),
});

struct Parked {
    namespace: Option<File>,
    /// How many interfaces were made.
    made: u32,
    /// Slots whose program nobody needs there any more.
    free: Vec<XdpSlot>,
}

impl Parked {
    /// A slot, empty or with a program that nobody needs there.
    fn slot(&mut self) -> Result<XdpSlot, SysError> {
        let failed =
            |source: io::Error| SysError::new("making an interface to park an XDP program", source);
        if let Some(slot) = self.free.pop() {
            return Ok(slot);
        }
        let namespace = match &self.namespace {
            Some(namespace) => namespace,
            None => self.namespace.insert(make_nameless().map_err(failed)?),
        };
        let interface = format!("parked{}", self.made);
        let inside = || {
            let mut netlink = Netlink::route().map_err(failed)?;
            let body = veth_message(&interface);
            let flags = NLM_F_CREATE | NLM_F_EXCL;
            netlink.tell(RTM_NEWLINK, flags, &body).map_err(failed)?;
            XdpSlot::open(&interface, XdpMode::Native)
        };
        let slot = run_inside(namespace, inside).map_err(|errno| failed(errno.into()))??;
        self.made += 1;
        Ok(slot)
    }
}

impl XdpParking {
    /// Parks a program.
    ///
    /// # Errors
    /// Without the privilege, or where the kernel has no veth.
    pub fn of(program: BorrowedFd<'_>) -> Result<Self, SysError> {
        let slot = parked().slot()?;
        // Where it is refused, the slot is free again.
        let mut parking = Self { slot: Some(slot) };
        if let Some(slot) = &mut parking.slot {
            slot.set(program.as_raw_fd(), DRV_MODE, "attaching an XDP program to")?;
        }
        Ok(parking)
    }
}

impl Drop for XdpParking {
    fn drop(&mut self) {
        parked().free.extend(self.slot.take());
    }
}

/// A thread that panics leaves nothing half done there.
fn parked() -> MutexGuard<'static, Parked> {
    PARKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request for a veth pair; the kernel names the other end.
fn veth_message(name: &str) -> Vec<u8> {
    let mut body = interface_message(0);
    body.extend(attribute(IFLA_IFNAME, &[name.as_bytes(), b"\0"].concat()));
    let kind = attribute(IFLA_INFO_KIND, b"veth");
    body.extend(attribute(IFLA_LINKINFO | NLA_F_NESTED, &kind));
    body
}

/// `struct ifinfomsg`.
fn interface_message(index: u32) -> Vec<u8> {
    let mut message = vec![0; 4];
    message.extend(index.to_ne_bytes());
    message.extend([0; 8]);
    message
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).expect("attributes are short");
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn there_is_no_slot_without_an_interface() {
        assert!(XdpSlot::open("nowhere", XdpMode::Native).is_err());
    }

    #[test]
    fn the_kernel_reads_what_it_is_told() {
        testkit::require_root!();
        let no_program = File::open("/dev/null").unwrap();
        // The pair is made; what is no program is refused.
        let error = XdpParking::of(no_program.as_fd()).unwrap_err().to_string();
        assert!(
            error.starts_with("attaching an XDP program to parked"),
            "{error}"
        );
    }
}
