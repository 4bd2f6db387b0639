//! The owner's tc program at the ingress of the DUT's receiving interface: of a namespace, or of a Linux host.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io;
use std::panic::{self, AssertUnwindSafe};

use aya::programs::tc::{NlOptions, SchedClassifierLink, TcAttachOptions, TcHandle};
use aya::programs::{SchedClassifier, TcAttachType, tc};
use aya::{Ebpf, EbpfLoader};
use aya_obj::ProgramSection;
use aya_obj::maps::{Map, PinningType};
use fwdlab_model::{Binding, Direction, Lab, Variant};
use fwdlab_sys::Input;
use fwdlab_traffic::{TrafficError, load_patiently};

use super::by_level::ByLevel;
use super::program::{Hook, HookPrograms, Loaded, Program};
use super::question::{Answers, Look, Question};
use super::step::{Action, Errand, Step, owned};
use super::tools::Tool;
use super::{DutPlace, Mechanism, bound};
use crate::counters::Drops;
use crate::{LabError, Moved};

/// Larger files are refused.
const OBJECT_BYTES_MAX: u64 = 1 << 20;

/// Those of a lab; none where no factor has any.
fn by_level(lab: &Lab) -> Result<Option<ByLevel<Option<Program>>>, LabError> {
    let factors = bound(lab, |binding| match binding {
        Binding::Tc(programs) => Some(programs),
        _ => None,
    });
    let factors = factors.map(|(factor, levels)| {
        let programs = levels.iter().map(|(level, program)| {
            let program = program.as_ref().map(object).transpose()?;
            Ok((level.clone(), program))
        });
        Ok((factor, programs.collect::<Result<_, LabError>>()?))
    });
    let factors: Vec<(String, BTreeMap<String, Option<Program>>)> =
        factors.collect::<Result<_, LabError>>()?;
    Ok(ByLevel::of(factors.into_iter()))
}

/// An object file's program.
fn object(of: &fwdlab_model::binding::TcProgram) -> Result<Program, LabError> {
    let path = &of.object.found;
    let wrong = |what| LabError::Object {
        path: path.clone(),
        what,
    };
    let bytes = Input::file(path, OBJECT_BYTES_MAX)
        .bytes()
        .map_err(|error| wrong(error.to_string()))?;
    if fwdlab_model::sha256(&bytes) != of.object.sha256 {
        let changed = "it has changed since the run read it; put the old file back, and run the command again to go on; with \
                       the new file the command begins another run";
        return Err(wrong(changed.to_owned()));
    }
    let name = chosen(&bytes, of.program.as_deref()).map_err(wrong)?;
    Ok(Program::Tc {
        object: bytes,
        name,
    })
}

/// What the loader makes of an object, or why that is nothing. It takes much of a file for granted, and panics over one that is
/// damaged.
fn guarded<T, E: Into<Cause>>(read: impl FnOnce() -> Result<T, E>) -> Result<T, Cause> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let read = panic::catch_unwind(AssertUnwindSafe(read));
    panic::set_hook(hook);
    match read {
        Ok(read) => read.map_err(Into::into),
        Err(_) => Err("the file is damaged".into()),
    }
}

/// The name of an object's tc program: the one asked for, or else its only one.
///
/// # Errors
/// What is wrong with the object where it has none, and what to do.
fn chosen(object: &[u8], asked: Option<&str>) -> Result<String, String> {
    let object = with_known_sections(object).map_err(|error| error.to_string())?;
    let object = guarded(|| aya_obj::Object::parse(&object)).map_err(|error| {
        format!("it is no eBPF object ({error}); compile it with `clang -O2 -g -target bpf -c`")
    })?;
    let is_pinned = |map: &Map| !matches!(map.pinning(), PinningType::None);
    let pinned: BTreeSet<&String> = object
        .maps
        .iter()
        .filter_map(|(name, map)| is_pinned(map).then_some(name))
        .collect();
    if let Some(map) = pinned.first() {
        return Err(format!(
            "its map {map} is pinned, so that what it counts would outlive the level; take the pinning out"
        ));
    }
    let programs: BTreeMap<&String, _> = object.programs.iter().collect();
    let of_tc =
        |program: &aya_obj::Program| matches!(program.section, ProgramSection::SchedClassifier);
    let names = programs.iter().filter(|(_, program)| of_tc(program));
    let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
    match (asked, names.as_slice()) {
        (Some(asked), names) if names.contains(&asked) => Ok(asked.to_owned()),
        (None, &[only]) => Ok(only.to_owned()),
        (_, []) if programs.is_empty() => {
            Err("it has no program; a tc program is a function in SEC(\"tc\")".to_owned())
        }
        (_, []) => {
            let others: Vec<&str> = programs.keys().map(|name| name.as_str()).collect();
            Err(format!(
                "it has no tc program, only {}; a tc program is a function in SEC(\"tc\")",
                others.join(", ")
            ))
        }
        (Some(asked), names) => Err(format!(
            "it has no tc program {asked:?}; it has: {}",
            names.join(", ")
        )),
        (None, several) => Err(format!(
            "it has several tc programs ({}); name one with `program` in the lab file",
            several.join(", ")
        )),
    }
}

/// What shows the filters at the ingress of an interface.
fn filters(interface: &str) -> Vec<String> {
    owned(&["tc", "filter", "show", "dev", interface, "ingress"])
}

/// What shows the queueing disciplines of an interface with what they have dropped.
fn disciplines(interface: &str) -> Vec<String> {
    owned(&["tc", "-s", "qdisc", "show", "dev", interface])
}

/// The number of the program of an interface's filter, as `tc filter` shows it.
fn program_of(filters: &str) -> Option<u32> {
    let words: Vec<&str> = filters.split_whitespace().collect();
    let ids = words.windows(2).filter(|pair| pair[0] == "id");
    ids.filter_map(|pair| pair[1].parse().ok()).next()
}

/// The queueing discipline to which filters of frames that come in belong, with all behind it, as `tc -s qdisc` shows it: an
/// owner's may be the older `ingress`.
fn ingress(disciplines: &str) -> Option<&str> {
    let kinds = ["qdisc clsact ", "qdisc ingress "];
    kinds
        .iter()
        .find_map(|kind| Some(disciplines.split_once(kind)?.1))
}

/// What it has dropped.
fn dropped(disciplines: &str) -> Option<u64> {
    let (_, behind) = ingress(disciplines)?.split_once("(dropped ")?;
    behind.split(',').next()?.parse().ok()
}

fn has_filters(port: &str) -> String {
    format!(
        "{port} has filters at its ingress; list them with `tc filter show dev {port} ingress`, and remove them before \
         the run"
    )
}

fn reason(interface: &str) -> String {
    format!("tc ingress of {interface}")
}

/// That of a Linux kernel.
pub(super) struct LinuxTc(HookPrograms);

impl LinuxTc {
    /// None where the lab binds no factor to tc programs.
    ///
    /// # Errors
    /// `File` where an object cannot be read.
    pub(super) fn new(
        lab: &Lab,
        direction: Direction,
        place: &DutPlace,
    ) -> Result<Option<Self>, LabError> {
        let programs = by_level(lab)?.map(|by_level| HookPrograms {
            hook: Hook::TcIngress,
            ports: place.receiving(direction),
            by_level,
            tool: Some(Tool::Tc),
            shown: |port| Look::Command(filters(port)),
            number_in: program_of,
            setting: |port| format!("the tc program of {port}"),
        });
        Ok(programs.map(Self))
    }

    fn ports(&self) -> impl Iterator<Item = &String> {
        self.0.ports.iter()
    }
}

impl Mechanism for LinuxTc {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let is_set = self.0.are_set(variant)?;
        let ports = self.ports().filter(|_| is_set);
        let questions = ports.map(|port| Question::maybe(filters(port)));
        Ok(questions.chain(self.0.needs(variant)?).collect())
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let is_set = self.0.are_set(variant)?;
        let in_the_way =
            self.ports()
                .filter(|_| is_set)
                .find_map(|port| match answers.get(&filters(port)) {
                    None => Some("`tc filter show` fails".to_owned()),
                    Some("") => None,
                    Some(_) => Some(has_filters(port)),
                });
        Ok(self.0.lacking(variant, answers)?.or(in_the_way))
    }

    fn looks(&self) -> Vec<Question> {
        let questions = self
            .ports()
            .flat_map(|port| [filters(port), disciplines(port)]);
        let questions = questions.map(Question::maybe);
        questions.chain([Tool::Tc.question()]).collect()
    }

    fn keep(&mut self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        let mut steps = Vec::new();
        // Without it no program can be set.
        let is_there = Tool::Tc.lacking(answers).is_none();
        for port in self.ports().filter(|_| is_there) {
            if !answers.needed(&filters(port))?.is_empty() {
                return Err(answers.wrong(has_filters(port)));
            }
            let is_there = ingress(answers.needed(&disciplines(port))?).is_some();
            // What is gone already, with a module or a boot, needs no undo.
            let undo = if is_there {
                "! tc filter show dev \"$0\" ingress | grep -q . || tc filter del dev \"$0\" ingress"
            } else {
                "! tc qdisc show dev \"$0\" | grep -q clsact || tc qdisc del dev \"$0\" clsact"
            };
            let what = format!("tc programs of {port}");
            steps.push(Step::kept(what, Errand::of(&["sh", "-c", undo, port])));
        }
        Ok(steps)
    }

    fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        self.0.actions(variant)
    }

    fn counters(&self) -> Vec<Vec<String>> {
        self.ports().map(|port| disciplines(port)).collect()
    }

    fn drops(&self, answers: &Answers) -> Drops {
        let drops = self.ports().filter_map(|port| {
            let frames = dropped(answers.get(&disciplines(port))?)?;
            Some((reason(port), frames))
        });
        drops.collect()
    }

    fn reads(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        self.0.reads(variant)
    }

    fn moved(&mut self, variant: &Variant, answers: &Answers) -> Result<Option<Moved>, LabError> {
        self.0.moved(variant, answers)
    }
}

type Cause = Box<dyn Error + Send + Sync>;

/// No folder, in which no map can be pinned.
const NO_PINS: &str = "/proc/self/no-maps-are-pinned";

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
    /// Loads the program of an object file that has the name.
    ///
    /// # Errors
    /// Where the bytes are no object, it has no such program, without the privilege, or when the kernel's verifier refuses it.
    pub(super) fn load(object: &[u8], name: &str) -> Result<Self, TrafficError> {
        let what = format!("loading tc program {name}");
        let failed = |cause: Cause| refused(what.clone(), cause);
        let object = with_known_sections(object).map_err(|error| failed(error.into()))?;
        // Where nothing can be pinned: maps of one level would be another's, and outlive the run.
        let mut loader = EbpfLoader::new();
        let loader = loader.default_map_pin_directory(NO_PINS);
        let ebpf = guarded(|| loader.load(&object)).map_err(failed)?;
        let mut program = Self {
            ebpf,
            name: name.to_owned(),
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

    fn failed(&self, what: &str, error: impl Into<Cause>) -> TrafficError {
        refused(format!("{what} {}", self.name), error)
    }
}

/// A filter stays in any case, and disturbs no other CPU; what it drops, the queueing discipline counts.
impl Loaded for TcFilter {
    /// The kernel's number for the program, as `tc filter` shows it.
    ///
    /// # Errors
    /// When the kernel does not say.
    fn id(&self) -> Result<u32, TrafficError> {
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

    /// Attaches the program to the ingress of one more interface in this thread's network namespace. Adds `clsact` if it is
    /// missing.
    ///
    /// # Errors
    /// When there is no such interface, or it has a filter of the same priority already.
    fn attach(&mut self, interface: &str) -> Result<(), TrafficError> {
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
                    let other = format!(
                        "it already has a filter with priority {PRIORITY}; list it with `tc filter show dev {interface} \
                         ingress`"
                    );
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
    fn detach(&mut self) -> Result<(), TrafficError> {
        for link in std::mem::take(&mut self.links) {
            match aya::programs::links::Link::detach(link) {
                // Somebody else has taken it away, which reading back shows.
                Err(error) if kinds(&error).any(is_gone) => {}
                detached => detached.map_err(|error| self.failed("detaching", error))?,
            }
        }
        Ok(())
    }
}

/// A link finds its filter by the number of its interface, in the namespace of the thread that drops it: elsewhere it would
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

/// An object whose sections of tc programs have the name that the loader knows; what is no little-endian 64-bit ELF stays as
/// it is, for the loader to refuse.
///
/// # Errors
/// Where the programs of a renamed section relocate kernel types: those are found by the section's old name.
///
/// # Source
/// libbpf's `section_defs` in `src/libbpf.c`: `tc`, `tc/ingress`, `tcx/ingress` and the like, and `classifier`.
fn with_known_sections(object: &[u8]) -> Result<Cow<'_, [u8]>, io::Error> {
    match renamed(object) {
        None => Ok(Cow::Borrowed(object)),
        Some(Renamed { object, relocates }) if !relocates => Ok(Cow::Owned(object)),
        Some(_) => Err(io::Error::other(
            "its tc programs relocate kernel types (CO-RE); put them into SEC(\"classifier\"), which libbpf takes as well",
        )),
    }
}

struct Renamed {
    object: Vec<u8>,
    /// Whether programs relocate kernel types.
    relocates: bool,
}

/// Copies the section name table to the end of the file, and adds the new name to it. What `.BTF.ext` says of functions and
/// lines goes by the old names, so that it is left out. None where no section has another name than the loader knows.
///
/// # Source
/// System V ABI, chapter 4: `Elf64_Ehdr` and `Elf64_Shdr`; Linux: `struct btf_ext_header` in libbpf's `src/libbpf_internal.h`.
fn renamed(object: &[u8]) -> Option<Renamed> {
    const NAME: usize = 0;
    const FLAGS: usize = 8;
    const OFFSET: usize = 24;
    const SIZE: usize = 32;
    /// Of the header of `.BTF.ext`: the bytes that relocations take.
    const RELOCATIONS: usize = 28;
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
    // What is behind the end of the object is nothing, wherever a header says that it is.
    let header = |section: usize| {
        let at = headers.checked_add(section.checked_mul(header_size)?)?;
        (at < object.len()).then_some(at)
    };
    let of_names = header(of_names)?;
    let start = usize::try_from(long(of_names + OFFSET)?).ok()?;
    let length = usize::try_from(long(of_names + SIZE)?).ok()?;
    let names = object.get(start..start.checked_add(length)?)?;
    let new_name = u32::try_from(names.len()).ok()?;
    let no_name = new_name + u32::try_from(SECTION.len()).ok()?;
    let mut named = object.to_vec();
    let mut rename = |at: usize, name: u32| {
        named.get_mut(at..)?[..4].copy_from_slice(&name.to_le_bytes());
        Some(())
    };
    let mut is_renamed = false;
    let mut relocates = false;
    for section in 0..sections {
        let at = header(section)?;
        let name = names.get(usize::try_from(word(at + NAME)?).ok()?..)?;
        let name = name.split(|&byte| byte == 0).next()?;
        let kind = name.split(|&byte| byte == b'/').next()?;
        let is_program = long(at + FLAGS)? & u64::from(SHF_EXECINSTR) != 0;
        if is_program && SECTIONS.contains(&kind) && kind != SECTION {
            rename(at + NAME, new_name)?;
            is_renamed = true;
        }
        if name == b".BTF.ext" {
            let start = usize::try_from(long(at + OFFSET)?).ok()?;
            relocates = word(start.checked_add(RELOCATIONS)?).is_some_and(|bytes| bytes > 0);
            rename(at + NAME, no_name)?;
        }
    }
    if !is_renamed {
        return None;
    }
    let end = (named.len() as u64).to_le_bytes();
    let new_length = (names.len() + SECTION.len() + 1) as u64;
    named.get_mut(of_names + OFFSET..)?[..8].copy_from_slice(&end);
    named.get_mut(of_names + SIZE..)?[..8].copy_from_slice(&new_length.to_le_bytes());
    named.extend([names, SECTION, &[0]].concat());
    Some(Renamed {
        object: named,
        relocates,
    })
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

/// The kinds of an error and of its causes.
fn kinds<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = io::ErrorKind> + 'e {
    let causes = std::iter::successors(Some(error), |&error: &&'e (dyn Error + 'static)| {
        error.source()
    });
    causes.filter_map(|error| error.downcast_ref().map(io::Error::kind))
}

/// What a filter, or all below its queueing discipline, answers that is not there.
fn is_gone(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::InvalidInput)
}

/// Whether what was to be added is there already.
fn is_there(error: &(dyn Error + 'static)) -> bool {
    kinds(error).any(|kind| kind == io::ErrorKind::AlreadyExists)
}

#[cfg(test)]
mod tests {
    use object::LittleEndian;
    use object::read::elf::ElfFile64;
    use object::{Object as _, ObjectSection as _};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_tc_shows_is_read() {
        let listed = "filter protocol all pref 1 bpf chain 0 \n\
             filter protocol all pref 1 bpf chain 0 handle 0x1 classify direct-action not_in_hw id 89 name classify \
             tag 3b185187f1855c4c jited \n";
        assert_eq!(program_of(listed), Some(89));
        assert_eq!(program_of(""), None);
        let disciplines = "qdisc noqueue 0: root refcnt 2 \n Sent 0 bytes 0 pkt (dropped 3, overlimits 0 requeues 0) \n\
             qdisc clsact ffff: parent ffff:fff1 \n Sent 600 bytes 10 pkt (dropped 7, overlimits 0 requeues 0) \n";
        assert_eq!(dropped(disciplines), Some(7));
        assert_eq!(
            dropped("qdisc noqueue 0: root refcnt 2 \n Sent 0 bytes 0 pkt (dropped 3, "),
            None
        );
    }

    /// An object whose programs are in a section that libbpf names so.
    fn object() -> Vec<u8> {
        let mut object = include_bytes!("../../../testkit/bpf/tc_shed.bpf.o").to_vec();
        while let Some(at) = object.windows(10).position(|name| name == SECTION) {
            object[at..][..10].copy_from_slice(b"tc/ingress");
        }
        object
    }

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
        let object = object();
        let named = with_known_sections(&object).unwrap();
        let before = sections(&object);
        assert!(before.contains(&"tc/ingress".to_owned()), "{before:?}");
        let expected = before.iter().map(|name| match name.as_str() {
            "tc/ingress" => "classifier".to_owned(),
            ".BTF.ext" => String::new(),
            other => other.to_owned(),
        });
        assert!(expected.eq(sections(&named)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_object_or_refused(bytes: Vec<u8>, at in 0_usize..3000, byte: u8) {
            let _ = chosen(&bytes, None);
            let mut object = object();
            let length = object.len();
            object[at % length] = byte;
            let _ = chosen(&object, None);
            let _ = chosen(&object[..at % length], None);
        }

        #[test]
        fn any_text_is_read(text in "((qdisc|clsact|id|\\(dropped|filter|[0-9]{0,12})[ ,\n]|\\PC){0,40}") {
            let _ = (program_of(&text), dropped(&text));
        }
    }
}
