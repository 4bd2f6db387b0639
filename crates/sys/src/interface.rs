//! What the kernel says of an interface.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

use crate::SysError;

/// An interface with Ethernet's addresses, as it was when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The kernel's number for it.
    pub index: u32,
    /// Its own MAC address.
    pub mac: [u8; 6],
    /// Whether it was set up.
    pub is_up: bool,
    /// Whether the other end of its cable is there and up.
    pub has_carrier: bool,
}

/// The addresses of all interfaces of the calling thread's namespace, each with its interface's name.
///
/// # Errors
/// When the kernel does not say.
pub fn addresses() -> Result<Vec<(String, IpAddr)>, SysError> {
    let entries = getifaddrs()
        .map_err(|error| SysError::new("reading the addresses", io::Error::from(error)))?;
    let addresses = entries.filter_map(|entry| {
        let address = entry.address?;
        let inet = address.as_sockaddr_in().map(|address| address.ip().into());
        let address = inet.or_else(|| Some(address.as_sockaddr_in6()?.ip().into()));
        Some((entry.interface_name, address?))
    });
    Ok(addresses.collect())
}

/// The names of the calling thread's namespace's interfaces but for loopback, sorted.
///
/// # Errors
/// When the kernel does not list them.
pub fn interface_names() -> Result<Vec<String>, SysError> {
    let listed = getifaddrs()
        .map_err(|error| SysError::new("listing the interfaces", io::Error::from(error)))?;
    let names = listed
        .filter(|entry| !entry.flags.contains(InterfaceFlags::IFF_LOOPBACK))
        .map(|entry| entry.interface_name);
    Ok(names.collect::<BTreeSet<_>>().into_iter().collect())
}

/// Looks up an interface of the calling thread's namespace.
///
/// # Errors
/// `NotFound` when there is none of that name, `Unsupported` when it has no MAC address.
pub fn interface(name: &str) -> Result<Interface, SysError> {
    let failed = |error: io::Error| SysError::new(format!("looking up interface {name}"), error);
    let mut error = io::ErrorKind::NotFound;
    for entry in getifaddrs().map_err(|error| failed(error.into()))? {
        if entry.interface_name != name {
            continue;
        }
        error = io::ErrorKind::Unsupported;
        let Some(link) = entry.address.as_ref().and_then(|a| a.as_link_addr()) else {
            continue;
        };
        if let (Ok(index), Some(mac)) = (u32::try_from(link.ifindex()), link.addr()) {
            return Ok(Interface {
                name: name.to_owned(),
                index,
                mac,
                is_up: entry.flags.contains(InterfaceFlags::IFF_UP),
                has_carrier: entry.flags.contains(InterfaceFlags::IFF_RUNNING),
            });
        }
    }
    Err(failed(error.into()))
}
