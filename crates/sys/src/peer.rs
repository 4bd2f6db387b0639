//! Who is at the other end of a local socket.

use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::ptr;

/// The process that a local socket leads to, where the kernel says.
#[must_use]
pub fn peer_process(stream: &UnixStream) -> Option<u32> {
    // SAFETY: plain data for which zeros are valid.
    let mut credentials: libc::ucred = unsafe { mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of_val(&credentials)).ok()?;
    // SAFETY: the kernel writes at most `length` bytes of plain data.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            ptr::from_mut(&mut credentials).cast(),
            &raw mut length,
        )
    };
    // A process of another process namespace has the number 0 here.
    let pid = u32::try_from(credentials.pid).ok()?;
    (result == 0 && pid > 0).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_pair_are_of_this_process() {
        let (one, other) = UnixStream::pair().unwrap();
        for end in [&one, &other] {
            assert_eq!(peer_process(end), Some(std::process::id()));
        }
    }
}
