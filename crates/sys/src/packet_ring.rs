//! Packet sockets whose frames lie in memory shared with the kernel (`PACKET_TX_RING`,
//! `PACKET_RX_RING`).

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use libc::{
    BPF_ABS, BPF_ALU, BPF_B, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_MOD, BPF_RET, BPF_W, sock_filter,
    tpacket2_hdr,
};

use crate::mapping::Mapping;
use crate::packet_socket::{
    bind_to_interface, error, may_go_on, raw_socket, send_ring, set_option,
};
use crate::{PacketSocket, SysError};

/// A whole number of any architecture's pages.
const BLOCK_SIZE: usize = 64 * 1024;

/// Slots of a ring to send from: some batches, and still in the cache.
const TRANSMIT_SLOTS: usize = 256;

/// Bytes of the longest frame to be sent.
const TRANSMIT_LENGTH_MAX: usize = 1522;

/// How often the kernel is asked to send what it was once handed, before it is given up.
const TRIES_MAX: u32 = 100_000;

/// Where a frame to be sent begins in its slot.
const TRANSMIT_DATA: usize = libc::TPACKET2_HDRLEN - size_of::<libc::sockaddr_ll>();

/// Bytes of a slot before the frame, when it is received: the slot's header, a link-layer address, and
/// what aligns the network header.
const RECEIVE_HEAD: usize = libc::TPACKET2_HDRLEN + 32;

/// Slots in shared memory, taken in turn.
#[derive(Debug)]
struct Ring {
    memory: Mapping,
    slot_size: usize,
    slots: usize,
    next: usize,
}

impl Ring {
    /// Sets up a socket's ring; the number of slots is rounded up to whole blocks.
    fn new(
        socket: &impl AsFd,
        option: i32,
        slots: usize,
        slot_size_min: usize,
    ) -> io::Result<Self> {
        let socket = socket.as_fd();
        let slot_size = slot_size_min.next_power_of_two();
        if slot_size > BLOCK_SIZE {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let blocks = (slots * slot_size).div_ceil(BLOCK_SIZE);
        let slots = blocks * (BLOCK_SIZE / slot_size);
        let number = |count: usize| libc::c_uint::try_from(count).map_err(io::Error::other);
        let request = libc::tpacket_req {
            tp_block_size: number(BLOCK_SIZE)?,
            tp_block_nr: number(blocks)?,
            tp_frame_size: number(slot_size)?,
            tp_frame_nr: number(slots)?,
        };
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        set_option(socket, libc::SOL_PACKET, option, &request)?;
        Ok(Self {
            memory: Mapping::of(socket, blocks * BLOCK_SIZE, 0)?,
            slot_size,
            slots,
            next: 0,
        })
    }

    /// Where a slot begins.
    fn slot(&self, slot: usize) -> usize {
        slot * self.slot_size
    }

    /// Whose slot it is; what the other side wrote before it gave it away is then seen.
    fn status(&self, slot: usize) -> u32 {
        let status = self.slot(slot) + offset_of!(tpacket2_hdr, tp_status);
        self.memory.word(status).load(Ordering::Acquire)
    }

    /// Gives a slot to the kernel, with all that was written into it.
    fn give(&self, slot: usize, status: u32) {
        let word = self.slot(slot) + offset_of!(tpacket2_hdr, tp_status);
        self.memory.word(word).store(status, Ordering::Release);
    }

    fn advance(&mut self) {
        self.next = (self.next + 1) % self.slots;
    }
}

/// A packet socket that sends from a ring.
#[derive(Debug)]
pub struct TransmitRing {
    ring: Ring,
    socket: PacketSocket,
}

impl TransmitRing {
    /// Opens a ring that sends through an interface of the calling thread's namespace.
    ///
    /// # Errors
    /// Those of [`PacketSocket::open`], or when there is no memory.
    pub fn open(interface_index: u32) -> Result<Self, SysError> {
        let socket = PacketSocket::open(interface_index)?;
        let slot_size = TRANSMIT_DATA + TRANSMIT_LENGTH_MAX;
        let ring = Ring::new(&socket, libc::PACKET_TX_RING, TRANSMIT_SLOTS, slot_size)
            .map_err(|source| error("opening a transmit ring", interface_index, source))?;
        Ok(Self { ring, socket })
    }

    /// Sends frames, and tells how many there was room for; all of those were handed to the
    /// interface.
    ///
    /// # Errors
    /// When the interface is down or gone, or a frame is longer than 1522 bytes.
    pub fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SysError> {
        let mut last = None;
        let mut taken = 0;
        for frame in frames {
            let slot = self.ring.next;
            if self.ring.status(slot) != libc::TP_STATUS_AVAILABLE {
                break;
            }
            let length = u32::try_from(frame.len())
                .ok()
                .filter(|_| frame.len() <= TRANSMIT_LENGTH_MAX)
                .ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
            let start = self.ring.slot(slot);
            self.ring.memory.copy_in(start + TRANSMIT_DATA, frame);
            self.ring
                .memory
                .word(start + offset_of!(tpacket2_hdr, tp_len))
                .store(length, Ordering::Relaxed);
            self.ring.give(slot, libc::TP_STATUS_SEND_REQUEST);
            self.ring.advance();
            last = Some(slot);
            taken += 1;
        }
        if let Some(last) = last {
            self.hand_over(last)?;
        }
        Ok(taken)
    }

    /// Asks the kernel to send until it has taken a slot, and with it all before.
    fn hand_over(&mut self, slot: usize) -> Result<(), SysError> {
        for _ in 0..TRIES_MAX {
            match send_ring(self.socket.as_fd()) {
                Err(error) if !may_go_on(&error) => return Err(failed(error)),
                Ok(()) | Err(_) => {}
            }
            match self.ring.status(slot) {
                libc::TP_STATUS_SEND_REQUEST => {}
                libc::TP_STATUS_WRONG_FORMAT => {
                    return Err(failed(io::ErrorKind::InvalidData.into()));
                }
                _ => return Ok(()),
            }
        }
        Err(failed(io::ErrorKind::TimedOut.into()))
    }
}

fn failed(source: io::Error) -> SysError {
    SysError::new("sending frames from a transmit ring", source)
}

/// A packet socket that receives, into a ring, copies of frames that are addressed to somebody else
/// than the interface they come in at.
#[derive(Debug)]
pub struct ReceiveRing {
    ring: Ring,
    socket: OwnedFd,
    frame: Vec<u8>,
}

impl ReceiveRing {
    /// Opens a ring for every n-th frame, drawn at random, that comes in at an interface of the
    /// calling thread's namespace; frames beyond the number of slots are lost unless they are read
    /// in time.
    ///
    /// # Errors
    /// Those of [`PacketSocket::open`], or when there is no memory.
    pub fn open(
        interface_index: u32,
        slots: usize,
        frame_length_max: usize,
        every: u32,
    ) -> Result<Self, SysError> {
        let open = || {
            let socket = raw_socket(libc::AF_PACKET)?;
            let slot_size = RECEIVE_HEAD + frame_length_max;
            let ring = Ring::new(&socket, libc::PACKET_RX_RING, slots, slot_size)?;
            let receive = Self {
                ring,
                socket,
                frame: Vec::with_capacity(slot_size),
            };
            receive.filter(every)?;
            // Only now, so that nothing comes in unfiltered.
            let all = u16::try_from(libc::ETH_P_ALL).map_err(io::Error::other)?;
            bind_to_interface(receive.socket.as_fd(), interface_index, all)?;
            Ok(receive)
        };
        open().map_err(|source| error("opening a receive ring", interface_index, source))
    }

    /// Takes every n-th frame from now on, drawn at random.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn sample(&mut self, every: u32) -> Result<(), SysError> {
        self.filter(every)
            .map_err(|source| SysError::new("setting a packet socket's filter", source))
    }

    fn filter(&self, every: u32) -> io::Result<()> {
        let mut instructions = sampling_filter(every);
        let program = libc::sock_fprog {
            len: libc::c_ushort::try_from(instructions.len()).map_err(io::Error::other)?,
            filter: instructions.as_mut_ptr(),
        };
        // The kernel copies the instructions, which outlive the call.
        let option = libc::SO_ATTACH_FILTER;
        set_option(self.socket.as_fd(), libc::SOL_SOCKET, option, &program)
    }

    /// Passes on the frames that have come in since, without FCS and with their VLAN's tag, and tells how many there were.
    pub fn read(&mut self, mut pass_on: impl FnMut(&[u8])) -> usize {
        let mut read = 0;
        // At most once around: more may come in meanwhile than can be read.
        while read < self.ring.slots {
            let slot = self.ring.next;
            let status = self.ring.status(slot);
            if status & libc::TP_STATUS_USER == 0 {
                break;
            }
            let start = self.ring.slot(slot);
            let mut mac = [0; 2];
            let memory = &self.ring.memory;
            memory.copy_out(start + offset_of!(tpacket2_hdr, tp_mac), &mut mac);
            let length = memory.word(start + offset_of!(tpacket2_hdr, tp_snaplen));
            let length = length.load(Ordering::Relaxed) as usize;
            let begin = usize::from(u16::from_ne_bytes(mac));
            self.frame
                .resize(length.min(self.ring.slot_size - begin), 0);
            memory.copy_out(start + begin, &mut self.frame);
            if status & libc::TP_STATUS_VLAN_VALID != 0 {
                let half = |field| {
                    let mut half = [0; 2];
                    memory.copy_out(start + field, &mut half);
                    u16::from_ne_bytes(half).to_be_bytes()
                };
                let tag = [
                    half(offset_of!(tpacket2_hdr, tp_vlan_tpid)),
                    half(offset_of!(tpacket2_hdr, tp_vlan_tci)),
                ];
                insert_tag(&mut self.frame, tag);
            }
            pass_on(&self.frame);
            self.ring.give(slot, libc::TP_STATUS_KERNEL);
            self.ring.advance();
            read += 1;
        }
        read
    }
}

/// Puts the tag of a VLAN back where it was on the cable: the kernel shows it beside the frame.
///
/// # Source
/// Linux: `tpacket_rcv` in `net/packet/af_packet.c`.
fn insert_tag(frame: &mut Vec<u8>, tag: [[u8; 2]; 2]) {
    const MAC_ADDRESSES_LENGTH: usize = 12;
    let place = MAC_ADDRESSES_LENGTH.min(frame.len());
    frame.splice(place..place, tag.into_iter().flatten());
}

/// A classic BPF program that takes one of so many frames for another station, at random.
fn sampling_filter(every: u32) -> [sock_filter; 7] {
    const WHOLE_FRAME: u32 = u32::MAX;
    let instruction = |code: u32, k: u32, jt: u8, jf: u8| sock_filter {
        // All codes have 8 bits.
        code: (code & 0xff) as u16,
        jt,
        jf,
        k,
    };
    let about = |what: i32| (libc::SKF_AD_OFF + what).cast_unsigned();
    [
        instruction(BPF_LD | BPF_B | BPF_ABS, about(libc::SKF_AD_PKTTYPE), 0, 0),
        instruction(
            BPF_JMP | BPF_JEQ | BPF_K,
            libc::PACKET_OTHERHOST.into(),
            0,
            4,
        ),
        instruction(BPF_LD | BPF_W | BPF_ABS, about(libc::SKF_AD_RANDOM), 0, 0),
        instruction(BPF_ALU | BPF_MOD | BPF_K, every.max(1), 0, 0),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
        instruction(BPF_RET | BPF_K, WHOLE_FRAME, 0, 0),
        instruction(BPF_RET | BPF_K, 0, 0, 0),
    ]
}
