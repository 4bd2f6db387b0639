//! The one ethtool feature that a veth forwarder needs.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::SysError;

/// `ETHTOOL_SGRO` of `linux/ethtool.h`.
const ETHTOOL_SGRO: u32 = 0x2c;

/// `struct ethtool_value` of `linux/ethtool.h`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Turns generic receive offload on for an interface of the calling thread's namespace.
///
/// A veth only polls (NAPI), and so only takes redirected frames, with this or an XDP program.
///
/// # Errors
/// When there is no such interface or it may not be changed.
pub fn enable_gro(interface: &str) -> Result<(), SysError> {
    let what = || format!("turning GRO on for interface {interface}");
    let mut name = [0; libc::IFNAMSIZ];
    if interface.len() >= name.len() {
        return Err(SysError::new(
            what(),
            io::Error::from(io::ErrorKind::InvalidInput),
        ));
    }
    for (slot, &byte) in name.iter_mut().zip(interface.as_bytes()) {
        *slot = libc::c_char::from_ne_bytes([byte]);
    }
    let mut value = EthtoolValue {
        command: ETHTOOL_SGRO,
        data: 1,
    };
    let request = libc::ifreq {
        ifr_name: name,
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_data: (&raw mut value).cast(),
        },
    };
    // SAFETY: a plain system call; its result is checked before it is used.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(SysError::new(what(), io::Error::last_os_error()));
    }
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: SIOCETHTOOL reads an `ifreq` whose data points to an `ethtool_value`; both outlive
    // the call, and the name is terminated because its last byte was never written.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw const request) };
    if result < 0 {
        return Err(SysError::new(what(), io::Error::last_os_error()));
    }
    Ok(())
}
