//! An object in the kernel.

use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use aya::maps::{Map, MapData, ProgramArray};
use aya::programs::{Program, ProgramError, ProgramFd};
use aya::{Ebpf, EbpfLoader};
use fwdlab_sys::MapEntries;
use fwdlab_traffic::{TrafficError, load_patiently};

use super::sections::with_known_sections;
use super::{Cause, Kind, OwnObject, PINS, guarded};

/// An object that the kernel has taken, with the program that is to be attached.
pub(in crate::mechanism) struct LoadedObject {
    of: OwnObject,
    /// The files by which its maps are pinned.
    pins: Vec<PathBuf>,
    /// The kernel's numbers of the pinned maps.
    ids: Vec<u32>,
    is_filled: bool,
}

impl LoadedObject {
    /// Loads the program, and those that its tail calls go to.
    ///
    /// # Errors
    /// Without the privilege, when the kernel's verifier refuses one, and where the loader cannot load the object.
    pub(in crate::mechanism) fn load(of: &OwnObject) -> Result<(Self, Ebpf), TrafficError> {
        let what = format!("loading {} program {}", of.kind.name(), of.name);
        let failed = |cause: Cause| refused(what.clone(), cause);
        let object = with_known_sections(&of.bytes).map_err(|error| failed(error.into()))?;
        let mut loader = EbpfLoader::new();
        for (name, bytes) in &of.globals {
            loader.override_global(name, bytes.as_slice(), true);
        }
        for (name, entries) in &of.max_entries {
            loader.map_max_entries(name, *entries);
        }
        let mut ebpf = if of.pinned.is_empty() {
            guarded(|| loader.load(&object)).map_err(failed)?
        } else {
            // The loader would take a map that is pinned already for the object's own, of another level or of another's.
            let aside = PinsAside::make().map_err(|error| failed(error.into()))?;
            loader.default_map_pin_directory(&aside.0);
            guarded(|| loader.load(&object)).map_err(failed)?
        };
        let mut names: Vec<&String> = of.tail_calls.values().flatten().collect();
        names.sort_unstable();
        names.dedup();
        if !names.contains(&&of.name) {
            names.push(&of.name);
        }
        for name in names {
            load(of.kind, &mut ebpf, name)?;
        }
        let mut loaded = Self {
            of: of.clone(),
            pins: Vec::new(),
            ids: Vec::new(),
            is_filled: false,
        };
        loaded.link_tail_calls(&mut ebpf)?;
        Ok((loaded, ebpf))
    }

    /// The name of the program.
    pub(in crate::mechanism) fn name(&self) -> &str {
        &self.of.name
    }

    /// Whether it takes frames in several pieces.
    pub(in crate::mechanism) const fn has_frags(&self) -> bool {
        self.of.has_frags
    }

    /// Puts the functions of tail calls where they are looked up.
    fn link_tail_calls(&mut self, ebpf: &mut Ebpf) -> Result<(), TrafficError> {
        for (array, functions) in &self.of.tail_calls {
            let what = format!("filling program array {array}");
            let failed = |cause: Cause| refused(what.clone(), cause);
            let programs: Result<Vec<ProgramFd>, ProgramError> = functions
                .iter()
                .map(|name| descriptor(self.of.kind, ebpf, name))
                .collect();
            let programs = programs.map_err(|error| failed(error.into()))?;
            let map = ebpf
                .map_mut(array)
                .ok_or_else(|| failed(no_such("map").into()))?;
            let mut array = ProgramArray::try_from(map).map_err(|error| failed(error.into()))?;
            for (index, program) in (0..).zip(&programs) {
                array
                    .set(index, program, 0)
                    .map_err(|error| failed(error.into()))?;
            }
        }
        Ok(())
    }

    /// Fills the maps, once, in the namespace of the DUT, to which the numbers of interfaces belong.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(in crate::mechanism) fn fill(&mut self, ebpf: &Ebpf) -> Result<(), TrafficError> {
        if self.is_filled {
            return Ok(());
        }
        for (name, contents) in &self.of.maps {
            let what = format!("filling map {name}");
            let failed = |cause: Cause| refused(what.clone(), cause);
            let map = ebpf.map(name).and_then(data);
            let map = map.ok_or_else(|| failed(no_such("map").into()))?;
            let entries = MapEntries::of(map.fd().as_fd())?;
            for (key, value) in &contents.0 {
                let number = |interface: &str| fwdlab_sys::interface_index(interface);
                let (key, mut value) = (key.bytes(number)?, value.bytes(number)?);
                // The loader makes room for a program in the values of device maps and CPU maps.
                value.resize(entries.value_size().max(value.len()), 0);
                entries.write(&key, &value)?;
            }
        }
        self.is_filled = true;
        Ok(())
    }

    /// Pins the maps of a program that is attached, once.
    ///
    /// # Errors
    /// What the kernel refuses, and where another program's map is pinned so.
    pub(in crate::mechanism) fn pin(&mut self, ebpf: &Ebpf) -> Result<(), TrafficError> {
        if !self.pins.is_empty() {
            return Ok(());
        }
        for name in &self.of.pinned {
            let path = PathBuf::from(PINS).join(name);
            let what = format!("pinning map {name} to {}", path.display());
            let failed = |cause: Cause| refused(what.clone(), cause);
            let map = ebpf
                .map(name)
                .ok_or_else(|| failed(no_such("map").into()))?;
            if path.exists() {
                let other = "another program's map is there; end that program, or remove the file";
                return Err(failed(io::Error::other(other).into()));
            }
            map.pin(&path).map_err(|error| failed(error.into()))?;
            let pinned = MapData::from_pin(&path).map_err(|error| failed(error.into()))?;
            self.ids.extend(id(&pinned));
            self.pins.push(path);
        }
        Ok(())
    }

    /// Takes the pins of its maps away.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(in crate::mechanism) fn unpin(&mut self) -> Result<(), TrafficError> {
        for path in self.pins.drain(..) {
            // Another process may have put its own there meanwhile.
            let is_own = MapData::from_pin(&path)
                .is_ok_and(|pinned| id(&pinned).is_some_and(|id| self.ids.contains(&id)));
            if !is_own {
                continue;
            }
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(refused(format!("removing {}", path.display()), error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for LoadedObject {
    fn drop(&mut self) {
        // What stays is in the journal.
        let _ = self.unpin();
    }
}

/// The kernel's number of a map.
fn id(map: &MapData) -> Option<u32> {
    map.info().ok().map(|info| info.id())
}

/// Has the kernel take a program.
fn load(kind: Kind, ebpf: &mut Ebpf, name: &str) -> Result<(), TrafficError> {
    let what = || format!("loading {} program {name}", kind.name());
    let program = ebpf
        .program_mut(name)
        .ok_or_else(|| refused(what(), no_such("program")))?;
    let loaded = match program {
        Program::Xdp(program) => load_patiently(|| program.load()),
        Program::SchedClassifier(program) => load_patiently(|| program.load()),
        _ => return Err(refused(what(), no_such("program"))),
    };
    loaded.map_err(|error| match error {
        ProgramError::LoadError {
            io_error,
            verifier_log,
        } if !verifier_log.to_string().trim().is_empty() => TrafficError::Verifier {
            program: name.to_owned(),
            source: io_error,
            log: verifier_log.to_string(),
        },
        error => refused(what(), error),
    })
}

fn descriptor(kind: Kind, ebpf: &Ebpf, name: &str) -> Result<ProgramFd, ProgramError> {
    let descriptor = match (kind, ebpf.program(name)) {
        (Kind::Xdp, Some(Program::Xdp(program))) => program.fd(),
        (Kind::Tc, Some(Program::SchedClassifier(program))) => program.fd(),
        _ => Err(ProgramError::NotLoaded),
    };
    Ok(descriptor?.try_clone()?)
}

/// The data of a map that can be filled.
fn data(map: &Map) -> Option<&MapData> {
    match map {
        Map::Array(map)
        | Map::HashMap(map)
        | Map::LruHashMap(map)
        | Map::PerCpuArray(map)
        | Map::PerCpuHashMap(map)
        | Map::PerCpuLruHashMap(map)
        | Map::LpmTrie(map)
        | Map::DevMap(map)
        | Map::DevMapHash(map)
        | Map::CpuMap(map) => Some(map),
        _ => None,
    }
}

/// A folder of pins for as long as an object is loaded; its maps stay with the process.
struct PinsAside(PathBuf);

impl PinsAside {
    fn make() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("{PINS}/fwdlab-{}-{number}", process::id()));
        let aside = Self(path);
        remove_abandoned();
        fs::create_dir(&aside.0).map_err(|error| {
            let why = format!(
                "{}: {error}; its maps are pinned by name, for which a BPF file system is mounted at {PINS}",
                aside.0.display()
            );
            io::Error::new(error.kind(), why)
        })?;
        Ok(aside)
    }

    fn remove(&self) {
        if let Ok(pins) = fs::read_dir(&self.0) {
            for pin in pins.flatten() {
                let _ = fs::remove_file(pin.path());
            }
            let _ = fs::remove_dir(&self.0);
        }
    }
}

/// Removes the folders of processes that were killed meanwhile.
fn remove_abandoned() {
    let Ok(entries) = fs::read_dir(PINS) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| {
            let (process, _) = name.strip_prefix("fwdlab-")?.split_once('-')?;
            process.parse::<u32>().ok()
        });
        let is_gone = |process| !PathBuf::from(format!("/proc/{process}")).exists();
        if process.is_some_and(is_gone) {
            PinsAside(entry.path()).remove();
        }
    }
}

impl Drop for PinsAside {
    fn drop(&mut self) {
        self.remove();
    }
}

fn refused(what: impl Into<String>, source: impl Into<Cause>) -> TrafficError {
    TrafficError::Bpf {
        what: what.into(),
        source: source.into(),
    }
}

fn no_such(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        format!("the object has no such {what}"),
    )
}
