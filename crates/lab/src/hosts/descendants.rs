//! What a program of the owner's has started on a host, and commands there whose end nobody sees any more, found by a mark
//! in their environment.

use fwdlab_sys::STARTED_MARK;

use crate::mechanism::step::{Errand, owned};

/// Starts a program, behind the name of a variable and its value, with that in its environment.
///
/// One line, because root's shell on FreeBSD may be csh; and no `env`, which takes a program with a `=` in its name for
/// another variable.
const START: &str = r#"export "$0=$1"; shift; exec "$@""#;

/// Ends whatever has a variable with a value in its environment, with all below it, and returns once it is gone.
///
/// FreeBSD tells environments by ps(1), where `-e` shows them in front of the command; Linux by proc(5), where words end
/// with a byte 0. What is asked for with it in its arguments is none of them: neither is an environment of Linux, and
/// on FreeBSD it is never one word of them.
///
/// BusyBox's grep sees no more of a line than what stands before its first byte 0 (findutils/grep.c, `grep_file`): there, every
/// process is looked at by itself.
///
/// A process in exec(2) has no environment for a moment, so that one look which finds nothing proves nothing; it takes
/// two of them, a moment apart.
///
/// A shell that is killed leaves what it waits for, and may just start the next: each is stopped before what is below it
/// is listed, and those that have the mark stay until nothing below them lives.
const END: &str = r#"name=$1 value=$2
marked() {
    if [ "$(uname -s)" = FreeBSD ]; then
        ps -axwwe -o pid= -o command= | while read -r pid words; do
            case " $words " in *" $name=$value "*) echo "$pid" ;; esac
        done
    else
        if printf 'a\0b' | grep -qF b; then
            grep -lsF "$name=$value" /proc/[0-9]*/environ
        else
            printf '%s\n' /proc/[0-9]*/environ
        fi | while read -r file; do
            tr '\0' '\n' < "$file" | grep -qxF "$name=$value" || continue
            file=${file%/environ}
            echo "${file#/proc/}"
        done 2> /dev/null
    fi
}
living() {
    if [ "$(uname -s)" = FreeBSD ]; then
        ps -ax -o pid= -o ppid= -o state=
    else
        cat /proc/[0-9]*/stat 2> /dev/null | sed 's/(.*)//' | while read -r pid state parent rest; do
            echo "$pid $parent $state"
        done
    fi | while read -r pid parent state; do
        case $state in Z*) ;; *) echo "$pid $parent" ;; esac
    done
}
children() {
    living | while read -r pid parent; do
        case " $* " in *" $parent "*) echo "$pid" ;; esac
    done
}
tries=0 empty=0
while true; do
    pids=$(marked)
    if [ -n "$pids" ]; then
        below='' level=$pids
        while [ -n "$level" ]; do
            kill -STOP $level 2> /dev/null
            level=$(children $level)
            below="$below${level:+ $level}"
        done
        kill -9 ${below:-$pids} 2> /dev/null
        empty=0 tries=$((tries + 1))
    else
        empty=$((empty + 1))
    fi
    [ $empty -lt 2 ] || exit 0
    if [ $tries -gt 50 ]; then
        echo "killed, and they do not end:" $pids >&2
        exit 1
    fi
    sleep 0.1 2> /dev/null || sleep 1
done
"#;

/// A program's command, so that all that it starts can be found by a mark which nothing else on the host has.
pub(super) fn marked(mark: &str, program: &[String]) -> Vec<String> {
    let start = ["sh", "-c", START, STARTED_MARK, mark].map(str::to_owned);
    start.into_iter().chain(program.iter().cloned()).collect()
}

/// A command whose shell has a mark, which nothing that it starts has: the shell is found by it, and by the shell all that
/// it waits for, but no daemon that the command leaves. It ends as the command does.
pub(super) fn watched(mark: &str, command: &[impl AsRef<str>]) -> Vec<String> {
    // In one line, as `START`. A host that goes down kills the command and its shell, in any order: ssh then tells of a
    // broken connection, and not of a command that failed.
    let run = format!(
        "unset {STARTED_MARK}; \"$@\"; s=$?; case $s in 137|143) kill -$((s - 128)) $$ ;; esac; exit $s"
    );
    let mut words = owned(&["sh", "-c", &run, "sh"]);
    words.extend(owned(command));
    marked(mark, &words)
}

/// What ends all that has a mark; none is no error.
pub(super) fn ending(mark: &str) -> Errand {
    Errand::reading(&["sh", "-s", "--", STARTED_MARK, mark], END)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::*;

    fn command(words: &[String]) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    /// FreeBSD's, as far as they are asked here, by ps(1): environment and command in one line, words parted by spaces.
    const OF_FREEBSD: [(&str, &str); 2] = [
        ("uname", "#!/bin/sh\n[ \"$*\" = -s ] && echo FreeBSD\n"),
        (
            "ps",
            "#!/bin/sh\nif [ \"$*\" = '-ax -o pid= -o ppid= -o state=' ]; then\n    \
             cat /proc/[0-9]*/stat 2> /dev/null | sed 's/(.*)//' | while read -r pid state parent rest; do\n    \
             echo \"$pid $parent $state\"\ndone\nexit\nfi\n\
             [ \"$*\" = '-axwwe -o pid= -o command=' ] || exit 1\nfor process in /proc/[0-9]*; do\n    \
             words=$(cat \"$process/environ\" \"$process/cmdline\" 2> /dev/null | tr '\\0' ' ')\n    \
             echo \"${process#/proc/} $words\"\ndone\n",
        ),
    ];

    /// Ends what has a mark, by the shell that is here, which first finds the programs of a folder.
    fn end(mark: &str, programs: &Path) {
        let errand = ending(mark);
        let mut command = command(&errand.words);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", programs.display()));
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(errand.input.as_bytes()).unwrap();
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }

    fn is_there(pid: &str) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        // One that nobody has waited for yet has ended all the same.
        stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").starts_with(" Z"))
    }

    /// Whether a process that was killed goes: it loses its memory, environment included, before it has ended.
    fn goes(pid: &str) -> bool {
        let deadline = Instant::now() + Duration::from_secs(10);
        while is_there(pid) && Instant::now() < deadline {
            sleep(Duration::from_millis(10));
        }
        !is_there(pid)
    }

    #[test]
    fn what_left_its_session_is_ended_and_what_has_a_longer_mark_is_not() {
        testkit::require_tool!("sleep", "setsid");
        let folder = tempfile::tempdir().unwrap();
        ends_the_marked_alone("linux", folder.path());
        ends_a_command_but_not_its_daemon("linux", folder.path());
        for (name, script) in OF_FREEBSD {
            let path = folder.path().join(name);
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        ends_the_marked_alone("freebsd", folder.path());
        ends_a_command_but_not_its_daemon("freebsd", folder.path());
    }

    #[test]
    fn what_left_its_session_is_ended_by_applets_of_busybox_too() {
        testkit::require_tool!("sleep", "setsid", "busybox");
        let applets = tempfile::tempdir().unwrap();
        testkit::install_applets(applets.path());
        ends_the_marked_alone("busybox", applets.path());
        ends_a_command_but_not_its_daemon("busybox", applets.path());
    }

    fn ends_the_marked_alone(system: &str, programs: &Path) {
        let program = ["sh", "-c", "setsid sleep 600 > /dev/null 2>&1 & echo $!"];
        let program = program.map(str::to_owned);
        let of = |mark: &str| format!("fwdlab-test-{system}-{}-{mark}", std::process::id());
        let start = |mark: &str| {
            let output = command(&marked(mark, &program)).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let (one, other) = (start(&of("1")), start(&of("12")));
        end(&of("1"), programs);
        assert!(goes(&one));
        assert!(is_there(&other));
        end(&of("12"), programs);
        assert!(goes(&other));
        // None is left, which is no error.
        end(&of("12"), programs);
    }

    fn ends_a_command_but_not_its_daemon(system: &str, programs: &Path) {
        let mark = format!("fwdlab-test-{system}-{}-watched", std::process::id());
        let script = "(setsid sleep 600 > /dev/null 2>&1 & echo $!); sh -c 'echo $$; exec sleep 600'; echo never";
        let mut shell = command(&watched(&mark, &["sh", "-c", script]));
        let mut shell = shell.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
        let [daemon, waited_for] = [(); 2].map(|()| lines.next().unwrap().unwrap());
        end(&mark, programs);
        assert!(goes(&waited_for));
        assert!(!shell.wait().unwrap().success());
        assert!(lines.next().is_none());
        assert!(is_there(&daemon));
        let killed = Command::new("kill").args(["-9", &daemon]).status();
        assert!(killed.unwrap().success());
    }

    #[test]
    fn a_watched_command_ends_as_it_does_by_itself() {
        use std::os::unix::process::ExitStatusExt as _;

        let status = |script: &str| {
            let words = watched("m", &["sh", "-c", script]);
            command(&words).status().unwrap()
        };
        assert_eq!(status("exit 3").code(), Some(3));
        assert_eq!(status("exit 130").code(), Some(130));
        assert_eq!(status("kill -9 $$").signal(), Some(9));
        // What it starts has no mark.
        let has_none = format!("[ -z \"${STARTED_MARK}\" ]");
        assert_eq!(status(&has_none).code(), Some(0));
    }

    #[test]
    fn a_program_is_started_with_its_own_words() {
        let words = ["printf", "%s|%s|%s", "a b", "$HOME", "'x=y'"].map(str::to_owned);
        let output = command(&marked("m", &words)).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "a b|$HOME|'x=y'");
    }
}
