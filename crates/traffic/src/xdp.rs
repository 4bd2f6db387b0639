//! An XDP program, attached to one interface or to several.

use std::io;
use std::os::fd::AsFd as _;

use aya::maps::{MapData, PerCpuArray};
use aya::programs::xdp::{XdpLink, XdpLinkId, XdpMode as Flag};
use aya::programs::{ProgramError, ProgramFd, Xdp};
use aya::{Ebpf, EbpfLoader};
use fwdlab_model::XdpMode;
use fwdlab_sys::{XdpParking, XdpSlot, wait_for_network_polls};

use crate::{TrafficError, pass_program_of};

/// A loaded XDP program.
pub struct XdpProgram {
    ebpf: Ebpf,
    name: String,
    mode: XdpMode,
    /// Whether it takes frames in several pieces.
    has_frags: bool,
    attachments: Vec<Attachment>,
    parking: Option<XdpParking>,
}

/// How a program is on an interface.
enum Attachment {
    /// It goes with this process.
    Link(XdpLink),
    /// It goes with the interface.
    Slot(XdpSlot),
}

/// Embeds an object file where the loader can read it: aligned.
#[macro_export]
macro_rules! object_bytes {
    ($path:literal) => {
        ::aya::include_bytes_aligned!($path)
    };
}

/// Has the kernel load a program, again where a signal or a stop of this process interrupted its verifier.
///
/// # Errors
/// Those of the kernel.
///
/// # Source
/// Linux: `bpf_check` in `kernel/bpf/verifier.c` ends with EAGAIN where a signal is pending; libbpf tries again, too.
pub fn load_patiently(
    mut load: impl FnMut() -> Result<(), ProgramError>,
) -> Result<(), ProgramError> {
    const TRIES_MAX: u32 = 20;
    let was_interrupted = |error: &ProgramError| {
        matches!(error, ProgramError::LoadError { io_error, .. }
            if matches!(io_error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted))
    };
    let mut result = load();
    for _ in 1..TRIES_MAX {
        match &result {
            Err(error) if was_interrupted(error) => result = load(),
            _ => break,
        }
    }
    result
}

impl XdpProgram {
    /// Loads one program of an object, whose maps are taken with [`map`](Self::map).
    ///
    /// # Errors
    /// Without the privilege, or when the kernel's verifier refuses it.
    pub fn load(object: &[u8], name: &'static str) -> Result<Self, TrafficError> {
        Self::load_with(object, name, &[], &[])
    }

    /// Loads one program of an object, with room for so many entries in the maps that are named, and with these values
    /// of its constants.
    ///
    /// # Errors
    /// Those of [`load`](Self::load).
    pub(crate) fn load_with(
        object: &[u8],
        name: &'static str,
        room: &[(&'static str, u32)],
        constants: &[(&'static str, u32)],
    ) -> Result<Self, TrafficError> {
        let what = || format!("loading eBPF program {name}");
        // The programs touch no kernel types, so the kernel's own BTF need not be read.
        let mut loader = EbpfLoader::new();
        loader.btf(None);
        for &(map, entries) in room {
            loader.map_max_entries(map, entries);
        }
        for (constant, value) in constants {
            loader.override_global(constant, value, true);
        }
        let mut ebpf = loader
            .load(object)
            .map_err(|error| TrafficError::bpf(what(), error))?;
        let program = program_mut(&mut ebpf, name);
        load_patiently(|| program.load()).map_err(|error| TrafficError::bpf(what(), error))?;
        Ok(Self::of(ebpf, name.to_owned(), XdpMode::Native, false))
    }

    /// One that the kernel has taken already.
    ///
    /// Shape: the object has an XDP program of that name, which takes frames in several pieces (`xdp.frags`) or not.
    #[must_use]
    pub const fn of(ebpf: Ebpf, name: String, mode: XdpMode, has_frags: bool) -> Self {
        Self {
            ebpf,
            name,
            mode,
            has_frags,
            attachments: Vec::new(),
            parking: None,
        }
    }

    /// What it was loaded from, with the maps that nobody took.
    #[must_use]
    pub const fn ebpf(&self) -> &Ebpf {
        &self.ebpf
    }

    /// Takes a map out of the object.
    ///
    /// # Panics
    /// When the object has no such map, or it was taken before.
    pub fn take_map<M>(&mut self, name: &str) -> M
    where
        M: TryFrom<aya::maps::Map>,
    {
        let map = self
            .ebpf
            .take_map(name)
            .expect("objects are committed with their maps");
        M::try_from(map).unwrap_or_else(|_| panic!("map {name} is of the kind its object declares"))
    }

    /// The program, to be run or inspected.
    ///
    /// # Panics
    /// Never: the program was found when it was loaded.
    #[must_use]
    pub fn program(&self) -> &Xdp {
        self.ebpf
            .program(&self.name)
            .and_then(|program| program.try_into().ok())
            .expect("the program was found when it was loaded")
    }

    /// The kernel's number for the program, as links show it.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn id(&self) -> Result<u32, TrafficError> {
        let info = self.program().info();
        info.map(|info| info.id())
            .map_err(|error| TrafficError::bpf(format!("asking after {}", self.name), error))
    }

    /// Attaches to an interface of the calling thread's namespace as well, until
    /// [`detach`](Self::detach) or the end of this process.
    ///
    /// # Errors
    /// When there is no such interface, or it has a program already.
    pub fn attach(&mut self, interface: &str) -> Result<(), TrafficError> {
        // The mode is always said: left to itself, a kernel takes the slower one without a word.
        let flag = match self.mode {
            XdpMode::Native => Flag::Driver,
            XdpMode::Generic => Flag::Skb,
        };
        self.attach_with(interface, flag)
    }

    pub(crate) fn attach_with(&mut self, interface: &str, flag: Flag) -> Result<(), TrafficError> {
        let what = self.attaching(interface);
        let link = link(program_mut(&mut self.ebpf, &self.name), what, |program| {
            program.attach(interface, flag)
        })?;
        self.attachments.push(Attachment::Link(link));
        Ok(())
    }

    /// Attaches to an interface of the calling thread's namespace as well, until
    /// [`detach`](Self::detach) or the end of the interface. For interfaces that fwdlab made: if this
    /// process is killed, no program leaves them while frames still come in.
    ///
    /// # Errors
    /// When there is no such interface, or it has a program already.
    pub fn attach_to_stay(&mut self, interface: &str) -> Result<(), TrafficError> {
        let slot = self.fill(interface)?;
        self.attachments.push(Attachment::Slot(slot));
        Ok(())
    }

    /// Has the kernel know the program from now on, so that attaching and detaching it rewrites no code
    /// that other CPUs run, and running it does not wait for all CPUs. Done once, however often it is asked for.
    ///
    /// # Errors
    /// Without the privilege, or where the kernel has no veth.
    pub fn park(&mut self) -> Result<(), TrafficError> {
        // In the kernel's stack, a program is called as any other function.
        if self.parking.is_some() || self.mode == XdpMode::Generic {
            return Ok(());
        }
        let parking = XdpParking::of(self.descriptor()?.as_fd())
            .map_err(|error| TrafficError::bpf(format!("parking {}", self.name), error))?;
        self.parking = Some(parking);
        Ok(())
    }

    fn fill(&self, interface: &str) -> Result<XdpSlot, TrafficError> {
        let failed = |error| TrafficError::bpf(self.attaching(interface), error);
        let mut slot = XdpSlot::open(interface, self.mode).map_err(failed)?;
        slot.fill(self.descriptor()?.as_fd()).map_err(failed)?;
        Ok(slot)
    }

    fn attaching(&self, interface: &str) -> String {
        format!("attaching {} to {interface}", self.name)
    }

    fn descriptor(&self) -> Result<&ProgramFd, TrafficError> {
        let loaded = self.program().fd();
        loaded.map_err(|error| TrafficError::bpf(format!("using {}", self.name), error))
    }

    /// Takes the program off all interfaces that it is on.
    ///
    /// A program that reads its receive queue must not run while it is taken off a veth: the kernel
    /// takes the queue's device away while polls go on for GRO, and the program then reads through a
    /// null pointer inside the kernel. So where the program is to go with this process, a program that
    /// reads nothing takes its place first, and is taken off when the last poll with this one has ended.
    /// Where it was attached [to stay](Self::attach_to_stay), no frame may be under way to it.
    ///
    /// # Errors
    /// When the kernel refuses.
    ///
    /// # Source
    /// `veth_disable_xdp` in `drivers/net/veth.c`; which releases: docs/reliability.md.
    pub fn detach(&mut self) -> Result<(), TrafficError> {
        let what = || format!("detaching {}", self.name);
        let mut links = Vec::new();
        for attachment in self.attachments.drain(..) {
            match attachment {
                Attachment::Link(link) => links.push(link),
                Attachment::Slot(mut slot) => slot
                    .empty()
                    .map_err(|error| TrafficError::bpf(what(), error))?,
            }
        }
        if links.is_empty() {
            return Ok(());
        }
        let pass = if self.has_frags { "pass_frags" } else { "pass" };
        let mut pass = pass_program_of(pass)?;
        let mut retired = Vec::new();
        for attached in links {
            let program = program_mut(&mut pass.ebpf, &pass.name);
            let replace = |program: &mut Xdp| program.attach_to_link(attached);
            retired.push(link(program, what(), replace)?);
        }
        wait_for_network_polls();
        Ok(())
    }

    /// Whether the program is on an interface.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        !self.attachments.is_empty()
    }
}

impl Drop for XdpProgram {
    fn drop(&mut self) {
        // A link would go in any case, and less gently. A slot keeps its program: its interface is
        // about to go, and the kernel stops that first.
        self.attachments
            .retain(|attachment| matches!(attachment, Attachment::Link(_)));
        // Where the kernel refuses, the links go with this value.
        let _ = self.detach();
    }
}

/// Attaches a program, and keeps the link apart from the program.
fn link(
    program: &mut Xdp,
    what: String,
    attach: impl FnOnce(&mut Xdp) -> Result<XdpLinkId, ProgramError>,
) -> Result<XdpLink, TrafficError> {
    attach(program)
        .and_then(|id| program.take_link(id))
        .map_err(|error| TrafficError::bpf(what, error))
}

fn program_mut<'a>(ebpf: &'a mut Ebpf, name: &str) -> &'a mut Xdp {
    ebpf.program_mut(name)
        .and_then(|program| program.try_into().ok())
        .expect("objects are committed with their programs")
}

/// An XDP program with one counter a kind of outcome.
pub struct CountingProgram {
    /// The program.
    pub xdp: XdpProgram,
    counters: PerCpuArray<MapData, u64>,
}

impl CountingProgram {
    /// Loads a program and takes the map of its counters.
    ///
    /// # Errors
    /// Those of [`XdpProgram::load`].
    pub fn load(
        object: &[u8],
        program: &'static str,
        counters: &str,
    ) -> Result<Self, TrafficError> {
        let mut xdp = XdpProgram::load(object, program)?;
        let counters = xdp.take_map(counters);
        Ok(Self { xdp, counters })
    }

    /// Frames counted under a kind since the program was loaded, over all CPUs.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn frames(&self, kind: u32) -> Result<u64, TrafficError> {
        let values = self.counters.get(&kind, 0);
        values
            .map(|values| values.iter().sum())
            .map_err(|error| TrafficError::bpf("reading a program's counters", error))
    }
}
