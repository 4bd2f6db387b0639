//! Files of a FreeBSD DUT: written whole, also where the root can be read only, and put together from the owner's,
//! a set's and the loader's tunables.
//!
//! A set may hold keys. What stands in a file goes to the host and, of the owner's, to the journal that puts it
//! back: no message and no record has any of it.

use crate::mechanism::step::owned;

/// Between what fwdlab's tunables stand, behind the owner's text.
const BEGIN: &str = "# fwdlab's, taken out again: begin";
const END: &str = "# fwdlab's, taken out again: end";

/// Makes a root that can be read only writable until the script ends: a host that boots with a writable root that
/// is not meant to be one panics the next time (nanobsd). Without `-o current` it would lose options such as `noatime`
/// (`sbin/mount/mount.c`, `update_options`).
const WITH_WRITABLE_ROOT: &str = "\
case \",$(mount -p | awk '$2 == \"/\" { print $4 }'),\" in \
*,ro,*) mount -u -o current -w / || exit; \
trap 'status=$?; sync; mount -u -o current -r / || status=1; exit $status' EXIT ;; \
esac; ";

/// A command whose script finds a root that can be written to; the words are `$0`, `$1` and so on. Like all scripts
/// for FreeBSD it is one line: root's shell may be csh, in which no quotes hold a second one.
fn with_writable_root(script: &str, words: &[&str]) -> Vec<String> {
    let script = format!("{WITH_WRITABLE_ROOT}{script}");
    let mut command = owned(&["sh", "-c", &script]);
    command.extend(owned(words));
    command
}

/// Runs a program while the root can be written to.
pub(super) fn run_with_writable_root(words: &[&str]) -> Vec<String> {
    with_writable_root("\"$0\" \"$@\"", words)
}

/// Writes its standard input to a file as a whole; a file that was there keeps its owner and mode.
pub(super) fn write_file(path: &str, mode: u32) -> Vec<String> {
    const SCRIPT: &str = "\
mkdir -p \"$(dirname \"$0\")\" || exit; \
if [ -e \"$0\" ]; then cp -p \"$0\" \"$0.fwdlab\" || exit; \
else (umask 077 && : > \"$0.fwdlab\") && chmod \"$1\" \"$0.fwdlab\" || exit; fi; \
cat > \"$0.fwdlab\" && sync && mv \"$0.fwdlab\" \"$0\" && sync || { rm -f \"$0.fwdlab\"; exit 1; }";
    with_writable_root(SCRIPT, &[path, &format!("{mode:o}")])
}

/// Removes a file, where it is.
pub(super) fn remove_file(path: &str) -> Vec<String> {
    with_writable_root("rm -f \"$0\" && sync", &[path])
}

/// Keeps `/etc` from one boot to the next where that is a copy in memory, as BSDRP's own program does.
pub(super) fn save_configuration() -> Vec<String> {
    const SCRIPT: &str = "[ ! -x /usr/local/sbin/config ] || exec /usr/local/sbin/config save";
    owned(&["sh", "-c", SCRIPT])
}

/// A loader's configuration with tunables (`name=value`) behind its owner's text; without any it is the owner's.
pub(super) fn with_tunables(owners: &str, tunables: &[String]) -> String {
    let mut text = without_tunables(owners);
    if tunables.is_empty() {
        return text;
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text += BEGIN;
    text.push('\n');
    for tunable in tunables {
        let (name, value) = tunable.split_once('=').unwrap_or((tunable, ""));
        text += &format!("{name}=\"{value}\"\n");
    }
    text + END + "\n"
}

/// A loader's configuration as its owner wrote it.
pub(super) fn without_tunables(text: &str) -> String {
    let mut is_ours = false;
    let lines = text.split_inclusive('\n').filter(|line| {
        is_ours |= line.trim_end() == BEGIN;
        let is_owners = !is_ours;
        is_ours &= line.trim_end() != END;
        is_owners
    });
    lines.collect()
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    /// Whether a command is one line, and has nothing in it that csh takes for its history.
    pub(in super::super) fn is_one_line(command: &[impl AsRef<str>]) -> bool {
        command.iter().all(|word| {
            let mut behind = word.as_ref().split('!').skip(1);
            !word.as_ref().contains('\n') && behind.all(|rest| rest.starts_with([' ', '=']))
        })
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn tunables_stand_behind_the_owners_text() {
        let owners = "hw.ix.num_queues=\"4\"";
        let text = with_tunables(owners, &words(&["dev.ix.0.iflib.simple_tx=1"]));
        assert_eq!(
            text,
            "hw.ix.num_queues=\"4\"\n# fwdlab's, taken out again: begin\ndev.ix.0.iflib.simple_tx=\"1\"\n\
             # fwdlab's, taken out again: end\n"
        );
        assert_eq!(with_tunables(&text, &[]), "hw.ix.num_queues=\"4\"\n");
    }

    #[test]
    fn scripts_are_lines_that_a_c_shell_takes_as_they_are() {
        for command in [
            write_file("/x", 0o644),
            remove_file("/x"),
            run_with_writable_root(&["true"]),
            save_configuration(),
        ] {
            assert!(is_one_line(&command), "{command:?}");
        }
    }

    /// What the scripts do where a root can be read only: `mount` writes down its arguments.
    #[test]
    fn a_root_is_writable_for_the_moment_only() {
        testkit::require_tool!("awk");
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mount = folder.path().join("mount");
        let script = format!(
            "#!/bin/sh\ncase $1 in -p) echo '/dev/ufs/a / ufs ro 1 1' ;; *) echo \"$@\" >> {} ;; esac\n",
            log.display()
        );
        fs::write(&mount, script).unwrap();
        fs::set_permissions(&mount, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.path().display(), env!("PATH"));
        let run = |command: Vec<String>| {
            let mut child = Command::new(&command[0]);
            child.args(&command[1..]).env("PATH", &path);
            child.stdin(Stdio::null()).status().unwrap().success()
        };
        let target = folder.path().join("etc/x").display().to_string();
        assert!(run(write_file(&target, 0o640)));
        let mode = fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert!(!run(write_file("/proc/never/x", 0o644)));
        assert!(run(remove_file(&target)) && run(remove_file(&target)));
        assert!(!Path::new(&target).exists());
        assert!(!run(run_with_writable_root(&["false"])));
        let calls = fs::read_to_string(log).unwrap();
        assert_eq!(calls, "-u -o current -w /\n-u -o current -r /\n".repeat(5));
    }

    proptest! {
        #[test]
        fn an_owners_text_comes_back(owners in "([a-z.]{1,8}=\"[0-9]\"\n){0,5}", values in prop::collection::vec("[a-z]{1,5}=[0-9]{1,3}", 0..4)) {
            let once = with_tunables(&owners, &values);
            prop_assert_eq!(with_tunables(&once, &values), once.clone());
            prop_assert_eq!(without_tunables(&once), owners);
        }
    }
}
