//! The matrix of kernels: Debian's, each booted in an emulated machine with fwdlab in its initramfs, where
//! it has to live through what crashed machines before.

mod boot;
mod image;
mod packages;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::command::{cargo, repository, run};
use boot::{Machine, Outcome};
use packages::Kernel;

/// Kernels by the first numbers of their releases, and the newest that Debian has anywhere.
const RELEASES: [&str; 3] = ["6.1", "6.12", "newest"];

/// What is played in a kernel: see `guest/play`.
const PLAYS: &str = "quickstart,switches,kills,ordinary";

/// What is played where there is little time.
const PLAYS_SHORT: &str = "quickstart,kills";

/// How long everything may take: an emulated machine is twenty times slower.
const TIME_MAX: Duration = Duration::from_secs(1800);

const USAGE: &str = "kernels: give any of 6.1, 6.12 and newest; --cpus N (1, 2 and 4 by turns), --boots N of each \
                     kernel (3), --short for one boot of 6.1 that plays less";

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Matrix {
    releases: Vec<String>,
    cpus: Vec<u32>,
    boots: u32,
    is_short: bool,
}

/// Boots kernels and has them live.
///
/// # Errors
/// The options are none, something is missing on this machine, or a kernel does not live.
pub(crate) fn kernels(options: &[&str]) -> Result<()> {
    let matrix = parse(options)?;
    let program = build()?;
    let folder = repository().join("target/kernels");
    fs::create_dir_all(&folder)?;
    let mut died = 0;
    let mut booted = 0;
    for release in &matrix.releases {
        let kernel = Kernel::fetch(release, &folder)?;
        let image = image::build(&kernel, &program, &folder)?;
        for boot in 0..matrix.boots {
            let cpus = matrix.cpus[boot as usize % matrix.cpus.len()];
            let machine = Machine {
                kernel: &kernel,
                image: &image,
                cpus,
                plays: if matrix.is_short { PLAYS_SHORT } else { PLAYS },
                log: folder.join(format!("{}-{cpus}-cpus-{boot}.log", kernel.release)),
            };
            println!(
                "Linux {}, {cpus} CPUs, boot {} of {}",
                kernel.release,
                boot + 1,
                matrix.boots
            );
            booted += 1;
            match machine.boot(TIME_MAX)? {
                Outcome::Lived => {}
                Outcome::Died { last } => {
                    died += 1;
                    println!("  did not live: {last}; see {}", machine.log.display());
                }
            }
        }
    }
    println!("{} of {booted} boots lived", booted - died);
    if died > 0 {
        bail!("kernels: {died} of {booted} boots did not live");
    }
    Ok(())
}

fn parse(options: &[&str]) -> Result<Matrix> {
    let mut matrix = Matrix {
        releases: Vec::new(),
        cpus: vec![2, 1, 4],
        boots: 3,
        is_short: false,
    };
    let mut options = options.iter();
    while let Some(&option) = options.next() {
        let mut number = || {
            options
                .next()
                .and_then(|text| text.parse().ok())
                .filter(|&number: &u32| number > 0)
        };
        match (option, option.starts_with("--")) {
            ("--short", _) => matrix.is_short = true,
            ("--cpus", _) => match number() {
                Some(cpus) => matrix.cpus = vec![cpus],
                None => bail!(USAGE),
            },
            ("--boots", _) => match number() {
                Some(boots) => matrix.boots = boots,
                None => bail!(USAGE),
            },
            (release, false) if RELEASES.contains(&release) => {
                matrix.releases.push(release.to_owned())
            }
            _ => bail!(USAGE),
        }
    }
    if matrix.is_short {
        matrix.boots = 1;
    }
    if matrix.releases.is_empty() {
        let all = if matrix.is_short {
            &RELEASES[..1]
        } else {
            &RELEASES[..]
        };
        matrix.releases = all.iter().map(|&release| release.to_owned()).collect();
    }
    Ok(matrix)
}

/// Builds fwdlab as it ships.
fn build() -> Result<PathBuf> {
    run(&mut cargo(["build", "--release", "--package", "fwdlab"]))?;
    Ok(repository().join("target/release/fwdlab"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kernels_are_booted_unless_some_are_named() {
        let matrix = parse(&[]).unwrap();
        assert_eq!(matrix.releases, RELEASES);
        let matrix = parse(&["6.12", "--cpus", "4", "--boots", "20"]).unwrap();
        assert_eq!(matrix.releases, ["6.12"]);
        assert_eq!((matrix.cpus, matrix.boots), (vec![4], 20));
        let matrix = parse(&["--short"]).unwrap();
        assert_eq!((matrix.releases.len(), matrix.boots), (1, 1));
    }

    #[test]
    fn what_is_no_option_is_refused() {
        for options in [
            &["5.10"][..],
            &["--cpus"],
            &["--cpus", "0"],
            &["--boots", "x"],
            &["--all"],
        ] {
            assert!(parse(options).is_err(), "{options:?}");
        }
    }
}
