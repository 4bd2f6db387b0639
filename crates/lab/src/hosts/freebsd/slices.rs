//! The two slices of a nanobsd DUT: its owner's system is on one, and images are written to the other.
//!
//! What was on the other slice is lost with the first image. The owner's slice is never written to, but for the
//! files that every boot may need.
//!
//! # Source
//! `updatep1` and `updatep2` in FreeBSD's tools/tools/nanobsd/Files/root, and `upgrade` in BSDRP's
//! Files/usr/local/sbin, which knows labels and GPT besides.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fwdlab_sys::Input;

use super::files::{save_configuration, write_file};
use crate::LabError;
use crate::hosts::dut::is_refused;
use crate::hosts::ssh::Connection;
use crate::journal::{Undo, Until};
use crate::mechanism::step::{Errand, owned, words_of};

/// Where it stands which file systems are mounted: on each slice the root is another.
const FSTAB: &str = "/etc/fstab";
const FSTAB_MODE: u32 = 0o644;

/// What writes an image to the other slice, checks it and has it booted from then on: BSDRP's program.
const UPGRADE: &str = "/usr/local/sbin/upgrade";

/// Writes the image on the standard input by `upgrade`, or else by the `$0` of nanobsd in the home folder, once `$1` has
/// unpacked it.
/// A pipeline ends as its last program does: whether the image came whole is told by a file that is left.
const WRITE: &str = "\
left=$(mktemp /tmp/fwdlab.XXXXXX) || exit; \
upgrade=/usr/local/sbin/upgrade; [ -x $upgrade ] || upgrade=\"sh $HOME/$0\"; \
{ \"$1\" && rm \"$left\"; } | $upgrade; status=$?; \
[ ! -e \"$left\" ] || { rm \"$left\"; echo 'the image did not come whole' >&2; exit 1; }; \
exit $status";

/// Has a disk `$0` with an MBR boot from its slice `$1`; boot0 has a choice of its own, where it is there.
const ACTIVATE: &str = "\
gpart set -a active -i \"$1\" \"$0\" || exit; \
! boot0cfg -v \"$0\" >/dev/null 2>&1 || boot0cfg -s \"$1\" \"$0\"";

/// Has a disk `$0` with a GPT boot from its partition `$1`, and from `$2` no more.
const ACTIVATE_GPT: &str =
    "gpart set -a bootme -i \"$1\" \"$0\" && gpart unset -a bootme -i \"$2\" \"$0\"";

/// A slice of a disk with an MBR, or a partition of one with a GPT.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Slice {
    disk: String,
    is_gpt: bool,
    number: u32,
}

impl std::fmt::Display for Slice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.is_gpt { 'p' } else { 's' };
        write!(f, "{}{kind}{}", self.disk, self.number)
    }
}

/// The slice that a device is on: `ada0s1a`, `ada0s1`, `ada0p3`.
fn slice(device: &str) -> Option<Slice> {
    let slice = device.trim_end_matches(|character: char| character.is_ascii_lowercase());
    let kind = slice.trim_end_matches(|character: char| character.is_ascii_digit());
    let disk = kind.strip_suffix(['s', 'p'])?;
    disk.ends_with(|character: char| character.is_ascii_digit())
        .then_some(Slice {
            disk: disk.to_owned(),
            is_gpt: kind.ends_with('p'),
            number: slice[kind.len()..].parse().ok()?,
        })
}

/// The device that the root is on, as `mount -p` lists it: `/dev/ufs/BSDRPs1a  /  ufs  ro  1 1`.
fn root_device(mounts: &str) -> Option<&str> {
    mounts.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let device = words.next()?.strip_prefix("/dev/")?;
        (words.next() == Some("/")).then_some(device)
    })
}

/// The devices behind the labels of `glabel status`.
fn labels(status: &str) -> BTreeMap<&str, &str> {
    let lines = status.lines().map(|line| line.split_whitespace().collect());
    lines
        .filter_map(|words: Vec<&str>| match words.as_slice() {
            [label, _, device] if label.contains('/') => Some((*label, *device)),
            _ => None,
        })
        .collect()
}

/// The slice of the root, and the other one where there is one to write images to.
fn root_and_other(mounts: &str, status: &str) -> Option<(Slice, Option<Slice>)> {
    let device = root_device(mounts)?;
    let labels = labels(status);
    let root = slice(labels.get(device).unwrap_or(&device))?;
    let twin = |number| match number {
        1 => Some(2),
        2 => Some(1),
        _ => None,
    };
    let other = if root.is_gpt {
        // The partitions before them differ: `gpt/BSDRP1` is the third.
        let name = device.trim_end_matches(|character: char| character.is_ascii_digit());
        let number = device[name.len()..].parse().ok().and_then(twin);
        let other = number.and_then(|number| labels.get(format!("{name}{number}").as_str()));
        other.and_then(|device| slice(device))
    } else {
        twin(root.number).map(|number| Slice {
            number,
            ..root.clone()
        })
    };
    Some((root, other))
}

/// The slices of a host, and what is known of them.
#[derive(Debug)]
pub(super) struct Slices {
    /// What boots by itself.
    owners: Slice,
    other: Slice,
    /// What mounts the file systems of each.
    owners_fstab: String,
    other_fstab: Option<String>,
    /// The image on the other slice.
    image: Option<PathBuf>,
    /// From where it is about to boot.
    next: Option<Slice>,
}

impl Slices {
    /// The slices of a host that has booted by itself.
    ///
    /// # Errors
    /// `Host` where its system is none of nanobsd, and those of the connection.
    pub(super) fn find(connection: &Connection) -> Result<Self, LabError> {
        let (owners, other) = look(connection)?;
        let other = other.ok_or_else(|| {
            connection.wrong(format!(
                "its root is on {owners}, which has no twin that an image could be written to"
            ))
        })?;
        Ok(Self {
            owners,
            other,
            owners_fstab: connection.run(&["cat", FSTAB], "")?,
            other_fstab: None,
            image: None,
            next: None,
        })
    }

    /// What an image changes, with what has the host boot from its owner's slice again.
    pub(super) fn changes(
        &self,
        connection: &Connection,
        time_max: Duration,
    ) -> [(String, Undo); 4] {
        let slice = self.owners.to_string();
        let file = Errand::reading(&write_file(FSTAB, FSTAB_MODE), &self.owners_fstab);
        // The latest is undone first.
        [
            (
                format!("the slice that host {} has booted from", connection.host()),
                connection.undo_by_boot(Until::Slice { slice }, time_max),
            ),
            (
                format!("the slice that {} boots from", self.owners.disk),
                connection.undo_by(Errand::of(&self.activation(&self.owners))),
            ),
            (
                "what the host keeps of /etc".to_owned(),
                connection.undo_by(Errand::of(&save_configuration())),
            ),
            (format!("the file {FSTAB}"), connection.undo_by(file)),
        ]
    }

    /// Brings the host nearer to a boot of an image, or of its owner's system. Whether it has to boot first: an
    /// image is written from the owner's slice only, and files of a boot only to the slice that boots.
    ///
    /// # Errors
    /// `Host` where it has not booted from where it was to, and what its programs say.
    pub(super) fn step(
        &mut self,
        connection: &Connection,
        image: Option<&Path>,
    ) -> Result<bool, LabError> {
        let (root, _) = look(connection)?;
        if let Some(next) = self.next.take().filter(|next| *next != root) {
            return Err(connection.wrong(elsewhere(&next, &root)));
        }
        match image.filter(|image| self.image.as_deref() != Some(image)) {
            Some(image) if root == self.owners => self.write(connection, image)?,
            Some(_) => self.boot_from(connection, self.owners.clone())?,
            None if root == *self.wanted(image) => return Ok(false),
            None => self.boot_from(connection, self.wanted(image).clone())?,
        }
        Ok(true)
    }

    /// How a boot of an image, or of the owner's system, has come elsewhere; none where it has not.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn differs(
        &self,
        connection: &Connection,
        image: Option<&Path>,
    ) -> Result<Option<String>, LabError> {
        let (root, _) = look(connection)?;
        let wanted = self.wanted(image);
        Ok((root != *wanted).then(|| elsewhere(wanted, &root)))
    }

    fn wanted(&self, image: Option<&Path>) -> &Slice {
        match image {
            Some(_) => &self.other,
            None => &self.owners,
        }
    }

    /// Writes an image to the other slice, from which the host then boots.
    fn write(&mut self, connection: &Connection, image: &Path) -> Result<(), LabError> {
        self.image = None;
        let is_packed = image.extension().is_some_and(|extension| extension == "xz");
        let unpack = if is_packed { "xzcat" } else { "cat" };
        let program = self.other.program();
        let input = Input::file(image, u64::MAX).open_file();
        let input = input.map_err(|source| LabError::file("reading", image, source))?;
        connection.run_with_file(&["sh", "-c", WRITE, &program, unpack], input)?;
        // BSDRP's program has it name the other slice.
        self.other_fstab = Some(connection.run(&["cat", FSTAB], "")?);
        self.image = Some(image.to_owned());
        self.next = Some(self.other.clone());
        Ok(())
    }

    fn boot_from(&mut self, connection: &Connection, slice: Slice) -> Result<(), LabError> {
        let fstab = if slice == self.owners {
            Some(&self.owners_fstab)
        } else {
            self.other_fstab.as_ref()
        };
        if let Some(fstab) = fstab {
            connection.run(&write_file(FSTAB, FSTAB_MODE), fstab)?;
            connection.run(&save_configuration(), "")?;
        }
        connection.run(&self.activation(&slice), "")?;
        self.next = Some(slice);
        Ok(())
    }

    /// The command that has the host boot from a slice from now on; doing it twice is the same as doing it once.
    fn activation(&self, slice: &Slice) -> Vec<String> {
        let script = if slice.is_gpt { ACTIVATE_GPT } else { ACTIVATE };
        let another = if *slice == self.owners {
            &self.other
        } else {
            &self.owners
        };
        let numbers = [slice, another].map(|slice| slice.number.to_string());
        let mut words = owned(&["sh", "-c", script, &slice.disk]);
        words.extend(numbers);
        words
    }
}

impl Slice {
    /// nanobsd's own program that writes an image to it, in the home folder of root.
    fn program(&self) -> String {
        format!("updatep{}", self.number)
    }
}

/// Where images are written on a host, and by what.
///
/// # Errors
/// `Host` where none can be, and those of the connection.
pub(in crate::hosts) fn image_writer(connection: &Connection) -> Result<String, LabError> {
    let slices = Slices::find(connection)?;
    let own = slices.other.program();
    let at_home = ["sh", "-c", "test -f \"$HOME/$0\"", &own];
    let program = if !is_refused(connection, &["test", "-f", UPGRADE])? {
        UPGRADE
    } else if !is_refused(connection, &at_home)? {
        &own
    } else {
        return Err(connection.wrong(format!(
            "it has neither {UPGRADE} nor {own} in root's home, by which an image would be written"
        )));
    };
    let Slices { owners, other, .. } = slices;
    Ok(format!(
        "its system is on {owners}; images are written to {other} by {program}"
    ))
}

/// Whether the root of a host is on a slice of that name.
pub(in crate::hosts) fn is_on_slice(connection: &Connection, name: &str) -> Result<bool, LabError> {
    let (root, _) = look(connection)?;
    Ok(root.to_string() == name)
}

/// The slice of a host's root, and the other one.
fn look(connection: &Connection) -> Result<(Slice, Option<Slice>), LabError> {
    let answers = connection.run_all(&["mount -p", "glabel status"].map(words_of))?;
    let answer = |place: usize| answers[place].as_deref().unwrap_or_default();
    root_and_other(answer(0), answer(1)).ok_or_else(|| {
        let root = root_device(answer(0)).unwrap_or("no device");
        connection.wrong(format!(
            "its root is on {root}, which is no slice; images are for systems of nanobsd"
        ))
    })
}

fn elsewhere(wanted: &Slice, root: &Slice) -> String {
    format!(
        "its root is on {root}, not on {wanted}; see what `gpart show {}` tells there",
        wanted.disk
    )
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::super::files::tests::is_one_line;
    use super::*;

    /// As glabel(8) prints it.
    const STATUS: &str = "\
                                      Name  Status  Components
                              gpt/efiboot0     N/A  ada0p1
                                gpt/BSDRP1     N/A  ada0p3
                                gpt/BSDRP2     N/A  ada0p4
                              ufs/BSDRPs1a     N/A  da1s1a
";

    fn found(mounts: &str) -> Option<(String, Option<String>)> {
        let (root, other) = root_and_other(mounts, STATUS)?;
        Some((root.to_string(), other.map(|other| other.to_string())))
    }

    #[test]
    fn the_other_slice_is_the_twin_of_the_roots() {
        let named =
            |root: &str, other: Option<&str>| Some((root.to_owned(), other.map(str::to_owned)));
        for (device, expected) in [
            ("ufs/BSDRPs1a", named("da1s1", Some("da1s2"))),
            ("ada0s2a", named("ada0s2", Some("ada0s1"))),
            ("gpt/BSDRP1", named("ada0p3", Some("ada0p4"))),
            ("gpt/BSDRP2", named("ada0p4", Some("ada0p3"))),
            ("ada0p2", named("ada0p2", None)),
            ("ada0s3a", named("ada0s3", None)),
            ("md0", None),
        ] {
            let mounts = format!("/dev/{device}\t\t/\tufs\tro\t1 1\ndevfs\t/dev\tdevfs\trw 0 0\n");
            assert_eq!(found(&mounts), expected, "{device}");
        }
        assert_eq!(found("zroot/ROOT/default / zfs rw,noatime 0 0\n"), None);
    }

    #[test]
    fn scripts_are_lines_that_a_c_shell_takes_as_they_are() {
        assert!(is_one_line(&[WRITE, ACTIVATE, ACTIVATE_GPT]));
    }

    #[test]
    fn an_image_that_is_cut_off_is_refused_whatever_the_program_says() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        fs::write(
            at("updatep2"),
            format!("cat > {}; exit \"$STATUS\"", at("written")),
        )
        .unwrap();
        fs::write(at("broken"), "#!/bin/sh\nhead -c 2; exit 1\n").unwrap();
        fs::set_permissions(at("broken"), fs::Permissions::from_mode(0o755)).unwrap();
        let write = |unpack: &str, status: &str| {
            fs::write(at("image"), "image").unwrap();
            let mut command = Command::new("sh");
            command.args(["-c", WRITE, "updatep2", unpack]);
            command
                .env("HOME", folder.path())
                .env("STATUS", status)
                .stderr(Stdio::null());
            command.stdin(File::open(at("image")).unwrap());
            let is_done = command.status().unwrap().success();
            (is_done, fs::read_to_string(at("written")).unwrap())
        };
        assert_eq!(write("cat", "0"), (true, "image".to_owned()));
        assert_eq!(write("cat", "1"), (false, "image".to_owned()));
        assert_eq!(write(&at("broken"), "0"), (false, "im".to_owned()));
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart(mounts in "(/dev/|ufs/|gpt/|[a-z]{1,4}[0-9]|[sp][0-9]| / |\n|\\PC){0,30}", status in "([a-z0-9/]{0,9} |N/A |\n|\\PC){0,30}") {
            let _ = root_and_other(&mounts, &status);
        }

        #[test]
        fn a_slice_is_read_back(disk in "[a-z]{1,5}[0-9]{1,2}", is_gpt: bool, number in 1..100_u32) {
            let written = Slice { disk, is_gpt, number };
            prop_assert_eq!(slice(&written.to_string()), Some(written));
        }
    }
}
