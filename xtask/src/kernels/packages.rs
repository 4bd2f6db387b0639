//! Debian's packages of kernels, unpacked beside what is built.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command::{command, output};

/// Where Debian's newest kernels are.
const NEWEST_SUITES: [&str; 2] = ["trixie-backports", "sid"];

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A kernel and its modules.
pub(super) struct Kernel {
    /// As `uname -r` has it.
    pub(super) release: String,
    /// What is booted.
    pub(super) image: PathBuf,
    /// `/lib/modules/<release>` of it.
    pub(super) modules: PathBuf,
}

impl Kernel {
    /// Downloads and unpacks the newest kernel for virtual machines whose release begins so; `newest` is the
    /// newest of all that Debian has. One that is there already is taken.
    pub(super) fn fetch(release: &str, folder: &Path) -> Result<Self> {
        let apt = if release == "newest" {
            newest_sources(&folder.join("apt"))?
        } else {
            // Lists that are old name packages that the archive has no more. Without root, they have to do.
            let _ = output(&mut command("apt-get", ["update"]));
            Vec::new()
        };
        let ask = |program: &str, arguments: &[&str]| {
            output(command(program, []).args(&apt).args(arguments))
        };
        let packages = ask(
            "apt-cache",
            &[
                "search",
                "--names-only",
                "^linux-image-[0-9.]+.*-cloud-amd64$",
            ],
        )?;
        let prefix = match release {
            "newest" => "linux-image-".to_owned(),
            release => format!("linux-image-{release}."),
        };
        let names = packages
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        let package = names
            .filter(|name| name.starts_with(&prefix))
            .max_by_key(|name| numbers(name))
            .with_context(|| {
                format!(
                    "kernels: apt knows no package {prefix}…-cloud-amd64; run `apt-get update`, or boot another \
                     kernel (`cargo xtask kernels newest`)"
                )
            })?;
        let version = package.trim_start_matches("linux-image-");
        let unpacked = folder.join(version);
        if !unpacked.join("complete").is_file() {
            let depends = ask("apt-cache", &["depends", package])?;
            let parts = depends.split_whitespace().filter(|word| {
                ["linux-binary-", "linux-modules-"]
                    .iter()
                    .any(|part| word.strip_prefix(part) == Some(version))
            });
            fs::create_dir_all(&unpacked)?;
            for part in std::iter::once(package).chain(parts) {
                println!("fetching {part}");
                output(
                    command("apt-get", ["-o", "APT::Sandbox::User=root"])
                        .args(&apt)
                        .args(["download", part])
                        .current_dir(&unpacked),
                )?;
            }
            for file in fs::read_dir(&unpacked)? {
                let file = file?.path();
                if file.extension().is_some_and(|ending| ending == "deb") {
                    output(command("dpkg-deb", ["-x"]).arg(&file).arg(&unpacked))?;
                }
            }
            fs::write(unpacked.join("complete"), "")?;
        }
        let found = |places: [String; 2]| {
            let mut places = places.into_iter().map(|place| unpacked.join(place));
            places.find(|place| place.exists()).with_context(|| {
                format!("kernels: {package} has no kernel or no modules where they are expected")
            })
        };
        Ok(Self {
            release: version.to_owned(),
            image: found([
                format!("boot/vmlinuz-{version}"),
                format!("usr/lib/modules/{version}/vmlinuz"),
            ])?,
            modules: found([
                format!("lib/modules/{version}"),
                format!("usr/lib/modules/{version}"),
            ])?,
        })
    }
}

/// The options that have apt look where Debian's newest kernels are, without a change of this machine's
/// own sources.
fn newest_sources(folder: &Path) -> Result<Vec<String>> {
    // The archive that this machine has its packages from.
    let targets = output(&mut command(
        "apt-get",
        [
            "indextargets",
            "--format",
            "$(REPO_URI) $(CODENAME)",
            "Created-By: Packages",
        ],
    ))?;
    let archive = targets
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(archive, _)| archive)
        .find(|archive| archive.trim_end_matches('/').ends_with("/debian"));
    let Some(archive) = archive else {
        bail!(
            "kernels: this machine's apt has no Debian archive to take the newest kernel from; name 6.1 or 6.12"
        );
    };
    for part in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(folder.join(part))?;
    }
    let sources =
        NEWEST_SUITES.map(|suite| format!("deb [signed-by={KEYRING}] {archive} {suite} main\n"));
    fs::write(folder.join("sources.list"), sources.concat())?;
    let options: Vec<String> = [
        ("Dir::Etc::sourcelist", "sources.list"),
        ("Dir::Etc::sourceparts", "none"),
        ("Dir::State::lists", "lists"),
        ("Dir::Cache", "cache"),
    ]
    .into_iter()
    .flat_map(|(option, place)| {
        [
            "-o".to_owned(),
            format!("{option}={}", folder.join(place).display()),
        ]
    })
    .collect();
    output(command("apt-get", []).args(&options).arg("update"))?;
    Ok(options)
}

/// The numbers in a name, by which releases are ordered.
fn numbers(name: &str) -> Vec<u32> {
    name.split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_by_their_numbers() {
        assert!(
            numbers("linux-image-6.12.117+deb12-cloud-amd64")
                > numbers("linux-image-6.12.99+deb12-cloud-amd64")
        );
        assert!(
            numbers("linux-image-7.3.4+deb13-cloud-amd64")
                > numbers("linux-image-6.12.117+deb12-cloud-amd64")
        );
        assert!(
            numbers("linux-image-6.1.0-56-cloud-amd64")
                > numbers("linux-image-6.1.0-9-cloud-amd64")
        );
    }
}
