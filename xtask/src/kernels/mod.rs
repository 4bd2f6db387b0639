//! The matrix of kernels: Debian's, each booted in an emulated machine with fwdlab in its initramfs, where
//! it has to live through what crashed machines before.

mod boot;
mod image;
mod packages;

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::command::{cargo, repository, run};
use boot::{Machine, Outcome};
use packages::Kernel;

/// Kernels by the first numbers of their releases, and the newest that Debian has anywhere.
const RELEASES: [&str; 3] = ["6.1", "6.12", "newest"];

/// What is played in the first boot with each number of CPUs: see `guest/play`.
const PLAYS: &str = "quickstart,switches,kills,ordinary";

/// What is played in further boots, and where there is little time: what panicked kernels before.
const PLAYS_SHORT: &str = "quickstart,kills";

/// How long everything may take: an emulated machine is twenty times slower.
const TIME_MAX: Duration = Duration::from_secs(2400);

const USAGE: &str = "kernels: give any of 6.1, 6.12 and newest; --cpus N (1, 2 and 4 by turns), --boots N of each \
                     kernel (3), --short for one boot of 6.1 that plays less; --built for the program in \
                     target/release as it is";

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Matrix {
    releases: Vec<String>,
    cpus: Vec<u32>,
    boots: u32,
    is_short: bool,
    is_built: bool,
}

/// Boots kernels and has them live.
///
/// # Errors
/// The options are none, something is missing on this machine, or a kernel does not live.
pub(crate) fn kernels(options: &[&str]) -> Result<()> {
    let matrix = parse(options)?;
    let program = repository().join("target/release/fwdlab");
    if !matrix.is_built {
        run(&mut cargo(["build", "--release", "--package", "fwdlab"]))?;
    }
    let folder = repository().join("target/kernels");
    fs::create_dir_all(&folder)?;
    let bytes = fs::read(&program).with_context(|| format!("kernels: {}", program.display()))?;
    let key = fingerprint(&bytes);
    let mut boots = Vec::new();
    for release in &matrix.releases {
        let kernel = Kernel::fetch(release, &folder)?;
        let image = image::build(&kernel, &program, &folder)?;
        for number in 0..matrix.boots {
            let number_of_cpus = matrix.cpus.len();
            let cpus = matrix.cpus[number as usize % number_of_cpus];
            let is_short = matrix.is_short || number as usize >= number_of_cpus;
            let name = format!("{}-{cpus}-cpus-{number}", kernel.release);
            boots.push(Boot {
                machine: Machine {
                    kernel: kernel.image.clone(),
                    initramfs: image.clone(),
                    cpus,
                    plays: if is_short { PLAYS_SHORT } else { PLAYS },
                    log: folder.join(format!("{name}.log")),
                },
                mark: folder.join(format!("{name}.lived")),
                name,
            });
        }
    }
    let died = boot_all(&boots, key)?;
    println!(
        "{} of {} boots lived",
        boots.len() - died.len(),
        boots.len()
    );
    if !died.is_empty() {
        bail!("kernels: {} did not live: {}", died.len(), died.join(", "));
    }
    Ok(())
}

/// A boot of the matrix.
struct Boot {
    machine: Machine,
    name: String,
    /// There once it has lived, with what was played.
    mark: PathBuf,
}

/// Boots all, as many at once as this machine has CPUs, but those that have lived with the same program; the names of
/// those that died.
fn boot_all(boots: &[Boot], program: u64) -> Result<Vec<String>> {
    let key = |boot: &Boot| format!("{program} {}", boot.machine.plays);
    let (mut left, mut done) = (Vec::new(), 0);
    for boot in boots {
        if fs::read_to_string(&boot.mark).is_ok_and(|mark| mark == key(boot)) {
            done += 1;
        } else {
            left.push(boot);
        }
    }
    if done > 0 {
        println!(
            "{done} of {} boots have lived before with this program",
            boots.len()
        );
    }
    let next = AtomicUsize::new(0);
    let died = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism()?.get().min(left.len());
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            while let Some(boot) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
                let started = Instant::now();
                match boot.machine.boot(TIME_MAX, &boot.name)? {
                    Outcome::Lived => fs::write(&boot.mark, key(boot))?,
                    Outcome::Died { last } => {
                        let log = boot.machine.log.display();
                        println!("{}: did not live: {last}; see {log}", boot.name);
                        died.lock().expect("no boot panics").push(boot.name.clone());
                    }
                }
                println!("{}: {} s", boot.name, started.elapsed().as_secs());
            }
            Ok(())
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no boot panics"))
    })?;
    Ok(died.into_inner().expect("no boot panics"))
}

/// What tells a program from others.
fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn parse(options: &[&str]) -> Result<Matrix> {
    let mut matrix = Matrix {
        releases: Vec::new(),
        cpus: vec![2, 1, 4],
        boots: 3,
        is_short: false,
        is_built: false,
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
            ("--built", _) => matrix.is_built = true,
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
        assert!(!matrix.is_built && parse(&["--built"]).unwrap().is_built);
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
