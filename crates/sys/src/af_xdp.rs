//! AF_XDP sockets in copy mode, to send only: no eBPF program is needed for that.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use crate::SysError;
use crate::mapping::Mapping;
use crate::packet_socket::{bind, checked, error, may_go_on, raw_socket, send_ring, set_option};

/// Frames under way at most; a power of two, as rings have it.
const FRAMES: u32 = 256;

/// Room for a frame: the least that the kernel allows, and enough for 1522 bytes.
const CHUNK_SIZE: u32 = 2048;

/// Slots of the ring of free frames to receive into, which a socket must have even to send.
const FILL_SLOTS: u32 = 2;

/// How often the kernel is asked to send what it was once handed, before it is given up.
const TRIES_MAX: u32 = 100_000;

/// An AF_XDP socket that sends.
#[derive(Debug)]
pub struct XdpSocket {
    // Closed first, so that the kernel reads none of the memory any more.
    socket: OwnedFd,
    transmit: Ring,
    completion: Ring,
    // The kernel would want to write to it; it is only mapped because it must exist.
    _fill: Ring,
    frames: Mapping,
    /// Where the chunks that are not under way begin.
    free: Vec<u32>,
}

/// One of the rings by which descriptors go to and fro.
#[derive(Debug)]
struct Ring {
    memory: Mapping,
    producer: usize,
    consumer: usize,
    descriptors: usize,
    slots: u32,
}

impl XdpSocket {
    /// Opens a socket that sends through one queue of an interface of the calling thread's namespace,
    /// counted from 0. It has to be one that transmits: the kernel may take another number, too.
    ///
    /// # Errors
    /// Without the privilege (`CAP_NET_RAW` in that namespace), without AF_XDP in the kernel, when
    /// this user may lock less than half a MiB of memory, or when there is no such interface.
    pub fn open(interface_index: u32, queue: u32) -> Result<Self, SysError> {
        Self::try_open(interface_index, queue)
            .map_err(|source| error("opening an AF_XDP socket", interface_index, source))
    }

    fn try_open(interface_index: u32, queue: u32) -> io::Result<Self> {
        let socket = raw_socket(libc::AF_XDP)?;
        let length = u64::from(FRAMES) * u64::from(CHUNK_SIZE);
        let frames = Mapping::anonymous(usize::try_from(length).map_err(io::Error::other)?)?;
        // SAFETY: plain data for which zeros are valid.
        let mut memory: libc::xdp_umem_reg = unsafe { mem::zeroed() };
        memory.addr = frames.address();
        memory.len = length;
        memory.chunk_size = CHUNK_SIZE;
        let option = |option, slots: u32| set_option(socket.as_fd(), libc::SOL_XDP, option, &slots);
        set_option(socket.as_fd(), libc::SOL_XDP, libc::XDP_UMEM_REG, &memory)?;
        option(libc::XDP_UMEM_FILL_RING, FILL_SLOTS)?;
        option(libc::XDP_UMEM_COMPLETION_RING, FRAMES)?;
        option(libc::XDP_TX_RING, FRAMES)?;
        let offsets = ring_offsets(&socket)?;
        let ring = |place: &libc::xdp_ring_offset, slots, slot_size, page_offset| {
            Ring::map(&socket, place, slots, slot_size, page_offset)
        };
        let address_size = size_of::<u64>();
        let page_offset =
            |offset: libc::c_ulonglong| libc::off_t::try_from(offset).map_err(io::Error::other);
        let fill_offset = page_offset(libc::XDP_UMEM_PGOFF_FILL_RING)?;
        let completion_offset = page_offset(libc::XDP_UMEM_PGOFF_COMPLETION_RING)?;
        let fill = ring(&offsets.fr, FILL_SLOTS, address_size, fill_offset)?;
        let completion = ring(&offsets.cr, FRAMES, address_size, completion_offset)?;
        let descriptor_size = size_of::<libc::xdp_desc>();
        let transmit = ring(
            &offsets.tx,
            FRAMES,
            descriptor_size,
            libc::XDP_PGOFF_TX_RING,
        )?;
        let address = libc::sockaddr_xdp {
            sxdp_family: u16::try_from(libc::AF_XDP).map_err(io::Error::other)?,
            sxdp_flags: libc::XDP_COPY,
            sxdp_ifindex: interface_index,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        bind_when_free(&socket, &address)?;
        Ok(Self {
            socket,
            transmit,
            completion,
            _fill: fill,
            frames,
            free: (0..FRAMES).map(|chunk| chunk * CHUNK_SIZE).collect(),
        })
    }

    /// Sends frames, and tells how many there was room for; all of those were handed to the
    /// interface.
    ///
    /// # Errors
    /// When the interface is down or gone, or a frame is longer than 2048 bytes.
    pub fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SysError> {
        self.collect();
        let mut produced = self.transmit.producer().load(Ordering::Relaxed);
        let mut taken = 0;
        for frame in frames {
            let length = u32::try_from(frame.len())
                .ok()
                .filter(|&length| length <= CHUNK_SIZE)
                .ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
            let Some(chunk) = self.free.pop() else {
                break;
            };
            self.frames.copy_in(chunk as usize, frame);
            let descriptor = descriptor(chunk.into(), length);
            let slot = self.transmit.slot(produced, descriptor.len());
            self.transmit.memory.copy_in(slot, &descriptor);
            produced = produced.wrapping_add(1);
            taken += 1;
        }
        self.transmit.producer().store(produced, Ordering::Release);
        self.hand_over(produced)?;
        Ok(taken)
    }

    /// Asks the kernel to send until it has taken every descriptor.
    fn hand_over(&mut self, produced: u32) -> Result<(), SysError> {
        for _ in 0..TRIES_MAX {
            if self.transmit.consumer().load(Ordering::Acquire) == produced {
                return Ok(());
            }
            match send_ring(self.socket.as_fd()) {
                Err(error) if !may_go_on(&error) => return Err(failed(error)),
                // It takes some frames a call, and needs room to tell that they were sent.
                Ok(()) | Err(_) => self.collect(),
            }
        }
        Err(failed(io::ErrorKind::TimedOut.into()))
    }

    /// Takes back the chunks of frames that were sent.
    fn collect(&mut self) {
        let produced = self.completion.producer().load(Ordering::Acquire);
        let mut consumed = self.completion.consumer().load(Ordering::Relaxed);
        while consumed != produced {
            let mut chunk = [0; size_of::<u64>()];
            let slot = self.completion.slot(consumed, chunk.len());
            self.completion.memory.copy_out(slot, &mut chunk);
            // It comes back as it was sent, so it fits.
            self.free.extend(u32::try_from(u64::from_ne_bytes(chunk)));
            consumed = consumed.wrapping_add(1);
        }
        self.completion
            .consumer()
            .store(consumed, Ordering::Release);
    }
}

impl Ring {
    fn map(
        socket: &OwnedFd,
        place: &libc::xdp_ring_offset,
        slots: u32,
        slot_size: usize,
        page_offset: libc::off_t,
    ) -> io::Result<Self> {
        let offset = |offset: u64| usize::try_from(offset).map_err(io::Error::other);
        let descriptors = offset(place.desc)?;
        let length = descriptors + slots as usize * slot_size;
        Ok(Self {
            memory: Mapping::of(socket.as_fd(), length, page_offset)?,
            producer: offset(place.producer)?,
            consumer: offset(place.consumer)?,
            descriptors,
            slots,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        self.memory.word(self.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.memory.word(self.consumer)
    }

    /// Where a slot begins, of those that are numbered on and on.
    fn slot(&self, number: u32, slot_size: usize) -> usize {
        self.descriptors + (number % self.slots) as usize * slot_size
    }
}

/// Binds once the queue is free: a socket that was closed leaves it a little later.
fn bind_when_free(socket: &OwnedFd, address: &libc::sockaddr_xdp) -> io::Result<()> {
    const STEP: Duration = Duration::from_millis(1);
    const STEPS_MAX: u32 = 500;
    for _ in 0..STEPS_MAX {
        match bind(socket.as_fd(), address) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => sleep(STEP),
            result => return result,
        }
    }
    bind(socket.as_fd(), address)
}

fn ring_offsets(socket: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: plain data for which zeros are valid.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { mem::zeroed() };
    let full = libc::socklen_t::try_from(size_of_val(&offsets)).map_err(io::Error::other)?;
    let mut length = full;
    // SAFETY: the kernel writes at most `length` bytes of plain data, and then how many they were.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            ptr::from_mut(&mut offsets).cast(),
            &raw mut length,
        )
    };
    checked(result)?;
    // Kernels before 5.4 answer in an older, shorter form.
    if length != full {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(offsets)
}

/// A `struct xdp_desc` as it lies in memory, without options.
fn descriptor(address: u64, length: u32) -> [u8; size_of::<libc::xdp_desc>()] {
    let mut bytes = [0; size_of::<libc::xdp_desc>()];
    bytes[..8].copy_from_slice(&address.to_ne_bytes());
    bytes[8..12].copy_from_slice(&length.to_ne_bytes());
    bytes
}

fn failed(source: io::Error) -> SysError {
    SysError::new("sending frames from an AF_XDP socket", source)
}
