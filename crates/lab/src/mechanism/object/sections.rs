//! Names of an object's sections, as libbpf has them and the loader does not.

use std::borrow::Cow;
use std::io;

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
pub(super) fn with_known_sections(object: &[u8]) -> Result<Cow<'_, [u8]>, io::Error> {
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

#[cfg(test)]
mod tests {
    use object::LittleEndian;
    use object::read::elf::ElfFile64;
    use object::{Object as _, ObjectSection as _};
    use proptest::prelude::*;

    use super::super::{Kind, Shape};
    use super::*;

    /// An object whose programs are in a section that libbpf names so.
    fn object() -> Vec<u8> {
        let mut object = include_bytes!("../../../../testkit/bpf/tc_shed.bpf.o").to_vec();
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
