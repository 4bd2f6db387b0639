//! An XDP program, attached to one interface or to several.

use aya::maps::{MapData, PerCpuArray};
use aya::programs::Xdp;
use aya::programs::xdp::{XdpLink, XdpMode};
use aya::{Ebpf, EbpfLoader};

use crate::TrafficError;

/// A loaded XDP program.
pub struct XdpProgram {
    ebpf: Ebpf,
    name: &'static str,
    links: Vec<XdpLink>,
}

/// Embeds an object file where the loader can read it: aligned.
#[macro_export]
macro_rules! object_bytes {
    ($path:literal) => {
        ::aya::include_bytes_aligned!($path)
    };
}

impl XdpProgram {
    /// Loads one program of an object, whose maps are taken with [`map`](Self::map).
    ///
    /// # Errors
    /// Without the privilege, or when the kernel's verifier refuses it.
    pub fn load(object: &[u8], name: &'static str) -> Result<Self, TrafficError> {
        Self::load_with_room(object, name, &[])
    }

    /// Loads one program of an object, with room for so many entries in the maps that are named.
    ///
    /// # Errors
    /// Those of [`load`](Self::load).
    pub fn load_with_room(
        object: &[u8],
        name: &'static str,
        room: &[(&'static str, u32)],
    ) -> Result<Self, TrafficError> {
        let what = || format!("loading eBPF program {name}");
        // The programs touch no kernel types, so the kernel's own BTF need not be read.
        let mut loader = EbpfLoader::new();
        loader.btf(None);
        for &(map, entries) in room {
            loader.map_max_entries(map, entries);
        }
        let mut ebpf = loader
            .load(object)
            .map_err(|error| TrafficError::bpf(what(), error))?;
        program_mut(&mut ebpf, name)
            .load()
            .map_err(|error| TrafficError::bpf(what(), error))?;
        Ok(Self {
            ebpf,
            name,
            links: Vec::new(),
        })
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
            .program(self.name)
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
    /// [`detach`](Self::detach) or the end of this value.
    ///
    /// # Errors
    /// When there is no such interface, or it has a program already.
    pub fn attach(&mut self, interface: &str) -> Result<(), TrafficError> {
        // Anything but the driver's own XDP would be slower without a word.
        self.attach_in_mode(interface, XdpMode::Driver)
    }

    pub(crate) fn attach_in_mode(
        &mut self,
        interface: &str,
        mode: XdpMode,
    ) -> Result<(), TrafficError> {
        let what = format!("attaching {} to {interface}", self.name);
        let program = program_mut(&mut self.ebpf, self.name);
        let link = program
            .attach(interface, mode)
            .and_then(|id| program.take_link(id))
            .map_err(|error| TrafficError::bpf(what, error))?;
        self.links.push(link);
        Ok(())
    }

    /// Takes the program off all interfaces that it is on.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// Whether the program is on an interface.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        !self.links.is_empty()
    }
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
