//! A process of fwdlab's own on a host, a tester's or the DUT's: brought there, started, and asked over ssh.

use std::fs::File;
use std::io::{self, BufReader, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fwdlab_sys::Input;
use object::build::elf::Builder;

use super::protocol::{Answer, Ask, BETWEEN_SIGNS_OF_LIFE, Hello, PROTOCOL, lines};
use super::ssh::{Connection, killed};
use crate::error::start;
use crate::{LabError, kept_log};

/// How much longer than asked for an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How many answers may wait to be read: each request has one.
const ANSWERS_MAX: usize = 2;
/// More than any program has.
const PROGRAM_BYTES_MAX: u64 = 1 << 30;
/// Where the program is kept on a host, below the home of whom we log in as.
const FOLDER: &str = ".cache/fwdlab";

/// What stands behind the name of a program that is not whole yet.
const PART: &str = "part-";
/// Makes the folder, and removes programs of other versions there: they are not used any more, or live on until their
/// processes end. What another run is bringing stays, unless it has had time enough.
const MAKE_ROOM: &str = "mkdir -p \"$0\" && cd \"$0\" || exit 1; for file in fwdlab-*; do \
    case $file in *.part-*) find \"$file\" -mmin +60 -exec rm -f {} + 2>/dev/null ;; *) rm -f \"$file\" ;; esac; done; :";
/// Writes the program to a part of it, and puts that in its place once it is whole; nothing stays where it is not.
const WRITE: &str = "cat > \"$1\" && [ \"$(wc -c < \"$1\")\" -eq \"$2\" ] && chmod 700 \"$1\" && mv \"$1\" \"$0\" || \
    { rm -f \"$1\"; exit 1; }";

/// A process of fwdlab's own on a host.
pub(super) struct AgentProcess {
    // What talks to the process goes over it.
    connection: Rc<Connection>,
    child: Child,
    requests: Arc<Mutex<ChildStdin>>,
    /// Ends the signs of life when it goes.
    _alive: Sender<()>,
    answers: Receiver<Result<String, String>>,
    pub(super) hello: Hello,
}

impl AgentProcess {
    /// Brings the program to the host where it is not there yet, and starts it.
    ///
    /// # Errors
    /// `Host` where the program does not run there, and those of the connection.
    pub(super) fn start(
        connection: &Rc<Connection>,
        program: Option<&Path>,
    ) -> Result<Self, LabError> {
        let program = bring(connection, program)?;
        let mut child = connection.start(&[&program, "agent"])?;
        let requests = child.stdin.take().expect("it was asked for");
        let requests = Arc::new(Mutex::new(requests));
        let answers = read(child.stdout.take().expect("it was asked for"))?;
        let mut process = Self {
            connection: Rc::clone(connection),
            child,
            _alive: give_signs_of_life(&requests)?,
            requests,
            answers,
            hello: Hello {
                protocol: 0,
                fwdlab: String::new(),
                kernel: String::new(),
                cpu_model: String::new(),
                cpus: Vec::new(),
            },
        };
        let line = process.line("starting fwdlab", PATIENCE)?;
        process.hello = serde_json::from_str(&line)
            .map_err(|error| process.failed("starting fwdlab", &error.to_string()))?;
        let version = env!("CARGO_PKG_VERSION");
        if process.hello.protocol != PROTOCOL || process.hello.fwdlab != version {
            let why = format!(
                "its fwdlab is version {} and this one {version}; give the lab file the program of this version",
                process.hello.fwdlab
            );
            return Err(process.failed("starting fwdlab", &why));
        }
        Ok(process)
    }

    /// Asks for something that is only done, or not.
    pub(super) fn done(&mut self, what: &str, ask: &Ask) -> Result<(), LabError> {
        match self.ask(what, ask)? {
            Answer::Done => Ok(()),
            other => Err(self.unexpected(what, &other)),
        }
    }

    /// Asks for something that is done or refused; why, then.
    pub(super) fn done_or_refused(
        &mut self,
        what: &str,
        ask: &Ask,
    ) -> Result<Result<(), String>, LabError> {
        self.put(what, ask)?;
        let line = self.line(what, PATIENCE)?;
        match self.read(what, &line)? {
            Answer::Done => Ok(Ok(())),
            Answer::Failed {
                why,
                verifier_log: Some(log),
            } => Ok(Err(kept_log::kept(why, &kept_log::of_verifier(&log), &log))),
            Answer::Failed { why, .. } => Ok(Err(why)),
            other => Err(self.unexpected(what, &other)),
        }
    }

    /// Asks, and waits for the answer.
    pub(super) fn ask(&mut self, what: &str, ask: &Ask) -> Result<Answer, LabError> {
        self.put(what, ask)?;
        self.answer(what, Duration::ZERO)
    }

    /// Asks; the answer is waited for later.
    pub(super) fn put(&mut self, what: &str, ask: &Ask) -> Result<(), LabError> {
        let mut line = serde_json::to_string(ask).expect("a request is plain data");
        line.push('\n');
        say(&self.requests, &line).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => self.closed(what),
            _ => self.ended(what, &error.to_string()),
        })
    }

    /// Waits for the answer to what takes some time by itself.
    pub(super) fn answer(&mut self, what: &str, length: Duration) -> Result<Answer, LabError> {
        let line = self.line(what, PATIENCE + length)?;
        match self.read(what, &line)? {
            Answer::Failed { why, .. } => Err(self.failed(what, &why)),
            answer => Ok(answer),
        }
    }

    fn read(&self, what: &str, line: &str) -> Result<Answer, LabError> {
        serde_json::from_str(line)
            .map_err(|error| self.failed(what, &format!("{:?} is no answer: {error}", start(line))))
    }

    fn line(&mut self, what: &str, patience: Duration) -> Result<String, LabError> {
        match self.answers.recv_timeout(patience) {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(error)) => Err(self.ended(what, &error)),
            Err(RecvTimeoutError::Disconnected) => Err(self.closed(what)),
            Err(RecvTimeoutError::Timeout) => {
                Err(self.failed(what, &format!("no answer in {} s", patience.as_secs())))
            }
        }
    }

    /// That nothing leads to the process any more, with its last words or those of ssh.
    fn closed(&mut self, what: &str) -> LabError {
        LabError::RemoteClosed {
            host: self.connection.host().to_owned(),
            what: what.to_owned(),
            said: match &*killed(&mut self.child) {
                "" => String::new(),
                said => format!(": {}", start(said)),
            },
        }
    }

    /// What a process that is gone left as its last words.
    fn ended(&mut self, what: &str, why: &str) -> LabError {
        let why = match &*killed(&mut self.child) {
            "" => why.to_owned(),
            said => format!("{why}: {said}"),
        };
        self.failed(what, &why)
    }

    fn failed(&self, what: &str, why: &str) -> LabError {
        LabError::RemoteProcess {
            host: self.connection.host().to_owned(),
            what: what.to_owned(),
            why: start(why).into_owned(),
        }
    }

    pub(super) fn unexpected(&self, what: &str, answer: &Answer) -> LabError {
        self.failed(what, &format!("an answer to something else: {answer:?}"))
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        // Its input ends with ssh, and it with its input.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells a process now and then that its run lives, by lines without a request, for as long as what is returned.
fn give_signs_of_life(requests: &Arc<Mutex<ChildStdin>>) -> Result<Sender<()>, LabError> {
    let (alive, end) = channel();
    let requests = Arc::clone(requests);
    fwdlab_sys::start_thread(move || {
        while end.recv_timeout(BETWEEN_SIGNS_OF_LIFE) == Err(RecvTimeoutError::Timeout) {
            // Whoever asks next learns why.
            if say(&requests, "\n").is_err() {
                break;
            }
        }
    })?;
    Ok(alive)
}

fn say(requests: &Mutex<ChildStdin>, line: &str) -> io::Result<()> {
    let mut requests = requests.lock().unwrap_or_else(PoisonError::into_inner);
    requests.write_all(line.as_bytes())?;
    requests.flush()
}

/// Reads answers line by line, so that they can be waited for only so long.
fn read(output: ChildStdout) -> Result<Receiver<Result<String, String>>, LabError> {
    let (sender, answers) = sync_channel(ANSWERS_MAX);
    fwdlab_sys::start_thread(move || {
        for line in lines(BufReader::new(output)) {
            if sender
                .send(line.map_err(|error| error.to_string()))
                .is_err()
            {
                break;
            }
        }
    })?;
    Ok(answers)
}

/// A program without the information for its debugging, which is most of one that cargo builds; none where its form is
/// not known.
fn without_debugging(program: &[u8]) -> Option<Vec<u8>> {
    let mut builder = Builder::read(program).ok()?;
    for section in &mut builder.sections {
        section.delete = section.name.starts_with(b".debug_");
    }
    builder.delete_orphans();
    let mut bytes = Vec::new();
    builder.write(&mut bytes).ok()?;
    Some(bytes)
}

fn now_ms() -> u128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_millis()
}

/// A file without a name that is read from its begin.
fn as_file(bytes: &[u8]) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// Brings the program to the host, where it lies under the name of its content, and tells where.
pub(super) fn bring(connection: &Connection, program: Option<&Path>) -> Result<String, LabError> {
    // The one that runs, though another may lie where it was started from: who builds a new one stops no run.
    let path = program.map_or_else(|| PathBuf::from("/proc/self/exe"), Path::to_owned);
    let program_file = Input::file(&path, PROGRAM_BYTES_MAX).bytes();
    let bytes = program_file.map_err(|error| LabError::file("reading", &path, error))?;
    let home = connection.run(&["sh", "-c", "echo \"$HOME\""], "")?;
    let folder = format!("{}/{FOLDER}", home.trim_end());
    let place = format!("{folder}/fwdlab-{}", &fwdlab_model::sha256(&bytes)[..16]);
    let version = || connection.run(&[&place, "--version"], "");
    if connection.run(&["test", "-x", &place], "").is_err() {
        // Written beside its place and put there whole: what is there under its name is all of it.
        let part = format!("{place}.{PART}{}-{}", std::process::id(), now_ms());
        let bytes = without_debugging(&bytes).unwrap_or(bytes);
        let input = as_file(&bytes).map_err(|error| LabError::file("copying", &path, error))?;
        let length = bytes.len().to_string();
        connection.run(&["sh", "-c", MAKE_ROOM, &folder], "")?;
        let written = connection.run_with_file(&["sh", "-c", WRITE, &place, &part, &length], input);
        if written.is_err() {
            // Where the connection broke, nobody has seen it fail there.
            let _ = connection.run(&["rm", "-f", &part], "");
        }
        written?;
    }
    version().map_err(|error| {
        connection.wrong(format!(
            "{} does not run there ({error}); give that host's table of the lab file a `program` that does: \
             RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --target x86_64-unknown-linux-gnu \
             makes one that needs nothing of the host",
            program.map_or("this program".to_owned(), |path| {
                format!("the program {}", path.display())
            })
        ))
    })?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_program_runs_without_the_information_for_its_debugging() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        let stripped = without_debugging(&own).unwrap();
        assert!(stripped.len() < own.len() / 2, "{}", stripped.len());
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("stripped"), &stripped).unwrap();
        // What this process has written may be open in what another test starts, and then cannot be run.
        let script = "cp stripped program && chmod 700 program && exec ./program --list";
        let output = Command::new("sh")
            .args(["-c", script])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let tests = String::from_utf8(output.stdout).unwrap();
        assert!(
            tests.contains("a_program_runs_without"),
            "{}",
            output.status
        );
    }

    #[test]
    fn a_program_is_put_in_its_place_whole_or_not_at_all() {
        testkit::require_tool!("find");
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let script = |script: &str, arguments: &[&str], input: &str| {
            let words = ["sh", "-c", script];
            let words: Vec<&str> = words.iter().chain(arguments).copied().collect();
            crate::program::run(&words, input)
        };
        let [program, part] = ["fwdlab-1", "fwdlab-1.part-2-3"].map(path);
        // One byte is missing where the connection has broken.
        assert!(script(WRITE, &[&program, &part, "5"], "prog").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        script(WRITE, &[&program, &part, "4"], "prog").unwrap();
        assert_eq!(fs::read_to_string(&program).unwrap(), "prog");
        // Of others that are brought, only one stays that may still be written.
        for name in ["fwdlab-2.part-1-1", "fwdlab-2.part-1-2"] {
            fs::write(path(name), "").unwrap();
        }
        let old = path("fwdlab-2.part-1-1");
        crate::program::run(&["touch", "-d", "2 hours ago", &old], "").unwrap();
        script(MAKE_ROOM, &[folder.path().to_str().unwrap()], "").unwrap();
        let left = fs::read_dir(folder.path()).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["fwdlab-2.part-1-2"]);
    }

    #[test]
    fn what_is_no_program_of_a_known_form_is_left_as_it_is() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        for program in [&b"#!/bin/sh\n"[..], b"", &own[..64], &own[..own.len() / 2]] {
            assert_eq!(without_debugging(program), None);
        }
    }
}
