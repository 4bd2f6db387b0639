//! eBPF objects of the owner's: what a level takes of one, checked before a kernel sees it, and loaded.

mod contents;
mod loaded;
mod sections;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use aya_obj::ProgramSection;
use aya_obj::maps::{Map, PinningType};
use aya_obj::programs::XdpAttachType;
use fwdlab_model::{EbpfProgram, GlobalValue, Upload};
use fwdlab_sys::Input;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _, ObjectSymbol as _};
use serde::{Deserialize, Serialize};

use self::contents::Contents;
use self::sections::with_known_sections;
use crate::LabError;

pub(super) use self::loaded::LoadedObject;

/// Larger files are refused: objects, and contents of maps.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Where maps are pinned that ask for it by their name.
///
/// # Source
/// libbpf: `DEFAULT_BPFFS` in `src/libbpf.c`.
const PINS: &str = "/sys/fs/bpf";

pub(super) type Cause = Box<dyn Error + Send + Sync>;

/// A kind of program, by the hook that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Xdp,
    Tc,
}

impl Kind {
    const fn is_of(self, section: &ProgramSection) -> bool {
        match self {
            // Those of device maps and CPU maps are attached to no interface.
            Self::Xdp => matches!(
                section,
                ProgramSection::Xdp {
                    attach_type: XdpAttachType::Interface,
                    ..
                }
            ),
            Self::Tc => matches!(section, ProgramSection::SchedClassifier),
        }
    }

    /// As messages call it.
    const fn name(self) -> &'static str {
        match self {
            Self::Xdp => "XDP",
            Self::Tc => "tc",
        }
    }

    /// As its section is called in C.
    const fn section(self) -> &'static str {
        match self {
            Self::Xdp => "xdp",
            Self::Tc => "tc",
        }
    }
}

/// One program of an object, with what is set in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnObject {
    kind: Kind,
    /// The object file.
    bytes: Vec<u8>,
    /// Its function.
    pub(crate) name: String,
    /// Whether it is an XDP program for frames in several pieces.
    #[serde(default)]
    has_frags: bool,
    globals: BTreeMap<String, Vec<u8>>,
    /// How many entries maps have room for, where that is not what the object says.
    #[serde(default)]
    max_entries: BTreeMap<String, u32>,
    maps: BTreeMap<String, Contents>,
    /// The functions of each program array.
    tail_calls: BTreeMap<String, Vec<String>>,
    /// The maps that are pinned while it is attached.
    pinned: BTreeSet<String>,
}

impl OwnObject {
    /// What a level names, with the names of the DUT's interfaces.
    ///
    /// # Errors
    /// `Object` where a file cannot be read, or is not what the level says of it.
    pub(super) fn read(
        kind: Kind,
        of: &EbpfProgram,
        [interface_in, interface_out]: [&str; 2],
    ) -> Result<Self, LabError> {
        let bytes = file(&of.object)?;
        let wrong = |what| wrong(&of.object.found, what);
        let mut shape = Shape::of(&bytes).map_err(wrong)?;
        for (map, entries) in &of.max_entries {
            shape.map_mut(map).map_err(wrong)?.set_max_entries(*entries);
        }
        let name = shape.chosen(kind, of.program.as_deref()).map_err(wrong)?;
        let section = shape.programs.get(&name);
        let has_frags = matches!(section, Some(ProgramSection::Xdp { frags: true, .. }));
        let globals = of.globals.iter().map(|(name, value)| {
            let bytes = shape.global(&bytes, name, value).map_err(wrong)?;
            Ok((name.clone(), bytes))
        });
        let globals = globals.collect::<Result<_, LabError>>()?;
        for (array, functions) in &of.tail_calls {
            shape.tail_calls(kind, array, functions).map_err(wrong)?;
        }
        let mut maps = BTreeMap::new();
        for (map, upload) in &of.maps {
            let sizes = shape.fillable(map).map_err(wrong)?;
            let text = String::from_utf8(file(upload)?)
                .map_err(|_| self::wrong(&upload.found, "it is no text".to_owned()))?;
            let contents = Contents::read(&text, sizes, [interface_in, interface_out]);
            let contents = contents.map_err(|what| self::wrong(&upload.found, what))?;
            maps.insert(map.clone(), contents);
        }
        Ok(Self {
            kind,
            bytes,
            name,
            has_frags,
            globals,
            max_entries: of.max_entries.clone(),
            maps,
            tail_calls: of.tail_calls.clone(),
            pinned: shape.pinned,
        })
    }

    /// A program of fwdlab's own, without maps.
    pub(super) fn ours(kind: Kind, bytes: &[u8], name: &str) -> Self {
        Self {
            kind,
            bytes: bytes.to_vec(),
            name: name.to_owned(),
            has_frags: false,
            globals: BTreeMap::new(),
            max_entries: BTreeMap::new(),
            maps: BTreeMap::new(),
            tail_calls: BTreeMap::new(),
            pinned: BTreeSet::new(),
        }
    }

    /// The files of the maps that are pinned while it is attached.
    pub(crate) fn pins(&self) -> impl Iterator<Item = String> {
        self.pinned.iter().map(|map| format!("{PINS}/{map}"))
    }
}

fn wrong(path: &Path, what: String) -> LabError {
    LabError::Object {
        path: path.to_owned(),
        what,
    }
}

/// A file that the run has read before.
fn file(of: &Upload) -> Result<Vec<u8>, LabError> {
    let path = &of.found;
    let bytes = Input::file(path, FILE_BYTES_MAX)
        .bytes()
        .map_err(|error| wrong(path, error.to_string()))?;
    if fwdlab_model::sha256(&bytes) != of.sha256 {
        let changed = "it has changed since the run read it; put the old file back, and run the command again to go on; with \
                       the new file the command begins another run";
        return Err(wrong(path, changed.to_owned()));
    }
    Ok(bytes)
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

/// The sizes of a map's entries, and how many it has room for.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    key: usize,
    value: usize,
    entries: usize,
}

/// What is in an object.
struct Shape {
    programs: BTreeMap<String, ProgramSection>,
    maps: BTreeMap<String, Map>,
    pinned: BTreeSet<String>,
}

impl Shape {
    /// # Errors
    /// What is wrong with the object, and what to do.
    fn of(bytes: &[u8]) -> Result<Self, String> {
        let object = with_known_sections(bytes).map_err(|error| error.to_string())?;
        let object = guarded(|| aya_obj::Object::parse(&object)).map_err(|error| {
            format!(
                "it is no eBPF object that can be loaded ({error}); compile it with `clang -O2 -g -target bpf -c`, with \
                 programs in SEC(\"xdp\"), SEC(\"xdp.frags\") or SEC(\"tc\"); what cannot be loaded so, a `command` may load"
            )
        })?;
        let maps: BTreeMap<String, Map> = object.maps.into_iter().collect();
        let is_pinned = |map: &Map| !matches!(map.pinning(), PinningType::None);
        let pinned = maps.iter().filter(|(_, map)| is_pinned(map));
        let pinned: BTreeSet<String> = pinned.map(|(name, _)| name.clone()).collect();
        // It becomes the name of a file, which is removed again.
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if let Some(name) = pinned.iter().find(|name| !name.bytes().all(is_name)) {
            return Err(format!(
                "its pinned map {name:?} has no name of C; give it one"
            ));
        }
        let programs = object.programs.into_iter();
        Ok(Self {
            programs: programs
                .map(|(name, program)| (name, program.section))
                .collect(),
            maps,
            pinned,
        })
    }

    /// The name of a kind's program: the one asked for, or else the only one.
    ///
    /// # Errors
    /// What is wrong with the object where it has none, and what to do.
    fn chosen(&self, kind: Kind, asked: Option<&str>) -> Result<String, String> {
        let (what, section) = (kind.name(), kind.section());
        let names: Vec<&str> = self.of_kind(kind).collect();
        match (asked, names.as_slice()) {
            (Some(asked), names) if names.contains(&asked) => Ok(asked.to_owned()),
            (None, &[only]) => Ok(only.to_owned()),
            (_, []) if self.programs.is_empty() => Err(format!(
                "it has no program; a program for {what} is a function in SEC({section:?})"
            )),
            (_, []) => {
                let others: Vec<&str> = self.programs.keys().map(String::as_str).collect();
                Err(format!(
                    "it has no {what} program, only {}; a {what} program is a function in SEC({section:?})",
                    others.join(", ")
                ))
            }
            (Some(asked), names) => Err(format!(
                "it has no {what} program {asked:?}; it has: {}",
                names.join(", ")
            )),
            (None, several) => Err(format!(
                "it has several {what} programs ({}); name one with `program` in the lab file",
                several.join(", ")
            )),
        }
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &str> {
        let programs = self.programs.iter();
        let of_kind = programs.filter(move |(_, section)| kind.is_of(section));
        of_kind.map(|(name, _)| name.as_str())
    }

    fn map(&self, name: &str) -> Result<&Map, String> {
        self.maps.get(name).ok_or_else(|| self.no_map(name))
    }

    fn map_mut(&mut self, name: &str) -> Result<&mut Map, String> {
        let missing = self.no_map(name);
        self.maps.get_mut(name).ok_or(missing)
    }

    fn no_map(&self, name: &str) -> String {
        // Those of its variables have names that no C has.
        let names = self.maps.keys().filter(|name| !name.contains('.'));
        let names: Vec<&str> = names.map(String::as_str).collect();
        match names.as_slice() {
            [] => format!("it has no map {name:?}, nor any other"),
            names => format!("it has no map {name:?}; it has: {}", names.join(", ")),
        }
    }

    /// The sizes of a map that can be filled from a file.
    fn fillable(&self, name: &str) -> Result<Sizes, String> {
        let map = self.map(name)?;
        if !contents::is_fillable(map.map_type()) {
            return Err(format!(
                "map {name} is of a kind that is not filled from a file; those that are: {}; others a `command` fills",
                contents::FILLABLE
            ));
        }
        Ok(Sizes {
            key: map.key_size() as usize,
            value: map.value_size() as usize,
            entries: map.max_entries() as usize,
        })
    }

    /// Whether an array has room for these programs.
    fn tail_calls(&self, kind: Kind, array: &str, functions: &[String]) -> Result<(), String> {
        let map = self.map(array)?;
        if map.map_type() != contents::PROGRAM_ARRAY {
            return Err(format!(
                "map {array} is no program array (BPF_MAP_TYPE_PROG_ARRAY)"
            ));
        }
        let room = map.max_entries() as usize;
        if functions.len() > room {
            return Err(format!(
                "program array {array} has room for {room} programs, not for {}",
                functions.len()
            ));
        }
        for function in functions {
            self.chosen(kind, Some(function))?;
        }
        Ok(())
    }

    /// The bytes of a global variable that is to have a value.
    fn global(&self, object: &[u8], name: &str, value: &GlobalValue) -> Result<Vec<u8>, String> {
        let wrong = || format!("it has no global variable {name:?}");
        let file = ElfFile64::<LittleEndian>::parse(object).map_err(|error| error.to_string())?;
        let symbol = file.symbol_by_name(name).ok_or_else(wrong)?;
        let size = usize::try_from(symbol.size()).unwrap_or(usize::MAX);
        if symbol.kind() != object::SymbolKind::Data || self.maps.contains_key(name) || size == 0 {
            return Err(wrong());
        }
        let refused = |why: String| format!("global variable {name}: {why}");
        match value {
            GlobalValue::Boolean(is_set) if size == 1 => Ok(vec![u8::from(*is_set)]),
            GlobalValue::Boolean(_) => Err(refused(format!(
                "it has {size} bytes, and a truth value has 1"
            ))),
            GlobalValue::Integer(number) => integer(*number, size).map_err(refused),
            GlobalValue::Array(numbers)
                if !numbers.is_empty() && size.is_multiple_of(numbers.len()) =>
            {
                let each = size / numbers.len();
                let numbers = numbers.iter().map(|number| integer(*number, each));
                let bytes: Result<Vec<_>, _> = numbers.collect();
                bytes.map(|bytes| bytes.concat()).map_err(refused)
            }
            GlobalValue::Array(numbers) => Err(refused(format!(
                "it has {size} bytes, which are no {} numbers of one size",
                numbers.len()
            ))),
        }
    }
}

/// A number as it lies in memory, signed or not.
fn integer(number: i64, size: usize) -> Result<Vec<u8>, String> {
    if ![1, 2, 4, 8].contains(&size) {
        return Err(format!(
            "an integer has 1, 2, 4 or 8 bytes, and this has {size}"
        ));
    }
    let bits = size * 8;
    let fits = bits == 64 || (number < 1 << bits && number >= -(1 << (bits - 1)));
    if !fits {
        return Err(format!("{number} does not fit into its {size} bytes"));
    }
    Ok(number.to_le_bytes()[..size].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTER: &[u8] = include_bytes!("../../../../testkit/bpf/xdp_router.bpf.o");

    fn router() -> Shape {
        Shape::of(ROUTER).unwrap()
    }

    #[test]
    fn a_program_is_chosen_by_its_name_and_kind() {
        let chosen = |kind, asked| router().chosen(kind, asked);
        assert_eq!(chosen(Kind::Xdp, Some("plain")).unwrap(), "plain");
        // In a section with frags.
        assert_eq!(chosen(Kind::Xdp, Some("by_port")).unwrap(), "by_port");
        for (kind, asked, expected) in [
            (
                Kind::Xdp,
                None,
                "it has several XDP programs (by_port, first_stage, ",
            ),
            (
                Kind::Xdp,
                Some("none"),
                "it has no XDP program \"none\"; it has: by_port, ",
            ),
            (
                Kind::Tc,
                None,
                "it has no tc program, only by_port, first_stage, ",
            ),
        ] {
            let error = chosen(kind, asked).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn variables_get_values_of_their_size() {
        let global = |name: &str, value| router().global(ROUTER, name, &value);
        assert_eq!(
            global("lookups", GlobalValue::Integer(258)).unwrap(),
            [2, 1, 0, 0]
        );
        let expected = global("expected", GlobalValue::Array(vec![1, -1])).unwrap();
        assert_eq!(expected, [[1, 0, 0, 0, 0, 0, 0, 0], [255; 8]].concat());
        for (name, value, expected) in [
            (
                "lookups",
                GlobalValue::Boolean(true),
                "it has 4 bytes, and a truth value has 1",
            ),
            (
                "lookups",
                GlobalValue::Integer(1 << 32),
                "4294967296 does not fit into its 4 bytes",
            ),
            (
                "lookups",
                GlobalValue::Array(vec![1, 2, 3]),
                "it has 4 bytes, which are no 3 numbers of one size",
            ),
            (
                "lookups",
                GlobalValue::Array(vec![]),
                "which are no 0 numbers",
            ),
            (
                "lookup",
                GlobalValue::Integer(1),
                "it has no global variable \"lookup\"",
            ),
            (
                "table",
                GlobalValue::Integer(1),
                "it has no global variable \"table\"",
            ),
            (
                "plain",
                GlobalValue::Integer(1),
                "it has no global variable \"plain\"",
            ),
        ] {
            let error = global(name, value).unwrap_err();
            assert!(error.contains(expected), "{name}: {error}");
        }
    }

    #[test]
    fn maps_are_filled_that_take_entries() {
        let sizes = router().fillable("table").unwrap();
        assert_eq!((sizes.key, sizes.value, sizes.entries), (4, 8, 10_000));
        let missing = router().fillable("tables").unwrap_err();
        assert_eq!(
            missing,
            "it has no map \"tables\"; it has: frames, ports, stages, table"
        );
        assert!(
            router()
                .fillable("stages")
                .unwrap_err()
                .contains("is of a kind")
        );
        let functions = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let calls =
            |array, names: &[&str]| router().tail_calls(Kind::Xdp, array, &functions(names));
        calls("stages", &["plain", "plain"]).unwrap();
        for (array, names, expected) in [
            ("table", &["plain"][..], "map table is no program array"),
            (
                "stages",
                &["plain"; 5],
                "has room for 4 programs, not for 5",
            ),
            ("stages", &["none"], "it has no XDP program \"none\""),
        ] {
            let error = calls(array, names).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_name_of_a_pinned_map_is_no_path() {
        let mut object = include_bytes!("../../../../testkit/bpf/xdp_pinned.bpf.o").to_vec();
        assert_eq!(Shape::of(&object).unwrap().pinned.len(), 1);
        let (name, path) = (b"fwdlab_test_frames", b"../../../tmp/frame");
        while let Some(at) = object.windows(name.len()).position(|it| it == name) {
            object[at..][..name.len()].copy_from_slice(path);
        }
        let error = Shape::of(&object).err().unwrap();
        assert!(
            error.contains("\"../../../tmp/frame\" has no name of C"),
            "{error}"
        );
    }
}
