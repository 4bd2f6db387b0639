//! Loading a tc program, and attaching it to the ingress of interfaces.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::error::Error;
use std::io;

use aya::programs::tc::{NlOptions, SchedClassifierLink, TcAttachOptions, TcHandle};
use aya::programs::{SchedClassifier, TcAttachType, tc};
use aya::{Ebpf, EbpfLoader};

use fwdlab_traffic::{TrafficError, load_patiently};

type Cause = Box<dyn Error + Send + Sync>;

/// Where the program stands among an interface's filters.
const PRIORITY: u16 = 1;
const HANDLE: TcHandle = TcHandle::new(0, 1);

/// A loaded tc program. What is attached stays until [`detach`](Self::detach) or the end of the interface.
pub(super) struct TcFilter {
    ebpf: Ebpf,
    name: String,
    links: Vec<SchedClassifierLink>,
}

impl TcFilter {
    /// Loads the program of an object file that has the name; the only tc program that it has, without a name.
    ///
    /// # Errors
    /// Where the bytes are no object, it has no such program, or several and none is named, without the privilege, or when
    /// the kernel's verifier refuses it.
    pub(super) fn load(object: &[u8], name: Option<&str>) -> Result<Self, TrafficError> {
        let what = match name {
            Some(name) => format!("loading tc program {name}"),
            None => "loading a tc program".to_owned(),
        };
        let failed = |cause: Cause| refused(what.clone(), cause);
        let object = with_known_sections(object);
        let ebpf = EbpfLoader::new()
            .load(&object)
            .map_err(|error| failed(error.into()))?;
        let names = ebpf.programs().filter_map(|(name, program)| {
            let is_of_tc = matches!(program, aya::programs::Program::SchedClassifier(_));
            is_of_tc.then_some(name)
        });
        let names: BTreeSet<&str> = names.collect();
        let names: Vec<&str> = names.into_iter().collect();
        let name = match (name, names.as_slice()) {
            (Some(name), _) | (None, &[name]) => name.to_owned(),
            (None, []) => return Err(failed(no_program().into())),
            (None, several) => {
                let several = several.join(", ");
                let why = format!(
                    "the object has several tc programs ({several}); say which by `program`"
                );
                return Err(failed(io::Error::other(why).into()));
            }
        };
        let mut program = Self {
            ebpf,
            name,
            links: Vec::new(),
        };
        let found = program
            .program_mut()
            .ok_or_else(|| failed(no_program().into()))?;
        load_patiently(|| found.load()).map_err(|error| failed(error.into()))?;
        Ok(program)
    }

    fn program_mut(&mut self) -> Option<&mut SchedClassifier> {
        self.ebpf.program_mut(&self.name)?.try_into().ok()
    }

    /// The kernel's number for the program, as `tc filter` shows it.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub(super) fn id(&self) -> Result<u32, TrafficError> {
        let program: Option<&SchedClassifier> = self
            .ebpf
            .program(&self.name)
            .and_then(|program| program.try_into().ok());
        let info = program.map(|program| program.info());
        match info {
            Some(Ok(info)) => Ok(info.id()),
            Some(Err(error)) => Err(self.failed("asking after", error)),
            None => Err(self.failed("asking after", no_program())),
        }
    }

    /// Attaches to the ingress of an interface of the calling thread's namespace as well, which gets the queueing discipline
    /// `clsact` for it.
    ///
    /// # Errors
    /// When there is no such interface, or it has a filter of the same priority already.
    pub(super) fn attach(&mut self, interface: &str) -> Result<(), TrafficError> {
        let what = format!("attaching {} to", self.name);
        let failed = |cause: Cause| refused(format!("{what} {interface}"), cause);
        match tc::qdisc_add_clsact(interface) {
            Err(error) if !is_there(&error) => return Err(failed(error.into())),
            _ => {}
        }
        let options = TcAttachOptions::Netlink(NlOptions {
            priority: PRIORITY,
            handle: HANDLE,
            classid: None,
        });
        let program = self
            .program_mut()
            .ok_or_else(|| failed(no_program().into()))?;
        let link = program
            .attach_with_options(interface, TcAttachType::Ingress, options)
            .and_then(|link| program.take_link(link))
            .map_err(|error| {
                if is_there(&error) {
                    let other = "another filter has its place; `tc filter show dev INTERFACE ingress` lists it";
                    return failed(io::Error::other(other).into());
                }
                failed(error.into())
            })?;
        self.links.push(link);
        Ok(())
    }

    /// Takes the program off all interfaces that it is on, from the namespace that they are in.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn detach(&mut self) -> Result<(), TrafficError> {
        for link in std::mem::take(&mut self.links) {
            let detached = aya::programs::links::Link::detach(link);
            detached.map_err(|error| self.failed("detaching", error))?;
        }
        Ok(())
    }

    fn failed(&self, what: &str, error: impl Into<Cause>) -> TrafficError {
        refused(format!("{what} {}", self.name), error)
    }
}

/// A link finds its filter by the number of its interface, in the namespace of whoever drops it: dropped elsewhere it would
/// take another one's filter away.
impl Drop for TcFilter {
    fn drop(&mut self) {
        self.links.drain(..).for_each(std::mem::forget);
    }
}

/// Of a section's flags: its bytes are instructions.
const SHF_EXECINSTR: u32 = 4;

/// The only name of tc programs' sections that the loader knows.
const SECTION: &[u8] = b"classifier";

/// The kinds of sections that libbpf takes for tc programs, each with more behind a slash or without.
const SECTIONS: [&[u8]; 3] = [b"tc", b"tcx", SECTION];

/// An object whose sections of tc programs have the name that the loader knows; what is no 64-bit ELF of this machine's byte
/// order stays as it is, for the loader to refuse.
///
/// # Source
/// libbpf's `section_defs` in `src/libbpf.c`: `tc`, `tc/ingress`, `tcx/ingress` and the like, and `classifier`.
fn with_known_sections(object: &[u8]) -> Cow<'_, [u8]> {
    renamed(object).map_or(Cow::Borrowed(object), Cow::Owned)
}

/// The names of sections stand in one of them, which is put behind the object with the new name in it.
///
/// # Source
/// System V ABI, chapter 4: `Elf64_Ehdr` and `Elf64_Shdr`.
fn renamed(object: &[u8]) -> Option<Vec<u8>> {
    const NAME: usize = 0;
    const FLAGS: usize = 8;
    const OFFSET: usize = 24;
    const SIZE: usize = 32;
    let half = |at: usize| {
        Some(usize::from(u16::from_le_bytes(
            *object.get(at..)?.first_chunk()?,
        )))
    };
    let word = |at: usize| Some(u32::from_le_bytes(*object.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u64::from_le_bytes(*object.get(at..)?.first_chunk()?));
    if !object.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let headers = usize::try_from(long(0x28)?).ok()?;
    let (header_size, sections, of_names) = (half(0x3a)?, half(0x3c)?, half(0x3e)?);
    let header = |section: usize| headers.checked_add(section.checked_mul(header_size)?);
    let of_names = header(of_names)?;
    let start = usize::try_from(long(of_names + OFFSET)?).ok()?;
    let length = usize::try_from(long(of_names + SIZE)?).ok()?;
    let names = object.get(start..start.checked_add(length)?)?;
    let mut named = object.to_vec();
    for section in 0..sections {
        let at = header(section)?;
        let name = names.get(usize::try_from(word(at + NAME)?).ok()?..)?;
        let kind = name.split(|&byte| byte == b'/' || byte == 0).next()?;
        if SECTIONS.contains(&kind) && long(at + FLAGS)? & u64::from(SHF_EXECINSTR) != 0 {
            let new = u32::try_from(names.len()).ok()?;
            named.get_mut(at + NAME..)?[..4].copy_from_slice(&new.to_le_bytes());
        }
    }
    let end = (named.len() as u64).to_le_bytes();
    let new_length = (names.len() + SECTION.len() + 1) as u64;
    named.get_mut(of_names + OFFSET..)?[..8].copy_from_slice(&end);
    named.get_mut(of_names + SIZE..)?[..8].copy_from_slice(&new_length.to_le_bytes());
    named.extend([names, SECTION, &[0]].concat());
    Some(named)
}

fn refused(what: String, source: impl Into<Cause>) -> TrafficError {
    TrafficError::Bpf {
        what,
        source: source.into(),
    }
}

fn no_program() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the object has no such tc program")
}

/// Whether what was to be added is there already.
fn is_there(error: &(dyn Error + 'static)) -> bool {
    let mut source = Some(error);
    while let Some(error) = source {
        let kind = error.downcast_ref().map(io::Error::kind);
        if kind == Some(io::ErrorKind::AlreadyExists) {
            return true;
        }
        source = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use object::LittleEndian;
    use object::read::elf::ElfFile64;
    use object::{Object as _, ObjectSection as _};
    use proptest::prelude::*;

    use super::*;

    const OBJECT: &[u8] = include_bytes!("../../../testkit/bpf/tc_shed.bpf.o");

    /// The names of an object's sections.
    fn sections(object: &[u8]) -> Vec<String> {
        let file = ElfFile64::<LittleEndian>::parse(object).unwrap();
        let names = file
            .sections()
            .map(|section| section.name().unwrap().to_owned());
        names.collect()
    }

    #[test]
    fn programs_are_found_whatever_libbpf_calls_their_section() {
        let named = with_known_sections(OBJECT);
        let before = sections(OBJECT);
        assert!(before.contains(&"tc".to_owned()), "{before:?}");
        let expected = before.iter().map(|name| match name.as_str() {
            "tc" => "classifier".to_owned(),
            other => other.to_owned(),
        });
        assert!(expected.eq(sections(&named)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_object_or_refused(bytes: Vec<u8>, at in 0_usize..3000, byte: u8) {
            let _ = with_known_sections(&bytes);
            let mut object = OBJECT.to_vec();
            let length = object.len();
            object[at % length] = byte;
            let _ = with_known_sections(&object);
            let _ = with_known_sections(&object[..at % length]);
        }
    }
}
