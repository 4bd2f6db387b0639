//! The initramfs of a kernel of the matrix: fwdlab, `nft`, `ip`, their libraries, busybox, the modules of
//! networking, and what is played.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::packages::Kernel;
use crate::command::{command, output};

/// Below `kernel/` of the modules: what networking on virtual interfaces asks for.
const MODULES: [&str; 10] = [
    "drivers/net/veth.ko",
    "net/netfilter",
    "net/ipv4",
    "net/ipv6",
    "net/sched",
    "net/core",
    "net/llc",
    "net/802",
    "lib",
    "crypto",
];

/// Packs the initramfs of a kernel.
pub(super) fn build(kernel: &Kernel, program: &Path, folder: &Path) -> Result<PathBuf> {
    let root = folder.join("root");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    for place in [
        "bin",
        "sbin",
        "proc",
        "sys",
        "dev",
        "run",
        "tmp",
        "root",
        "etc",
        "lab/kernels",
    ] {
        fs::create_dir_all(root.join(place))?;
    }
    fs::write(
        root.join("etc/passwd"),
        "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n",
    )?;
    fs::write(root.join("etc/group"), "root:x:0:\nnogroup:x:65534:\n")?;
    install(&root, &installed("busybox")?, "bin/busybox")?;
    for name in ["nft", "ip"] {
        install(&root, &installed(name)?, &format!("sbin/{name}"))?;
    }
    install(&root, program, "lab/fwdlab")?;
    output(command("strip", ["--strip-debug"]).arg(root.join("lab/fwdlab")))?;

    let copy = |from: &str, to: &str| output(command("cp", ["-r", from]).arg(root.join(to)));
    copy("experiments", "lab")?;
    copy("labs", "lab")?;
    copy("labs/rulesets", "lab")?;
    let guest = "xtask/src/kernels/guest";
    for name in ["switches.toml", "programs.toml", "switches.lab.toml"] {
        copy(&format!("{guest}/{name}"), "lab/kernels")?;
    }
    copy(&format!("{guest}/play"), "lab")?;
    copy(&format!("{guest}/init"), "")?;
    output(command("chmod", ["+x"]).arg(root.join("init")))?;
    copy_modules(kernel, &root)?;

    let image = folder.join(format!("{}.initramfs", kernel.release));
    let pack = "find . | cpio --create --format=newc --quiet | zstd --quiet -3 --threads=0 --force -o \"$0\"";
    output(command("sh", ["-c", pack]).arg(&image).current_dir(&root))?;
    fs::remove_dir_all(&root)?;
    Ok(image)
}

fn installed(name: &str) -> Result<PathBuf> {
    let places =
        ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(|folder| Path::new(folder).join(name));
    places
        .into_iter()
        .find(|place| place.is_file())
        .with_context(|| format!("kernels: {name} is not installed; run `cargo xtask setup`"))
}

/// Copies a program, and the libraries that it is linked with to where it looks for them.
fn install(root: &Path, program: &Path, place: &str) -> Result<()> {
    fs::copy(program, root.join(place))
        .with_context(|| format!("copying {}", program.display()))?;
    // A static program has none, which ldd calls an error.
    let libraries = output(command("ldd", []).arg(program)).unwrap_or_default();
    for library in libraries
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
    {
        let target = root.join(library.trim_start_matches('/'));
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::copy(library, &target).with_context(|| format!("copying {library}"))?;
    }
    Ok(())
}

fn copy_modules(kernel: &Kernel, root: &Path) -> Result<()> {
    let target = root.join("lib/modules").join(&kernel.release);
    fs::create_dir_all(&target)?;
    for place in MODULES {
        let name = Path::new("kernel").join(place);
        let source = kernel.modules.join(&name);
        // Some distributions compress them, and not every kernel has every folder.
        let compressed = source.with_extension("ko.xz");
        let source = if source.exists() { source } else { compressed };
        if !source.exists() {
            continue;
        }
        let folder = target.join(name.parent().unwrap_or(Path::new("")));
        fs::create_dir_all(&folder)?;
        output(command("cp", ["-r"]).arg(&source).arg(&folder))?;
    }
    for name in [
        "modules.builtin",
        "modules.order",
        "modules.builtin.modinfo",
    ] {
        if kernel.modules.join(name).is_file() {
            fs::copy(kernel.modules.join(name), target.join(name))?;
        }
    }
    let unpack = "find . -name '*.ko.xz' -exec xz --decompress {} +";
    output(command("sh", ["-c", unpack]).current_dir(&target))?;
    output(command("depmod", ["-b"]).arg(root).arg(&kernel.release))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::command::repository;

    #[test]
    fn everything_that_is_played_is_there() {
        let play = fs::read_to_string(repository().join("xtask/src/kernels/guest/play")).unwrap();
        for name in super::super::PLAYS.split(',') {
            assert!(play.contains(&format!("\n{name}() {{")), "{name}");
        }
    }
}
