//! What the kernel says of an interface.

use std::io;

use nix::ifaddrs::getifaddrs;

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
}

/// Looks up an interface of the calling thread's namespace.
///
/// # Errors
/// When there is none of that name, or it has no MAC address.
pub fn interface(name: &str) -> Result<Interface, SysError> {
    let failed = |error| SysError::new(format!("looking up interface {name}"), error);
    let mut addresses = getifaddrs().map_err(|error| failed(error.into()))?;
    addresses
        .find_map(|entry| {
            let link = *entry.address?.as_link_addr()?;
            let index = u32::try_from(link.ifindex()).ok()?;
            let mac = link.addr()?;
            (entry.interface_name == name).then(|| Interface {
                name: name.to_owned(),
                index,
                mac,
            })
        })
        .ok_or_else(|| failed(io::Error::from(io::ErrorKind::NotFound)))
}
