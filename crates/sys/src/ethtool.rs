//! Features, queues and counters of an interface, as ethtool knows them.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;

use crate::SysError;

// Commands and numbers of `linux/ethtool.h`.
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETH_SS_STATS: u32 = 1;
const ETH_SS_FEATURES: u32 = 4;

/// `ETH_GSTRING_LEN` in words.
const NAME_WORDS: usize = 8;
/// Features in one word of a set.
const WORD_BITS: usize = u32::BITS as usize;

/// A feature of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The kernel's name for it.
    pub name: String,
    /// Whether it can be changed.
    pub is_changeable: bool,
    /// Whether it is on.
    pub is_on: bool,
}

/// The features that the kernel knows, as an interface of the calling thread's namespace has them.
///
/// # Errors
/// When there is no such interface.
pub fn features(interface: &str) -> Result<Vec<Feature>, SysError> {
    let failed = |source| {
        SysError::new(
            format!("reading the features of interface {interface}"),
            source,
        )
    };
    read_features(interface).map_err(failed)
}

/// Turns features of an interface of the calling thread's namespace on or off.
///
/// # Errors
/// When there is no such interface or feature, or one may not be changed.
pub fn set_features(interface: &str, names: &[&str], is_on: bool) -> Result<(), SysError> {
    let what = || {
        let state = if is_on { "on" } else { "off" };
        format!(
            "turning {} {state} for interface {interface}",
            names.join(", ")
        )
    };
    write_features(interface, names, is_on).map_err(|source| SysError::new(what(), source))
}

/// Turns generic receive offload on for an interface of the calling thread's namespace.
///
/// A veth only polls (NAPI), and so only takes redirected frames, with this or an XDP program.
///
/// # Errors
/// When there is no such interface or it may not be changed.
pub fn enable_gro(interface: &str) -> Result<(), SysError> {
    set_features(interface, &["rx-gro"], true)
}

/// How many queues an interface of the calling thread's namespace transmits through; one where its driver does not
/// say.
///
/// # Errors
/// When there is no such interface.
pub fn transmit_queues(interface: &str) -> Result<u32, SysError> {
    // struct ethtool_channels: command, the largest numbers of receive, transmit, other and combined channels, and then
    // the current ones.
    let mut request = [ETHTOOL_GCHANNELS, 0, 0, 0, 0, 0, 0, 0, 0];
    match ioctl(interface, &mut request) {
        Ok(_) => Ok((request[6] + request[8]).max(1)),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
        Err(error) => Err(SysError::new(
            format!("reading the queues of interface {interface}"),
            error,
        )),
    }
}

fn read_features(interface: &str) -> io::Result<Vec<Feature>> {
    let names = names(interface, ETH_SS_FEATURES)?;
    let words = names.len().div_ceil(WORD_BITS);
    // struct ethtool_gfeatures: command, number of words, and for each word four sets: available,
    // requested, active, never changed.
    let mut request = vec![0; 2 + 4 * words];
    request[0] = ETHTOOL_GFEATURES;
    request[1] = word(words);
    ioctl(interface, &mut request)?;
    let is_in = |set: usize, bit: usize| {
        request[2 + 4 * (bit / WORD_BITS) + set] & (1 << (bit % WORD_BITS)) != 0
    };
    Ok(names
        .into_iter()
        .enumerate()
        .map(|(bit, name)| Feature {
            name,
            is_changeable: is_in(0, bit),
            is_on: is_in(2, bit),
        })
        .collect())
}

fn write_features(interface: &str, wanted: &[&str], is_on: bool) -> io::Result<()> {
    let names = names(interface, ETH_SS_FEATURES)?;
    let words = names.len().div_ceil(WORD_BITS);
    // struct ethtool_sfeatures: command, number of words, and for each word two sets: valid,
    // requested.
    let mut request = vec![0; 2 + 2 * words];
    request[0] = ETHTOOL_SFEATURES;
    request[1] = word(words);
    for wanted in wanted {
        let bit = names
            .iter()
            .position(|name| name == wanted)
            .ok_or(io::ErrorKind::NotFound)?;
        let at = 2 + 2 * (bit / WORD_BITS);
        request[at] |= 1 << (bit % WORD_BITS);
        request[at + 1] |= u32::from(is_on) << (bit % WORD_BITS);
    }
    // The kernel says in its result which of the features it did not change as it was told.
    match ioctl(interface, &mut request)? {
        0 => Ok(()),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// The counters that the driver of an interface of the calling thread's namespace keeps, by its names for them; none where it
/// keeps none.
///
/// # Errors
/// When there is no such interface.
pub fn statistics(interface: &str) -> Result<Vec<(String, u64)>, SysError> {
    match read_statistics(interface) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(Vec::new()),
        read => read.map_err(|source| {
            SysError::new(
                format!("reading the counters of interface {interface}"),
                source,
            )
        }),
    }
}

fn read_statistics(interface: &str) -> io::Result<Vec<(String, u64)>> {
    /// The kernel writes as many as there are, whatever is asked for: room for those that came meanwhile.
    const ROOM: usize = 4096;
    let names = names(interface, ETH_SS_STATS)?;
    // struct ethtool_stats: command, number of values, and 64 bits for each.
    let mut request = vec![0; 2 + 2 * (names.len() + ROOM)];
    request[0] = ETHTOOL_GSTATS;
    request[1] = word(names.len());
    ioctl(interface, &mut request)?;
    let values = request[2..].chunks(2).map(read_u64);
    Ok(names.into_iter().zip(values).collect())
}

/// The kernel's names of all that is in a set, in its order.
fn names(interface: &str, set: u32) -> io::Result<Vec<String>> {
    // struct ethtool_sset_info: command, reserved, 64 bits of mask, and the size of each set in it.
    let mut request = vec![0; 5];
    request[0] = ETHTOOL_GSSET_INFO;
    write_u64(&mut request[2..4], 1 << set);
    ioctl(interface, &mut request)?;
    let count = request[4];
    // struct ethtool_gstrings: command, set, size, and 32 bytes for each name.
    let mut request = vec![0; 3 + NAME_WORDS * count as usize];
    request[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, set, count]);
    ioctl(interface, &mut request)?;
    Ok(request[3..]
        .chunks(NAME_WORDS)
        .map(|words| {
            let bytes: Vec<u8> = words
                .iter()
                .flat_map(|word| word.to_ne_bytes())
                .take_while(|&byte| byte != 0)
                .collect();
            String::from_utf8_lossy(&bytes).into_owned()
        })
        .collect())
}

fn word(value: usize) -> u32 {
    u32::try_from(value).expect("sets of features have a few words")
}

/// Writes 64 bits as they lie in memory.
fn write_u64(words: &mut [u32], value: u64) {
    for (word, bytes) in words.iter_mut().zip(value.to_ne_bytes().chunks(4)) {
        *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
}

/// Reads 64 bits as they lie in memory.
fn read_u64(words: &[u32]) -> u64 {
    let mut bytes = [0; 8];
    for (place, word) in bytes.chunks_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    u64::from_ne_bytes(bytes)
}

/// One request of ethtool's, which the kernel answers in the same place; its result, if not negative.
fn ioctl(interface: &str, request: &mut [u32]) -> io::Result<u32> {
    let mut name = [0; libc::IFNAMSIZ];
    if interface.len() >= name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (slot, &byte) in name.iter_mut().zip(interface.as_bytes()) {
        *slot = libc::c_char::from_ne_bytes([byte]);
    }
    let request = libc::ifreq {
        ifr_name: name,
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_data: request.as_mut_ptr().cast(),
        },
    };
    // SAFETY: a plain system call.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    let socket = Errno::result(socket)?;
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: SIOCETHTOOL reads an `ifreq` whose data points to a structure of the command's, all
    // made of words and as long as the command and its count say; the name is terminated because its
    // last byte was never written. Both outlive the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw const request) };
    u32::try_from(result).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_features() {
        let features = features("lo").unwrap();
        let named = |name: &str| features.iter().find(|feature| feature.name == name);
        assert!(!named("loopback").unwrap().is_changeable);
        assert!(named("loopback").unwrap().is_on);
        assert!(named("rx-gro").unwrap().is_changeable);
    }

    #[test]
    fn an_interface_that_does_not_say_has_one_queue_and_one_that_is_not_there_none() {
        assert_eq!(transmit_queues("lo").unwrap(), 1);
        let error = transmit_queues("no-such-one").unwrap_err();
        assert!(error.to_string().contains("no-such-one"), "{error}");
    }

    #[test]
    fn an_interface_without_counters_of_its_own_has_none() {
        assert!(statistics("lo").unwrap().is_empty());
        assert!(statistics("no-such-one").is_err());
    }

    #[test]
    fn a_feature_that_is_not_is_refused() {
        let error = set_features("lo", &["no-such-feature"], true).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("no-such-feature on for interface lo")
        );
        assert!(features("no-such-interface-at-all").is_err());
    }

    #[test]
    fn sixty_four_bits_lie_as_the_kernel_reads_them() {
        let mut words = [0; 2];
        write_u64(&mut words, 0x10);
        let expected = if cfg!(target_endian = "little") {
            [0x10, 0]
        } else {
            [0, 0x10]
        };
        assert_eq!(words, expected);
        write_u64(&mut words, u64::MAX - 5);
        assert_eq!(read_u64(&words), u64::MAX - 5);
    }
}
