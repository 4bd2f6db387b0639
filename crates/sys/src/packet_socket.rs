//! Packet sockets: frames to and from an interface as they are, one system call a batch.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;

use crate::SysError;

/// Frames that one system call takes at most.
const BATCH_MAX: usize = 64;

/// A packet socket that sends through one interface.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
}

impl PacketSocket {
    /// Opens a socket that sends through an interface of the calling thread's namespace, and
    /// receives nothing.
    ///
    /// # Errors
    /// Without the privilege (`CAP_NET_RAW` in that namespace), or when there is no such interface.
    pub fn open(interface_index: u32) -> Result<Self, SysError> {
        let open = || {
            let socket = raw_socket(libc::AF_PACKET)?;
            // Straight to the interface: a queue in between would be one more thing that is measured.
            set_option(
                socket.as_fd(),
                libc::SOL_PACKET,
                libc::PACKET_QDISC_BYPASS,
                &1_i32,
            )?;
            bind_to_interface(socket.as_fd(), interface_index, 0)?;
            Ok(Self { socket })
        };
        open().map_err(|source| error("opening a packet socket", interface_index, source))
    }

    /// Hands frames to the interface in one system call, and tells how many it took.
    ///
    /// A frame that the interface drops counts as taken: the interface counts it as dropped. May be
    /// fewer than there are, even none, where the socket's memory is used up.
    ///
    /// # Errors
    /// When the interface is down or gone.
    pub fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SysError> {
        // SAFETY: both are plain data for which zeros are valid.
        let (mut parts, mut messages): ([libc::iovec; BATCH_MAX], [libc::mmsghdr; BATCH_MAX]) =
            unsafe { mem::zeroed() };
        let mut count: libc::c_uint = 0;
        for ((part, message), frame) in parts.iter_mut().zip(&mut messages).zip(frames) {
            part.iov_base = frame.as_ptr().cast_mut().cast();
            part.iov_len = frame.len();
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        // SAFETY: `count` messages are filled in; each points to a part, and that to a frame, which
        // the kernel only reads; all outlive the call.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                count,
                libc::MSG_DONTWAIT,
            )
        };
        match usize::try_from(sent) {
            Ok(sent) => Ok(sent),
            Err(_) => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(1),
                error if may_go_on(&error) => Ok(0),
                error => Err(SysError::new("sending frames with sendmmsg", error)),
            },
        }
    }
}

/// The index of an interface of the calling thread's namespace.
///
/// # Errors
/// When there is no such interface.
pub fn interface_index(name: &str) -> Result<u32, SysError> {
    if_nametoindex(name)
        .map_err(|errno| SysError::new(format!("looking for interface {name}"), errno))
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether a sender that was told so only has to try again.
pub(crate) fn may_go_on(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS | libc::EBUSY)
    )
}

pub(crate) fn error(what: &str, interface_index: u32, source: io::Error) -> SysError {
    SysError::new(format!("{what} on interface {interface_index}"), source)
}

pub(crate) fn raw_socket(family: i32) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call.
    let socket = unsafe { libc::socket(family, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    let socket = Errno::result(socket)?;
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Sets an option whose value is plain data.
pub(crate) fn set_option<T: Copy>(
    socket: BorrowedFd<'_>,
    level: i32,
    option: i32,
    value: &T,
) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<T>()).map_err(io::Error::other)?;
    // SAFETY: the kernel reads as many bytes as the value has.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            ptr::from_ref(value).cast(),
            length,
        )
    };
    checked(result)
}

/// Binds a packet socket to an interface, to receive what a protocol brings (0: nothing).
pub(crate) fn bind_to_interface(
    socket: BorrowedFd<'_>,
    interface_index: u32,
    protocol: u16,
) -> io::Result<()> {
    // SAFETY: plain data for which zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).map_err(io::Error::other)?;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = i32::try_from(interface_index).map_err(io::Error::other)?;
    bind(socket, &address)
}

/// Binds a socket to an address of its family.
pub(crate) fn bind<T: Copy>(socket: BorrowedFd<'_>, address: &T) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<T>()).map_err(io::Error::other)?;
    // SAFETY: the kernel reads as many bytes as the address has.
    checked(unsafe { libc::bind(socket.as_raw_fd(), ptr::from_ref(address).cast(), length) })
}

/// Tells the kernel to send what lies in the socket's ring.
pub(crate) fn send_ring(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: there is neither data nor an address to be read.
    let result = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            ptr::null(),
            0,
            libc::MSG_DONTWAIT,
            ptr::null(),
            0,
        )
    };
    Errno::result(result)?;
    Ok(())
}

pub(crate) fn checked(result: i32) -> io::Result<()> {
    Errno::result(result)?;
    Ok(())
}
