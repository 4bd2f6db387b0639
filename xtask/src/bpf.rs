//! Builds the eBPF objects that are committed beside their sources, and tells whether they are up
//! to date.
//!
//! Users need no clang, because the objects are committed. Whoever changes a source builds them
//! again; the check keeps anyone from forgetting it. Compared is what the kernel would run:
//! instructions, relocations, maps and data. Debug information may differ, as it does from one
//! release of clang to the next.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use aya_obj::ParseError;

use crate::command::{self, command, is_installed, repository};

const SOURCE: &str = ".bpf.c";
const OBJECT: &str = ".bpf.o";

/// Builds every object in its place.
///
/// # Errors
/// A tool is missing, or a source does not compile.
pub(crate) fn build() -> Result<()> {
    require_tools()?;
    for source in sources()? {
        let object = object_of(&source);
        compile(&source, &object)?;
        println!("built {}", shown(&object));
    }
    Ok(())
}

/// Builds every object aside and compares it with the committed one.
///
/// # Errors
/// One differs, is missing, or has no source; a tool is missing, or a source does not compile.
pub(crate) fn check() -> Result<()> {
    require_tools()?;
    let aside = tempfile::tempdir()?;
    let mut wrong = Vec::new();
    for source in sources()? {
        let committed = object_of(&source);
        if !committed.is_file() {
            wrong.push(format!("{}: is missing", shown(&committed)));
            continue;
        }
        let rebuilt = aside.path().join(file_name(&committed));
        compile(&source, &rebuilt)?;
        let (old, new) = (listing(&committed)?, listing(&rebuilt)?);
        if old == new {
            println!("{}: up to date", shown(&committed));
        } else {
            print_difference(&old, &new, &file_name(&committed))?;
            wrong.push(format!(
                "{}: is not what its source says",
                shown(&committed)
            ));
        }
    }
    for object in files_ending_with(OBJECT)? {
        if !object
            .with_file_name(file_name(&object).replace(OBJECT, SOURCE))
            .is_file()
        {
            wrong.push(format!("{}: has no source", shown(&object)));
        }
    }
    if !wrong.is_empty() {
        bail!(
            "bpf: {}; run `cargo xtask bpf` and commit the objects",
            wrong.join("; ")
        );
    }
    Ok(())
}

fn require_tools() -> Result<()> {
    for tool in ["clang", "llvm-strip", "llvm-objdump"] {
        if !is_installed(tool) {
            bail!("bpf: {tool} is not installed; run `cargo xtask setup`");
        }
    }
    Ok(())
}

/// All eBPF sources: `crates/*/bpf/*.bpf.c`.
fn sources() -> Result<Vec<PathBuf>> {
    let sources = files_ending_with(SOURCE)?;
    if sources.is_empty() {
        bail!("bpf: no crates/*/bpf/*{SOURCE}");
    }
    Ok(sources)
}

fn files_ending_with(ending: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for each_crate in fs::read_dir(repository().join("crates"))? {
        let folder = each_crate?.path().join("bpf");
        if folder.is_dir() {
            for file in fs::read_dir(folder)? {
                found.push(file?.path());
            }
        }
    }
    found.retain(|path| file_name(path).ends_with(ending));
    found.sort();
    Ok(found)
}

fn object_of(source: &Path) -> PathBuf {
    source.with_file_name(file_name(source).replace(SOURCE, OBJECT))
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// A path as a developer would name it, from the root of the repository.
fn shown(path: &Path) -> String {
    path.strip_prefix(repository())
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Compiles a source to an object that has its BTF, but no DWARF and no trace of where it was built.
fn compile(source: &Path, object: &Path) -> Result<()> {
    // Debian keeps `asm/` under the architecture's name, where clang looks only when it builds for
    // that architecture.
    let asm = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let mut clang = Command::new("clang");
    clang
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g"])
        .arg("-fdebug-compilation-dir=.")
        .args(["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"])
        .args([&asm, "-c", "-o"])
        .arg(object)
        .arg(file_name(source))
        .current_dir(source.parent().context("a source lies in a folder")?);
    command::output(&mut clang)?;
    command::output(Command::new("llvm-strip").arg("--strip-debug").arg(object))?;
    Ok(())
}

/// What the kernel would get out of an object, as text that can be compared line by line.
fn listing(object: &Path) -> Result<String> {
    let mut listing = match aya_obj::Object::parse(&fs::read(object)?) {
        Ok(parsed) => license_and_maps(&parsed)?,
        // libbpf's names of sections that aya does not know; the lab renames them before it loads the object.
        Err(ParseError::InvalidProgramSection { .. }) => {
            let mut license = Command::new("llvm-objdump");
            license
                .args(["--full-contents", "--section=license"])
                .arg(object);
            without_local_labels(&command::output(&mut license)?)
        }
        Err(error) => {
            return Err(error).with_context(|| format!("{}: cannot be read", shown(object)));
        }
    };

    let mut objdump = Command::new("llvm-objdump");
    objdump
        .args(["--disassemble", "--reloc", "--no-show-raw-insn"])
        .arg(object);
    listing.push_str(&without_local_labels(&command::output(&mut objdump)?));
    Ok(listing)
}

fn license_and_maps(parsed: &aya_obj::Object) -> Result<String> {
    let mut listing = format!("license {}\n", parsed.license.to_string_lossy());
    let mut maps: Vec<_> = parsed.maps.iter().collect();
    maps.sort_by_key(|(name, _)| *name);
    for (name, map) in maps {
        writeln!(
            listing,
            "map {name}: type {} key {} B value {} B entries {} flags {:#x}",
            map.map_type(),
            map.key_size(),
            map.value_size(),
            map.max_entries(),
            map.map_flags(),
        )?;
        // Only maps that stand for a data section have a content from the start.
        for row in map.data().chunks(16).filter(|_| name.starts_with('.')) {
            writeln!(listing, "  {row:02x?}")?;
        }
    }
    Ok(listing)
}

/// A disassembly without the file's name and without the labels that a compiler numbers as it likes.
fn without_local_labels(disassembly: &str) -> String {
    const LABEL: &str = " <LBB";
    disassembly
        .lines()
        .filter(|line| !line.is_empty() && !line.contains("file format"))
        .filter(|line| !(line.contains(LABEL) && line.ends_with(">:")))
        .map(|line| line.split(LABEL).next().unwrap_or(line))
        .fold(String::new(), |all, line| all + line + "\n")
}

fn print_difference(committed: &str, rebuilt: &str, name: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (side, listing) in [("committed", committed), ("rebuilt", rebuilt)] {
        fs::create_dir(folder.path().join(side))?;
        fs::write(folder.path().join(side).join(name), listing)?;
    }
    // It fails where there is a difference, and here there is one.
    command("git", ["--no-pager", "diff", "--no-index", "--no-prefix"])
        .arg(format!("committed/{name}"))
        .arg(format!("rebuilt/{name}"))
        .current_dir(folder.path())
        .status()
        .context("git: cannot be started")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTER: &str = r#"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, __u64);
} first SEC(".maps"), second SEC(".maps");
SEC("xdp") int count(struct xdp_md *context)
{
    __u32 key = context->rx_queue_index;
    __u64 *counter = bpf_map_lookup_elem(&first, &key);
    if (counter)
        *counter += 1;
    return XDP_DROP;
}
char _license[] SEC("license") = "Dual BSD/GPL";
"#;

    fn listing_of(source: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counter.bpf.c");
        fs::write(&path, source).unwrap();
        compile(&path, &object_of(&path)).unwrap();
        listing(&object_of(&path)).unwrap()
    }

    #[test]
    fn only_what_the_kernel_would_run_makes_a_difference() {
        testkit::require_tool!("clang", "llvm-strip", "llvm-objdump");
        let counter = listing_of(COUNTER);
        assert!(counter.contains("map first: type 2 key 4 B value 8 B entries 4 flags 0x0\n"));
        assert!(counter.contains("R_BPF_64_64\tfirst\n"), "{counter}");

        for (same, other) in [("counter", "slot"), ("\n    if", "\n\n    /* counts */ if")] {
            assert_eq!(
                counter,
                listing_of(&COUNTER.replace(same, other)),
                "{other}"
            );
        }
        for (was, changed) in [
            ("+= 1", "+= 2"),
            ("(&first", "(&second"),
            ("entries, 4", "entries, 8"),
            ("XDP_DROP", "XDP_PASS"),
            ("\"xdp\"", "\"xdp.frags\""),
            ("Dual BSD/GPL", "GPL"),
        ] {
            assert_ne!(
                counter,
                listing_of(&COUNTER.replace(was, changed)),
                "{changed}"
            );
        }
    }

    #[test]
    fn an_object_does_not_say_where_it_was_built() {
        testkit::require_tool!("clang", "llvm-strip");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counter.bpf.c");
        fs::write(&path, COUNTER).unwrap();
        compile(&path, &object_of(&path)).unwrap();
        let object = fs::read(object_of(&path)).unwrap();
        let place = folder.path().to_str().unwrap().as_bytes();
        assert!(!object.windows(place.len()).any(|bytes| bytes == place));
    }

    #[test]
    fn labels_of_the_compiler_are_left_out() {
        let disassembly = "\
\nsink.bpf.o:\tfile format elf64-bpf\n\nDisassembly of section xdp:\n
0000000000000000 <count>:
      19:\tif r0 == 0 goto +1 <LBB0_32>
      20:\tcall -1 <other>
\n0000000000000160 <LBB0_32>:
      21:\texit
";
        assert_eq!(
            without_local_labels(disassembly),
            "Disassembly of section xdp:\n\
             0000000000000000 <count>:\n      \
             19:\tif r0 == 0 goto +1\n      \
             20:\tcall -1 <other>\n      \
             21:\texit\n"
        );
    }
}
