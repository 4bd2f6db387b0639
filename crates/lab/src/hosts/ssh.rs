//! A host reached by the user's own OpenSSH: one connection, over which every command goes.
//!
//! The user's configuration, jump hosts and agent are OpenSSH's affair. What is not left to it: a host whose
//! key is not known is refused, nothing is asked for, and nothing is forwarded.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::Hosts;
use fwdlab_sys::Process;
use tempfile::TempDir;

use super::descendants::{ending, watched};
use crate::journal::{BootUntil, Destination, Undo, Until, boot, mark_of_commands};
use crate::mechanism::question::Answers;
use crate::mechanism::step::Errand;
use crate::program::Output;
use crate::{LabError, program};

/// How long it may take until a host has let us in.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(60);
/// The control plane of a DUT under load answers late or not for a while: such a command is waited for.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(150);
/// How long a command may take that is given a file, whatever its size: an image is written and checked.
const FILE_TIME_MIN: Duration = Duration::from_secs(600);
/// What of a file is taken in a second at least, beyond that.
const FILE_BYTES_A_SECOND: u64 = 256 * 1024;
/// What is kept of what a command complains of, and how much is read of that at once.
const COMPLAINT_BYTES_MAX: usize = 4096;
const COMPLAINT_BYTES_AT_ONCE: u64 = 1 << 16;
/// A host that goes down may keep the last command for ever.
const LETTING_GO_TIME_MAX: Duration = Duration::from_secs(20);
/// How long is waited before a command is tried again whose connection broke, each time: a host that just let go
/// of us may need a moment until it listens again.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
];
/// What the name of a connection's folder begins with; the process follows that made it.
const FOLDER: &str = "fwdlab-ssh-";
/// The socket in it, through which commands reach what holds the connection.
const SOCKET: &str = "s";
/// What the first command of a connection prints before its own output. In front of it stands what the host's shell
/// prints at login, which nobody could tell from an answer.
const FIRST_LINE: &str = "--- fwdlab";
/// How many characters of such a text are shown.
const LOGIN_TEXT_MAX: usize = 60;
/// What OpenSSH exits with where it is itself what failed.
pub(super) const SSH_FAILED: i32 = 255;

impl Destination {
    /// Of a lab's DUT.
    pub(crate) fn of_dut(hosts: &Hosts) -> Self {
        Self {
            host: hosts.dut.host.clone(),
            config: hosts.ssh_config.clone(),
        }
    }

    /// The arguments of ssh up to the command, through a socket.
    fn arguments(&self, socket: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut option = |text: &str| {
            arguments.push("-o".into());
            arguments.push(text.into());
        };
        for text in [
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "ClearAllForwardings=yes",
            "ForwardAgent=no",
            "ForwardX11=no",
            "PermitLocalCommand=no",
            "RequestTTY=no",
            "ConnectTimeout=20",
            // Longer than a control plane is known to be starved of its CPU.
            "ServerAliveInterval=10",
            "ServerAliveCountMax=12",
            "LogLevel=ERROR",
        ] {
            option(text);
        }
        if let Some(config) = &self.config {
            arguments.push("-F".into());
            arguments.push(config.into());
        }
        arguments.push("-S".into());
        arguments.push(socket.into());
        arguments
    }

    /// The whole command line of ssh for a command of the host.
    fn command(&self, socket: &Path, words: &[impl AsRef<str>]) -> Vec<OsString> {
        let mut arguments = vec!["ssh".into()];
        arguments.extend(self.arguments(socket));
        arguments.extend(["-o", "ControlMaster=no"].map(OsString::from));
        arguments.push("--".into());
        arguments.push((&self.host).into());
        arguments.push(quoted(words).into());
        arguments
    }

    /// That ssh itself failed, with what it says.
    pub(super) fn refused(&self, what: &str, stderr: &str) -> LabError {
        LabError::Ssh {
            host: self.host.clone(),
            what: what.to_owned(),
            stderr: stderr.trim().to_owned(),
            trial: self.trial(),
        }
    }

    /// The command by which a user sees whether the host lets fwdlab in.
    fn trial(&self) -> String {
        let mut words = ["ssh", "-o", "BatchMode=yes"].map(str::to_owned).to_vec();
        if let Some(config) = &self.config {
            words.extend(["-F".to_owned(), config.display().to_string()]);
        }
        words.extend([self.host.clone(), "true".to_owned()]);
        program::command_line(&words)
    }
}

/// An open connection to a host; closed when the value goes.
#[derive(Debug)]
pub(crate) struct Connection {
    destination: Destination,
    socket: PathBuf,
    /// What holds it; none where it was let go of or given up.
    master: RefCell<Option<Child>>,
    /// Whether the host's shell was seen to print nothing at login.
    is_quiet: Cell<bool>,
    /// By what commands of this process are found on the host.
    mark: String,
    /// Whether the end of such a command was not seen, which may still run there.
    is_unanswered: Cell<bool>,
    _folder: TempDir,
}

impl Connection {
    /// Logs in.
    ///
    /// # Errors
    /// `Ssh` where the host does not let us in, with what OpenSSH says.
    pub(crate) fn open(destination: Destination) -> Result<Self, LabError> {
        let all = std::env::temp_dir();
        remove_leftover_folders(&all);
        let process = Process::this()?;
        let Process { pid, start_time } = process;
        let folder = tempfile::Builder::new()
            .prefix(&format!("{FOLDER}{pid}-{start_time}-"))
            .tempdir_in(&all)
            .map_err(|source| LabError::file("making a folder in", &all, source))?;
        let connection = Self {
            socket: folder.path().join(SOCKET),
            destination,
            master: RefCell::new(None),
            is_quiet: Cell::new(false),
            mark: mark_of_commands(&boot()?, process),
            is_unanswered: Cell::new(false),
            _folder: folder,
        };
        connection.log_in()?;
        Ok(connection)
    }

    /// The same where another connection of this process may have broken: what went on over that is ended before the first
    /// command.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub(crate) fn open_again(destination: Destination) -> Result<Self, LabError> {
        let connection = Self::open(destination)?;
        connection.is_unanswered.set(true);
        Ok(connection)
    }

    /// Whom it leads to.
    pub(crate) fn destination(&self) -> &Destination {
        &self.destination
    }

    /// The host, as ssh knows it.
    pub(crate) fn host(&self) -> &str {
        &self.destination.host
    }

    /// What is wrong with the host, and what to do.
    pub(crate) fn wrong(&self, why: impl Into<String>) -> LabError {
        LabError::Host {
            host: self.host().to_owned(),
            why: why.into(),
        }
    }

    /// What undoes something by a command of the host.
    pub(super) fn undo_by(&self, errand: Errand) -> Undo {
        Undo::OnHost {
            at: self.destination.clone(),
            arguments: errand.words,
            input: errand.input,
        }
    }

    /// What undoes something by a boot of the host.
    pub(super) fn undo_by_boot(&self, until: Until, time_max: Duration) -> Undo {
        Undo::Boot(BootUntil {
            at: self.destination.clone(),
            until,
            time_s_max: time_max.as_secs(),
        })
    }

    /// Runs a command on the host, a text on its standard input, and tells what it printed. Where the
    /// connection breaks it is opened again and the command run again: doing it twice has to be the same as
    /// doing it once. One that was given up is opened again only if that works at once.
    ///
    /// # Errors
    /// `Ssh` where the connection cannot be had, `OnHost` where the command fails or takes too long, `Host` where the
    /// host's shell prints text at login.
    pub(crate) fn run(&self, words: &[impl AsRef<str>], input: &str) -> Result<String, LabError> {
        let is_given_up = self.master.borrow().is_none();
        let mut pauses = PAUSES
            .iter()
            .take(if is_given_up { 0 } else { PAUSES.len() });
        loop {
            match self.keep_open().and_then(|()| self.attempt(words, input)) {
                Err(error) if error.is_of_a_connection() => {
                    self.log_out();
                    let Some(pause) = pauses.next() else {
                        return Err(error);
                    };
                    sleep(*pause);
                }
                result => return result,
            }
        }
    }

    fn attempt(&self, words: &[impl AsRef<str>], input: &str) -> Result<String, LabError> {
        self.end_unanswered()?;
        let there = watched(&self.mark, words);
        let mut command = self.destination.command(&self.socket, &there);
        if !self.is_quiet.get() {
            let line = command.last_mut().expect("the host's command stands last");
            *line = format!("echo '{FIRST_LINE}'; {}", quoted(&there)).into();
        }
        self.is_unanswered.set(true);
        let output = match self.output(&command, words, input) {
            // Only ssh was ended by that.
            Err(LabError::Command { status, stderr, .. }) => {
                let status = match self.end_unanswered() {
                    Ok(()) => status,
                    Err(error) => {
                        format!(
                            "{status}; it may still run there, because it could not be ended: {error}"
                        )
                    }
                };
                return Err(self.failed(words, status, stderr));
            }
            output => output?,
        };
        self.is_unanswered.set(false);
        if !output.status.success() {
            return Err(self.failed(words, output.status.to_string(), output.stderr));
        }
        if self.is_quiet.get() {
            return Ok(output.stdout);
        }
        let answer = behind_login(&output.stdout).map_err(|why| self.wrong(why))?;
        self.is_quiet.set(true);
        Ok(answer.to_owned())
    }

    /// What became of a command line of ssh, which is that of some words on the host.
    ///
    /// # Errors
    /// `Ssh` where the connection broke, `Command` where it took too long or printed too much.
    fn output(
        &self,
        command: &[OsString],
        words: &[impl AsRef<str>],
        input: &str,
    ) -> Result<Output, LabError> {
        let output = program::run_for(COMMAND_TIME_MAX, command, input)?;
        if output.status.code() == Some(SSH_FAILED) {
            return Err(self.refused(&program::command_line(words), output.stderr.trim()));
        }
        Ok(output)
    }

    /// Ends the command whose end was not seen, so that it does nothing behind those that follow.
    fn end_unanswered(&self) -> Result<(), LabError> {
        if !self.is_unanswered.get() {
            return Ok(());
        }
        // It has no mark itself, by which it would find itself.
        let Errand { words, input } = ending(&self.mark);
        let command = self.destination.command(&self.socket, &words);
        let output = match self.output(&command, &words, &input) {
            Err(LabError::Command { status, stderr, .. }) => {
                return Err(self.failed(&words, status, stderr));
            }
            output => output?,
        };
        if !output.status.success() {
            return Err(self.failed(&words, output.status.to_string(), output.stderr));
        }
        self.is_unanswered.set(false);
        Ok(())
    }

    /// Ends commands of processes that are gone, by their marks, before what they have changed is undone.
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub(crate) fn end_commands(&self, marks: &BTreeSet<String>) -> Result<(), LabError> {
        marks.iter().try_for_each(|mark| {
            let Errand { words, input } = ending(mark);
            self.run(&words, &input).map(|_| ())
        })
    }

    /// Asks, by one errand, commands that change nothing.
    ///
    /// # Errors
    /// As of [`run`](Self::run), but for commands that fail.
    pub(crate) fn ask(&self, questions: Vec<Vec<String>>) -> Result<Answers, LabError> {
        let printed = self.run_all(&questions)?.into_iter();
        let printed = printed.map(|text| text.map(|text| text.trim().to_owned()));
        Ok(Answers {
            host: self.host().to_owned(),
            printed: questions.into_iter().zip(printed).collect(),
            ..Answers::default()
        })
    }

    /// What a command complains of; none where it succeeds.
    ///
    /// # Errors
    /// `Ssh` where the connection cannot be had.
    pub(crate) fn complaint(&self, errand: &Errand) -> Result<Option<String>, LabError> {
        match self.run(&errand.words, &errand.input) {
            Err(LabError::OnHost { stderr, .. }) => Ok(Some(stderr)),
            done => done.map(|_| None),
        }
    }

    /// Runs a command on the host with a file on its standard input.
    ///
    /// # Errors
    /// As of [`run`](Self::run); it is not tried again.
    pub(crate) fn run_with_file(
        &self,
        words: &[impl AsRef<str>],
        input: File,
    ) -> Result<(), LabError> {
        let what = program::command_line(words);
        self.keep_open()?;
        self.end_unanswered()?;
        let there = watched(&self.mark, words);
        let command = self.destination.command(&self.socket, &there);
        let failed = |source: io::Error| self.refused(&what, &source.to_string());
        let size = input.metadata().map_err(failed)?.len();
        let time_max = FILE_TIME_MIN + Duration::from_secs(size / FILE_BYTES_A_SECOND);
        self.is_unanswered.set(true);
        let mut child = spawn(&command, input.into(), Stdio::null()).map_err(failed)?;
        let (status, stderr) = ended_within(&mut child, time_max).map_err(failed)?;
        let is_answered = status.is_some_and(|status| status.code() != Some(SSH_FAILED));
        self.is_unanswered.set(!is_answered);
        match status {
            Some(status) if status.success() => Ok(()),
            Some(_) if !is_answered => Err(self.refused(&what, &stderr)),
            Some(status) => Err(self.failed(words, status.to_string(), stderr)),
            None => {
                let why = format!("it had not ended after {} s", time_max.as_secs());
                Err(self.refused(&what, &why))
            }
        }
    }

    /// Starts a command on the host that talks over its standard input and output.
    ///
    /// # Errors
    /// `Ssh` where it cannot be started, or the connection not be had.
    pub(crate) fn start(&self, words: &[impl AsRef<str>]) -> Result<Child, LabError> {
        self.keep_open()?;
        let command = self.destination.command(&self.socket, words);
        spawn(&command, Stdio::piped(), Stdio::piped())
            .map_err(|source| self.refused(&program::command_line(words), &source.to_string()))
    }

    /// Writes a file of the host as a whole: whatever fails, it is the old one or the new one.
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub(crate) fn write_file(&self, path: &str, text: &str) -> Result<(), LabError> {
        self.run(&whole_file(path), text).map(|_| ())
    }

    /// Runs a command that may take the host down with it, and closes what was open. Returns whether the host said
    /// that it did it: one that is gone does not.
    pub(crate) fn run_and_let_go(&self, words: &[impl AsRef<str>]) -> bool {
        let command = self.destination.command(&self.socket, words);
        let output = program::run_for(LETTING_GO_TIME_MAX, &command, "");
        self.log_out();
        output.is_ok_and(|output| output.status.success())
    }

    /// Starts the process that holds the connection, and waits until it does.
    ///
    /// # Errors
    /// `Ssh` where the host does not let us in.
    pub(crate) fn log_in(&self) -> Result<(), LabError> {
        self.log_out();
        let mut command = vec![OsString::from("ssh")];
        command.extend(self.destination.arguments(&self.socket));
        let master = [
            "-o",
            "ControlMaster=yes",
            "-o",
            "ControlPersist=no",
            "-N",
            "--",
        ];
        command.extend(master.map(OsString::from));
        command.push((&self.destination.host).into());
        let mut child = spawn(&command, Stdio::null(), Stdio::null())
            .map_err(|source| self.refused("logging in", &source.to_string()))?;
        let start = Instant::now();
        loop {
            if self.socket.exists() {
                *self.master.borrow_mut() = Some(child);
                return Ok(());
            }
            let ended = child.try_wait().ok().flatten().is_some();
            if ended || start.elapsed() > CONNECT_TIME_MAX {
                let stderr = killed(&mut child);
                let why = if ended { &*stderr } else { "it took too long" };
                return Err(self.refused("logging in", why));
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// Logs in again where what held the connection has ended: without it, every command would log in by itself.
    fn keep_open(&self) -> Result<(), LabError> {
        let is_held = match &mut *self.master.borrow_mut() {
            Some(master) => matches!(master.try_wait(), Ok(None)),
            None => false,
        };
        if is_held { Ok(()) } else { self.log_in() }
    }

    fn log_out(&self) {
        if let Some(mut master) = self.master.borrow_mut().take() {
            let _ = master.kill();
            let _ = master.wait();
        }
        let _ = std::fs::remove_file(&self.socket);
    }

    fn failed(&self, words: &[impl AsRef<str>], status: String, stderr: String) -> LabError {
        LabError::OnHost {
            host: self.host().to_owned(),
            command: program::command_line(words),
            status,
            stderr,
        }
    }

    fn refused(&self, what: &str, stderr: &str) -> LabError {
        self.destination.refused(what, stderr)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.log_out();
    }
}

/// Removes the folders of processes that are gone: one that was killed has left its own.
fn remove_leftover_folders(all: &Path) {
    let owner = |name: &str| {
        let mut numbers = name.strip_prefix(FOLDER)?.splitn(3, '-');
        Some(Process {
            pid: numbers.next()?.parse().ok()?,
            start_time: numbers.next()?.parse().ok()?,
        })
    };
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let owner = entry.file_name().to_str().and_then(owner);
        // Processes of a container that has this folder, too, are not seen: they answer.
        if owner.is_some_and(|owner| !owner.is_alive())
            && UnixStream::connect(entry.path().join(SOCKET)).is_err()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// What the first command of a connection printed, unless the host's shell has printed something before it; what is
/// wrong, then.
fn behind_login(printed: &str) -> Result<&str, String> {
    let line = format!("{FIRST_LINE}\n");
    let (before, has_run) = match printed.split_once(&line) {
        Some(("", answer)) => return Ok(answer),
        Some((before, _)) => (before, true),
        None => (printed, false),
    };
    let text = before.trim().lines().next().unwrap_or_default();
    let text: String = text.chars().take(LOGIN_TEXT_MAX).collect();
    Err(if has_run {
        format!(
            "its shell prints text at login ({text:?}), which would be taken for answers; have its start-up file \
             (~/.bashrc, ~/.cshrc or the like) print only in a terminal: [ -t 1 ] && echo ..."
        )
    } else {
        format!(
            "asked to echo a line, it answered {text:?}; log in as a user whose shell runs the commands that ssh gives it"
        )
    })
}

/// How an ssh ended that is done, none where it had to be killed, and the beginning of what it complained of.
pub(super) fn ended(child: &mut Child) -> io::Result<(Option<ExitStatus>, String)> {
    ended_within(child, LETTING_GO_TIME_MAX)
}

/// Kills an ssh. Returns the beginning of what it complained of.
pub(super) fn killed(child: &mut Child) -> String {
    let _ = child.kill();
    ended(child).unwrap_or_default().1
}

/// The same of one that may take so long. What it has started, as a `ProxyCommand`, may hold its pipes open for longer, and is
/// not waited for.
fn ended_within(child: &mut Child, time_max: Duration) -> io::Result<(Option<ExitStatus>, String)> {
    const PAUSE_MAX: Duration = Duration::from_millis(20);
    let deadline = Instant::now() + time_max;
    let mut pause = Duration::from_millis(1);
    let mut complaints = Vec::new();
    let status = loop {
        let status = child.try_wait()?;
        // Read meanwhile, too: a pipe that is full would hold the child up.
        if let Some(stderr) = &mut child.stderr {
            complaints.extend(fwdlab_sys::read_waiting(stderr, COMPLAINT_BYTES_AT_ONCE));
            complaints.truncate(COMPLAINT_BYTES_MAX);
        }
        if status.is_some() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            break None;
        }
        sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    };
    // ssh ends its own lines with a carriage return.
    let complaints = String::from_utf8_lossy(&complaints).replace('\r', "");
    Ok((status, complaints.trim().to_owned()))
}

/// What writes its standard input to a file as a whole.
pub(crate) fn whole_file(path: &str) -> [&str; 4] {
    // The new file has the old one's mode and owner, and where that is a link it is what the link leads to.
    const SCRIPT: &str = "file=$(readlink -f \"$0\") || file=$0; new=$file.fwdlab; \
                          { [ ! -e \"$file\" ] || cp -p \"$file\" \"$new\"; } && \
                          cat > \"$new\" && sync && mv \"$new\" \"$file\" && sync || { rm -f \"$new\"; exit 1; }";
    ["sh", "-c", SCRIPT, path]
}

/// A Ctrl-C at the terminal is for this process alone, and so is what it starts.
fn spawn(command: &[OsString], stdin: Stdio, stdout: Stdio) -> io::Result<Child> {
    use std::os::unix::process::CommandExt as _;
    let (program, arguments) = command.split_first().expect("ssh stands in front");
    let mut command = Command::new::<&OsStr>(program);
    command
        .args(arguments)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(Stdio::piped())
        .process_group(0);
    fwdlab_sys::bind_to_this_thread(&mut command);
    command.spawn()
}

/// Words as one line for the shell that ssh hands a command to: each in single quotes, so that nothing in it
/// acts. The only place where that is done.
pub(crate) fn quoted(words: &[impl AsRef<str>]) -> String {
    let quote = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
    let words = words.iter().map(|word| quote(word.as_ref()));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_host_is_no_option_and_a_command_one_argument() {
        let destination = Destination {
            host: "router".into(),
            config: Some("a b".into()),
        };
        let command = destination.command(Path::new("s"), &["cat", "a b", "$(reboot)"]);
        let file = ["-F", "a b", "-S", "s"].map(OsString::from);
        assert!(command.windows(4).any(|words| words == file), "{command:?}");
        let end = ["--", "router", "'cat' 'a b' '$(reboot)'"];
        assert!(command.ends_with(&end.map(OsString::from)), "{command:?}");
        assert!(command.contains(&"StrictHostKeyChecking=yes".into()));
    }

    #[test]
    fn a_refusal_names_the_command_to_try_with_the_labs_configuration() {
        let refusal = |config: Option<&str>| {
            let destination = Destination {
                host: "root@dut".into(),
                config: config.map(PathBuf::from),
            };
            destination.refused("logging in", "no route\n").to_string()
        };
        assert_eq!(
            refusal(Some("rig/ssh_config")),
            "host root@dut: logging in: ssh failed: no route; fwdlab answers no questions of ssh and takes no unknown \
             host keys: make `ssh -o BatchMode=yes -F rig/ssh_config root@dut true` work"
        );
        assert!(refusal(None).ends_with("make `ssh -o BatchMode=yes root@dut true` work"));
    }

    #[test]
    fn what_an_ssh_has_started_is_not_waited_for() {
        use nix::sys::signal::{Signal, kill};
        use nix::unistd::Pid;

        let start = |script: &str| {
            let words = ["sh", "-c", script].map(OsString::from);
            spawn(&words, Stdio::null(), Stdio::null()).unwrap()
        };
        // It holds the pipe open.
        let mut child = start("sleep 1000 >&2 & echo $! >&2; exit 3");
        let (status, said) = ended(&mut child).unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(3));
        kill(Pid::from_raw(said.parse().unwrap()), Signal::SIGKILL).unwrap();
        // A pipe holds less.
        let (status, said) =
            ended(&mut start("head -c 1000000 /dev/zero | tr '\\0' x >&2")).unwrap();
        assert!(status.is_some_and(|status| status.success()));
        assert_eq!(said.len(), COMPLAINT_BYTES_MAX);
        let (_, said) = ended(&mut start("printf 'changed\\r\\nrefused\\r\\n' >&2")).unwrap();
        assert_eq!(said, "changed\nrefused");
        let (status, _) = ended_within(&mut start("exec sleep 1000"), Duration::ZERO).unwrap();
        assert_eq!(status, None);
    }

    #[test]
    fn folders_of_connections_go_with_their_process() {
        use std::os::unix::net::UnixListener;

        let all = tempfile::tempdir().unwrap();
        let this = Process::this().unwrap();
        let of = |started: u64| format!("{FOLDER}{}-{started}-x", this.pid);
        let (own, gone, held) = (
            of(this.start_time),
            of(this.start_time - 1),
            of(this.start_time - 2),
        );
        let folders = [&own, &gone, &held, "fwdlab-ssh-others"];
        for name in folders {
            std::fs::create_dir(all.path().join(name)).unwrap();
        }
        let _listener = UnixListener::bind(all.path().join(&held).join(SOCKET)).unwrap();
        remove_leftover_folders(all.path());
        let is_left = folders.map(|name| all.path().join(name).exists());
        assert_eq!(is_left, [true, false, true, true]);
    }

    #[test]
    fn text_that_a_shell_prints_at_login_is_no_answer() {
        assert_eq!(behind_login("--- fwdlab\nLinux\n"), Ok("Linux\n"));
        assert_eq!(behind_login("--- fwdlab\n"), Ok(""));
        for (printed, expected) in [
            ("hi\n--- fwdlab\nLinux\n", "(\"hi\")"),
            ("\n--- fwdlab\n", "start-up file"),
            ("This account is closed.\n", "it answered \"This account"),
            ("", "it answered \"\""),
        ] {
            let why = behind_login(printed).unwrap_err();
            assert!(why.contains(expected), "{printed:?}: {why}");
        }
    }

    proptest! {
        #[test]
        fn a_shell_gets_back_what_was_quoted(words in prop::collection::vec("[^\0]{0,12}", 1..5)) {
            let script = format!("printf '%s\\0' {}", quoted(&words));
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            let seen = String::from_utf8(output.stdout).unwrap();
            let expected: String = words.iter().map(|word| format!("{word}\0")).collect();
            prop_assert_eq!(seen, expected);
        }
    }
}
