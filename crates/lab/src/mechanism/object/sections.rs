//! Names of an object's sections, as libbpf has them and the loader does not.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

/// Of a section's flags: its bytes are instructions.
const SHF_EXECINSTR: usize = 4;

/// The only kind of tc programs' sections that the loader knows.
const SECTION: &[u8] = b"classifier";

/// The kinds of sections that libbpf takes for tc programs, each with more behind a slash or without.
const SECTIONS: [&[u8]; 3] = [b"tc", b"tcx", SECTION];

/// An object whose sections of tc programs have names that the loader knows, `tc/ingress` that of `classifier/tc/ingress`; what
/// is no little-endian 64-bit ELF stays as it is, for the loader to refuse.
///
/// # Errors
/// Where its type information is damaged, which finds sections by their names.
///
/// # Source
/// libbpf's `section_defs` in `src/libbpf.c`: `tc`, `tc/ingress`, `tcx/ingress` and the like, and `classifier`.
pub(super) fn with_known_sections(object: &[u8]) -> Result<Cow<'_, [u8]>, io::Error> {
    let Some(elf) = Elf::of(object) else {
        return Ok(Cow::Borrowed(object));
    };
    let sections = elf.to_rename();
    if sections.is_empty() {
        return Ok(Cow::Borrowed(object));
    }
    let damaged = || io::Error::other("its BTF is damaged; compile it again with -g");
    elf.renamed(&sections).map(Cow::Owned).ok_or_else(damaged)
}

/// The section headers of an object.
///
/// # Source
/// System V ABI, chapter 4: `Elf64_Ehdr` and `Elf64_Shdr`.
struct Elf<'o> {
    object: &'o [u8],
    /// Where each header is.
    headers: Vec<usize>,
    /// The header of the section that has the names of all.
    of_names: usize,
}

/// Where the fields of a section header are.
const NAME: usize = 0;
const FLAGS: usize = 8;
const OFFSET: usize = 24;
const SIZE: usize = 32;

impl<'o> Elf<'o> {
    fn of(object: &'o [u8]) -> Option<Self> {
        if !object.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let first = long(object, 0x28)?;
        let (size, sections, of_names) = (
            half(object, 0x3a)?,
            half(object, 0x3c)?,
            half(object, 0x3e)?,
        );
        // What is behind the end of the object is nothing, wherever a header says that it is.
        let header = |section: usize| {
            let at = first.checked_add(section.checked_mul(size)?)?;
            (at < object.len()).then_some(at)
        };
        Some(Self {
            object,
            headers: (0..sections).map(header).collect::<Option<_>>()?,
            of_names: header(of_names)?,
        })
    }

    /// The bytes of a section, by where its header is.
    fn bytes(&self, header: usize) -> Option<&'o [u8]> {
        let start = long(self.object, header + OFFSET)?;
        let length = long(self.object, header + SIZE)?;
        self.object.get(start..start.checked_add(length)?)
    }

    fn name(&self, header: usize) -> Option<&'o [u8]> {
        let at = usize::try_from(word(self.object, header + NAME)?).ok()?;
        string(self.bytes(self.of_names)?, at)
    }

    /// The header of a section that is not of programs.
    fn named(&self, name: &[u8]) -> Option<usize> {
        let mut headers = self.headers.iter().copied();
        headers.find(|&header| self.name(header) == Some(name))
    }

    /// The sections of tc programs that the loader does not know, each by its header and its name.
    fn to_rename(&self) -> Vec<(usize, &'o [u8])> {
        let names = self.headers.iter().filter_map(|&header| {
            let name = self.name(header)?;
            let kind = name.split(|&byte| byte == b'/').next()?;
            let is_program = long(self.object, header + FLAGS)? & SHF_EXECINSTR != 0;
            let is_known = kind == SECTION || !SECTIONS.contains(&kind);
            (is_program && !is_known).then_some((header, name))
        });
        names.collect()
    }

    /// The object with new names: the sections of names and of types go to its end, longer by these. None where what refers to
    /// names is not what it should be.
    fn renamed(&self, sections: &[(usize, &[u8])]) -> Option<Vec<u8>> {
        let mut object = self.object.to_vec();
        let mut names = self.bytes(self.of_names)?.to_vec();
        for (header, name) in sections {
            put(&mut object, header + NAME, names.len())?;
            names.extend(new_name(name));
        }
        append(&mut object, self.of_names, &names)?;
        let Some(of_types) = self.named(b".BTF") else {
            return Some(object);
        };
        let mut types = self.bytes(of_types)?.to_vec();
        let places = add_names(&mut types, sections)?;
        append(&mut object, of_types, &types)?;
        if let Some(of_functions) = self.named(b".BTF.ext") {
            let mut functions = self.bytes(of_functions)?.to_vec();
            refer_to(&mut functions, self.bytes(of_types)?, &places)?;
            append(&mut object, of_functions, &functions)?;
        }
        Some(object)
    }
}

/// A name that the loader knows, with the byte that ends it.
fn new_name(name: &[u8]) -> Vec<u8> {
    [SECTION, b"/", name, b"\0"].concat()
}

/// Adds the new names to type information, and says where each is, by the old one.
///
/// # Source
/// Linux: `struct btf_header` in `include/uapi/linux/btf.h`.
fn add_names<'n>(types: &mut Vec<u8>, sections: &[(usize, &'n [u8])]) -> Option<Places<'n>> {
    const STRINGS_LENGTH: usize = 20;
    let (start, length) = strings(types)?;
    // Only at the end is there room for more.
    if start + length != types.len() {
        return None;
    }
    let mut places = BTreeMap::new();
    for (_, name) in sections {
        places.insert(*name, types.len() - start);
        types.extend(new_name(name));
    }
    let length = types.len() - start;
    put(types, STRINGS_LENGTH, length)?;
    Some(places)
}

/// Where the new names are among the strings of type information, by the old ones.
type Places<'n> = BTreeMap<&'n [u8], usize>;

/// Where the strings of type information are, and how many bytes they have.
fn strings(types: &[u8]) -> Option<(usize, usize)> {
    let field = |at: usize| usize::try_from(word(types, at)?).ok();
    let (header, offset, length) = (field(4)?, field(16)?, field(20)?);
    Some((header.checked_add(offset)?, length))
}

/// Has what is known of functions, lines and relocations be of sections by their new names.
///
/// # Source
/// Linux: `Documentation/bpf/btf.rst`, `.BTF.ext section`.
fn refer_to(functions: &mut [u8], types: &[u8], places: &Places<'_>) -> Option<()> {
    /// Of the header: offset and length of what is known of functions, lines and, in longer headers, relocations.
    const PARTS: [usize; 3] = [8, 16, 24];
    let (strings, _) = strings(types)?;
    let header = usize::try_from(word(functions, 4)?).ok()?;
    for part in PARTS.into_iter().filter(|part| part + 8 <= header) {
        let field = |at: usize| usize::try_from(word(functions, at)?).ok();
        let (offset, length) = (field(part)?, field(part + 4)?);
        if length == 0 {
            continue;
        }
        let start = header.checked_add(offset)?;
        let end = start.checked_add(length)?;
        let record = field(start)?;
        let mut at = start.checked_add(4)?;
        while at < end {
            let field = |at: usize| usize::try_from(word(functions, at)?).ok();
            let (name, records) = (field(at)?, field(at + 4)?);
            let name = string(types, strings.checked_add(name)?)?;
            if let Some(place) = places.get(name) {
                put(functions, at, *place)?;
            }
            at = at
                .checked_add(8)?
                .checked_add(records.checked_mul(record)?)?;
        }
    }
    Some(())
}

/// Puts a section to the end of an object.
fn append(object: &mut Vec<u8>, header: usize, bytes: &[u8]) -> Option<()> {
    let fields = [object.len(), bytes.len()].map(|field| (field as u64).to_le_bytes());
    let place = object.get_mut(header + OFFSET..header + SIZE + 8)?;
    place.copy_from_slice(&fields.concat());
    object.extend(bytes);
    Some(())
}

fn put(bytes: &mut [u8], at: usize, number: usize) -> Option<()> {
    let number = u32::try_from(number).ok()?.to_le_bytes();
    bytes.get_mut(at..)?.get_mut(..4)?.copy_from_slice(&number);
    Some(())
}

fn string(strings: &[u8], at: usize) -> Option<&[u8]> {
    strings.get(at..)?.split(|&byte| byte == 0).next()
}

fn half(bytes: &[u8], at: usize) -> Option<usize> {
    let half = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*half).into())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<usize> {
    let long = u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
    usize::try_from(long).ok()
}

#[cfg(test)]
mod tests {
    use object::LittleEndian;
    use object::read::elf::ElfFile64;
    use object::{Object as _, ObjectSection as _};
    use proptest::prelude::*;

    use super::super::{Kind, Shape};
    use super::*;

    /// An object whose programs are in sections that libbpf names so.
    fn object() -> Vec<u8> {
        include_bytes!("../../../../testkit/bpf/tc_shed.bpf.o").to_vec()
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
        let programs = ["tc", "tc/ingress"];
        let is_program = |name: &&String| programs.contains(&name.as_str());
        assert_eq!(before.iter().filter(is_program).count(), 2, "{before:?}");
        let expected = before
            .iter()
            .map(|name| match programs.contains(&name.as_str()) {
                true => format!("classifier/{name}"),
                false => name.clone(),
            });
        assert!(expected.eq(sections(&named)));
    }

    #[test]
    fn what_is_known_of_functions_stays_with_their_section() {
        // Of tc_shed: two programs, and a function that both may call.
        let object = object();
        let named = with_known_sections(&object).unwrap();
        let elf = Elf::of(&named).unwrap();
        let types = elf.bytes(elf.named(b".BTF").unwrap()).unwrap();
        let functions = elf.bytes(elf.named(b".BTF.ext").unwrap()).unwrap();
        let (strings, _) = strings(types).unwrap();
        let [header, offset] = [4, 8].map(|at| word(functions, at).unwrap() as usize);
        // Behind the size of a record come the sections: each its name, how many records it has, and these.
        let mut at = header + offset + 4;
        let mut names = Vec::new();
        for _ in 0..3 {
            let name = word(functions, at).unwrap() as usize;
            let name = string(types, strings + name).unwrap();
            names.push(String::from_utf8_lossy(name).into_owned());
            at += 8 + word(functions, at + 4).unwrap() as usize * 8;
        }
        names.sort_unstable();
        assert_eq!(names, [".text", "classifier/tc", "classifier/tc/ingress"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_object_or_refused(bytes: Vec<u8>, at in 0_usize..3000, byte: u8) {
            let chosen = |bytes: &[u8]| Shape::of(bytes).and_then(|shape| shape.chosen(Kind::Tc, None));
            let _ = chosen(&bytes);
            let mut object = object();
            let length = object.len();
            object[at % length] = byte;
            let _ = chosen(&object);
            let _ = chosen(&object[..at % length]);
        }

    }
}
