//! Installs what the tests and the checks need, and nothing that is there already.

use std::path::Path;

use anyhow::{Result, bail};

use crate::command::{self, cargo, command, is_installed};
use crate::page;

/// What shows that a package is there.
enum Sign {
    Program(&'static str),
    Header(&'static str),
}

use Sign::{Header, Program};

/// What is needed, the Debian package that has it, and what for.
const PACKAGES: &[(Sign, &str, &str)] = &[
    (Program("clang"), "clang", "builds the eBPF objects"),
    (
        Program("c++"),
        "g++",
        "builds libFuzzer for the fuzz targets",
    ),
    (
        Program("llvm-objdump"),
        "llvm",
        "compares their instructions",
    ),
    (
        Program("llvm-strip"),
        "llvm",
        "takes the debug information off them",
    ),
    (
        Header("bpf/bpf_helpers.h"),
        "libbpf-dev",
        "what their sources include",
    ),
    (
        Header("linux/bpf.h"),
        "linux-libc-dev",
        "what their sources include",
    ),
    (Program("nft"), "nftables", "a DUT's packet filter"),
    (
        Program("ip"),
        "iproute2",
        "tests look at namespaces with it",
    ),
    (
        Program("ethtool"),
        "ethtool",
        "lets the cables of tests take XDP frames",
    ),
    (
        Program("sshd"),
        "openssh-server",
        "what tests reach other hosts by",
    ),
    (
        Program("ssh"),
        "openssh-client",
        "what tests reach other hosts with",
    ),
    (
        Program("faketime"),
        "faketime",
        "lets the clock of a run jump",
    ),
    (
        Program("curl"),
        "curl",
        "posts to a webhook that a run has ended",
    ),
    (Program("awk"), "mawk", "scripts for FreeBSD hosts use it"),
    (Program("tcpdump"), "tcpdump", "captures what tests look at"),
    (Program("tshark"), "tshark", "judges captured frames"),
    (
        Program("trafgen"),
        "netsniff-ng",
        "the generator ours is compared with",
    ),
    (
        Program("dpdk-testpmd"),
        "dpdk-dev",
        "the forwarder the router is compared with",
    ),
    (Program("perf"), "linux-perf", "records what the tests fold"),
    (Program("go"), "golang-go", "its pprof reads what we write"),
    (
        Program("ministat"),
        "ministat",
        "the ministat ours is compared with",
    ),
    (
        Program("rsvg-convert"),
        "librsvg2-bin",
        "draws the reports' plots",
    ),
    (
        Program("node"),
        "nodejs",
        "builds and tests the script of report.html",
    ),
    (Program("npm"), "npm", "installs what that is built with"),
    (
        Program("qemu-system-x86_64"),
        "qemu-system-x86",
        "boots other kernels",
    ),
    (
        Program("busybox"),
        "busybox-static",
        "the programs in their initramfs, and of a DUT of applets",
    ),
    (Program("cpio"), "cpio", "packs it"),
    (Program("zstd"), "zstd", "compresses it"),
    (Program("xz"), "xz-utils", "unpacks their modules"),
    (Program("depmod"), "kmod", "indexes their modules"),
    (
        Program("chromium"),
        "chromium",
        "the browser that opens report.html",
    ),
];

/// The release of cargo-deny that is installed; releases before 0.20 read `deny.toml` differently.
const CARGO_DENY: (u32, u32, u32) = (0, 20, 2);

/// The release of inferno that profiles are folded beside, and the program of it.
const INFERNO: (&str, &str) = ("0.12.8", "inferno-collapse-perf");

pub(crate) fn run() -> Result<()> {
    install_packages()?;
    install_cargo_deny()?;
    install_inferno()?;
    mount_bpf_file_system()?;
    page::install()
}

/// Where tests pin maps; a system with an init mounts it at its boot.
fn mount_bpf_file_system() -> Result<()> {
    const PLACE: &str = "/sys/fs/bpf";
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    let is_mounted = mounts.contains(&format!(" {PLACE} bpf "));
    if is_mounted || !is_root() || !Path::new(PLACE).is_dir() {
        return Ok(());
    }
    command::run(&mut command("mount", ["-t", "bpf", "bpf", PLACE]))
}

fn install_packages() -> Result<()> {
    let missing = missing_packages(|sign| match sign {
        Program(program) => is_installed(program),
        Header(header) => Path::new("/usr/include").join(header).is_file(),
    });
    if missing.is_empty() {
        println!("packages: all there");
        return Ok(());
    }
    for (_, package, purpose) in PACKAGES
        .iter()
        .filter(|(_, name, _)| missing.contains(name))
    {
        println!("missing: {package}: {purpose}");
    }
    let install: Vec<&str> = ["install", "--yes", "--no-install-recommends"]
        .into_iter()
        .chain(missing.clone())
        .collect();
    if !is_installed("apt-get") {
        bail!(
            "setup: no apt-get on this machine; install what Debian calls {}",
            missing.join(" ")
        );
    }
    if !is_root() {
        bail!(
            "setup: installing packages needs root; run `sudo apt-get update && sudo apt-get {}`, \
             then `cargo xtask setup` again",
            install.join(" ")
        );
    }
    // Without it tshark asks whether everyone may capture, and waits for an answer.
    let apt_get = |arguments: &[&str]| {
        command::run(
            command("apt-get", ["-o", "Acquire::Retries=3", "--quiet"])
                .args(arguments)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )
    };
    apt_get(&["update"])?;
    apt_get(&install)
}

/// The packages of which a sign is missing, each once.
fn missing_packages(is_there: impl Fn(&Sign) -> bool) -> Vec<&'static str> {
    let mut missing: Vec<_> = PACKAGES
        .iter()
        .filter(|(sign, ..)| !is_there(sign))
        .map(|(_, package, _)| *package)
        .collect();
    missing.dedup();
    missing
}

fn is_root() -> bool {
    command::output(&mut command("id", ["-u"])).is_ok_and(|user| user.trim() == "0")
}

fn install_cargo_deny() -> Result<()> {
    let installed = command::output(&mut cargo(["deny", "--version"]));
    if let Some(version) = installed.ok().as_deref().and_then(parse_version)
        && version >= (CARGO_DENY.0, CARGO_DENY.1, 0)
    {
        println!("cargo-deny: there");
        return Ok(());
    }
    let (major, minor, patch) = CARGO_DENY;
    let version = format!("{major}.{minor}.{patch}");
    // Built to be fast it takes several times as long to build, and it runs for a second.
    command::run(
        cargo([
            "install",
            "--locked",
            "--force",
            "cargo-deny",
            "--version",
            &version,
        ])
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
    )
}

/// Built as it ships, because what it is compared with is.
fn install_inferno() -> Result<()> {
    let (version, program) = INFERNO;
    if is_installed(program) {
        println!("inferno: there");
        return Ok(());
    }
    command::run(&mut cargo([
        "install",
        "--locked",
        "inferno",
        "--version",
        version,
    ]))
}

/// The numbers in `cargo-deny 0.20.2`.
fn parse_version(printed: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = printed
        .split_whitespace()
        .nth(1)?
        .splitn(3, '.')
        .map(str::parse);
    Some((
        numbers.next()?.ok()?,
        numbers.next()?.ok()?,
        numbers.next()?.ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_missing_where_all_signs_are_there() {
        assert!(missing_packages(|_| true).is_empty());
    }

    #[test]
    fn a_package_with_two_signs_is_named_once() {
        let missing = missing_packages(|sign| {
            !matches!(
                sign,
                Program("llvm-objdump" | "llvm-strip") | Header("bpf/bpf_helpers.h")
            )
        });
        assert_eq!(missing, ["llvm", "libbpf-dev"]);
    }

    #[test]
    fn versions_are_read_as_cargo_deny_prints_them() {
        assert_eq!(parse_version("cargo-deny 0.20.2\n"), Some((0, 20, 2)));
        assert_eq!(parse_version("cargo-deny"), None);
        assert_eq!(parse_version("cargo-deny 0.21.0-rc1"), None);
    }
}
