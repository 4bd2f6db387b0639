//! A forwarder in user space, from its start to its end.

use std::collections::VecDeque;
use std::io::{self, Read, pipe};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{Forwarder, Ready};
use fwdlab_sys::{Descendants, NetworkNamespace};

use crate::journal::{ChangeId, Journal, NOTHING, Started, Undo};
use crate::mechanism::step::owned;
use crate::{LabError, kept_log, program};

/// How long it may take until it forwards.
const READY_MAX: Duration = Duration::from_secs(30);
/// How often a program is asked whether it does.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(100);
/// How long it may take to end once it was asked to, the program that asks it included.
const ENDING_MAX: Duration = Duration::from_secs(5);
/// How long a program that ends may be seen with its output closed.
const CLOSING_MAX: Duration = Duration::from_millis(500);
/// How often it is looked at.
const STEP: Duration = Duration::from_millis(2);
/// So much of what it prints is kept, of its beginning and of its end.
const LOG_BYTES_MAX: usize = 512 << 10;
/// One of several threads that ran for so much of their time is the one that forwards.
const FORWARDING_RATIO_MIN: f64 = 0.9;
/// Where all ran for less, none can be said to be the one that forwards; one that ran for less sleeps.
const TELLING_TIME_MIN: Duration = Duration::from_millis(1);

/// How long a thread has run, by process and thread.
pub(super) type Ran = ((u32, u32), Duration);

/// One that runs, or has ended.
pub(super) struct RunningForwarder {
    process: Child,
    /// Open, because programs that read from it end where it ends.
    _input: ChildStdin,
    printed: Printed,
    started: Descendants,
    change: ChangeId,
    level: String,
    forwarder: Forwarder,
    /// How long each of its threads had run when it was ready, by process and thread.
    ran_before: Vec<Ran>,
    /// Whether it has ended by itself.
    has_crashed: bool,
}

impl RunningForwarder {
    /// Starts one in the DUT's namespace on a CPU, and returns when it forwards.
    ///
    /// # Errors
    /// `Forwarder` where it cannot be started, ends or takes too long.
    pub(super) fn start(
        dut: &NetworkNamespace,
        journal: &mut Journal,
        (level, forwarder): (&str, &Forwarder),
        cpu: u32,
    ) -> Result<Self, LabError> {
        let started = Descendants::marked(&journal.mark());
        let change = journal.announce(
            format!("forwarder {level:?}"),
            Undo::Run {
                namespace: dut.name().to_owned(),
                arguments: owned(&NOTHING),
                started: Some(Started::of(&started)),
            },
        )?;
        let failed = |what: String| failed(level, what);
        let cannot_start = |error: io::Error| {
            failed(format!(
                "{} cannot be started: {error}",
                program::command_line(&forwarder.start)
            ))
        };
        let (words, (output, writer)) = (&forwarder.start, pipe().map_err(cannot_start)?);
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            // A multi-program dispatcher of libxdp would be pinned where it outlives the namespace, and nothing else is on
            // these ports.
            .env("LIBXDP_SKIP_DISPATCHER", "1")
            .stdin(Stdio::piped())
            .stdout(writer.try_clone().map_err(cannot_start)?)
            .stderr(writer)
            // A Ctrl-C at the terminal is for this process alone.
            .process_group(0);
        started.begin_with(&mut command);
        fwdlab_sys::start_on(&mut command, cpu)?;
        dut.start_inside(&mut command)?;
        fwdlab_sys::bind_to_this_thread(&mut command);
        let mut process = command.spawn().map_err(cannot_start)?;
        // Its ends of the pipe.
        drop(command);
        let printed = Printed::read(output, forwarder)?;
        let mut running = Self {
            _input: process.stdin.take().expect("it was asked for"),
            process,
            printed,
            started,
            change,
            level: level.to_owned(),
            forwarder: forwarder.clone(),
            ran_before: Vec::new(),
            has_crashed: false,
        };
        if let Err(what) = running.await_ready(dut, READY_MAX) {
            let what = running.with_log(what);
            // What does not end stays in the journal.
            let _ = running.end(dut, journal);
            return Err(failed(what));
        }
        running.ran_before = running.run_times();
        Ok(running)
    }

    fn await_ready(&mut self, dut: &NetworkNamespace, time_max: Duration) -> Result<(), String> {
        let deadline = Instant::now() + time_max;
        let mut closed_at = None;
        let mut complaint = String::new();
        loop {
            let is_ready = match &self.forwarder.ready {
                Ready::Prints(_) => {
                    let kept = self.printed.kept();
                    if kept.is_over && closed_at.is_none() {
                        closed_at = Some(Instant::now());
                    }
                    kept.is_found
                }
                Ready::Succeeds(words) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    let process = &mut self.process;
                    let asked = dut.run(|| {
                        let mut runs = || matches!(process.try_wait(), Ok(None));
                        program::run_while(left, words, &mut runs)
                    });
                    match asked {
                        Ok(Ok(answer)) => {
                            complaint = answer.stderr;
                            answer.status.success()
                        }
                        Ok(Err(_)) | Err(_) => false,
                    }
                }
            };
            if let Some(how) = self.crashed() {
                return Err(format!("it ended before it was ready: {how}"));
            }
            if is_ready {
                return Ok(());
            }
            let is_closed = closed_at.is_some_and(|at: Instant| at.elapsed() > CLOSING_MAX);
            if is_closed || Instant::now() > deadline {
                return Err(self.not_ready(is_closed, time_max, &complaint));
            }
            sleep(match self.forwarder.ready {
                Ready::Prints(_) => STEP,
                Ready::Succeeds(_) => BETWEEN_QUESTIONS,
            });
        }
    }

    /// Why one that runs was not ready in time, and what to do.
    fn not_ready(&self, is_closed: bool, time_max: Duration, complaint: &str) -> String {
        let (seconds, said) = (time_max.as_secs(), self.said());
        match &self.forwarder.ready {
            Ready::Prints(text) if is_closed => format!(
                "it closed its output before it printed {text:?}{said}; have it print to its standard output or standard \
                 error, or let `ready` be a program that succeeds when it forwards"
            ),
            Ready::Prints(text) => format!(
                "it did not print {text:?} in {seconds} s{said}; many programs hold back what they print where no terminal \
                 reads it: start such a one with `stdbuf -oL`"
            ),
            Ready::Succeeds(words) => {
                let complaint = match complaint.is_empty() {
                    true => String::new(),
                    false => format!(": {complaint}"),
                };
                let words = program::command_line(words);
                format!("`{words}` did not succeed in {seconds} s{complaint}{said}")
            }
        }
    }

    fn has_ended(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(Some(_)))
    }

    /// What it printed last, to follow what became of it.
    fn said(&self) -> String {
        match program::last_lines(&self.printed.text()) {
            said if said.is_empty() => "; it printed nothing".to_owned(),
            said => format!("; it printed last: {said}"),
        }
    }

    /// How it has ended by itself, and what it printed last; none while it runs.
    pub(super) fn crashed(&mut self) -> Option<String> {
        let status = self.process.try_wait().ok()??;
        self.has_crashed = true;
        self.printed.await_end();
        let advice = match status.success() && !self.started.processes().is_empty() {
            true => {
                "; what it has started goes on in the background: have it stay in the foreground (VPP: `nodaemon`)"
            }
            false => "",
        };
        Some(format!("{status}{advice}{}", self.said()))
    }

    /// Proves that it runs, where its probe frames do not come as they should.
    ///
    /// # Errors
    /// `Forwarder` where it has ended.
    pub(super) fn prove_that_it_runs(&mut self) -> Result<(), LabError> {
        match self.crashed() {
            None => Ok(()),
            Some(how) => {
                let what = format!("it ended under the probe frames: {how}");
                Err(failed(&self.level, self.with_log(what)))
            }
        }
    }

    /// Leaves the CPU that forwards to the one thread that does: the one that ran nearly all of the time since the forwarder
    /// was ready. Other threads that may run there are moved to another CPU.
    ///
    /// # Errors
    /// `Forwarder` where the busiest thread may not run there, and where others that do not sleep ran there last.
    pub(super) fn keep_cpu_to_one_thread(
        &mut self,
        cpu: u32,
        others_cpu: u32,
    ) -> Result<(), LabError> {
        let since_ready = |(thread, time): Ran| {
            let mut before = self.ran_before.iter();
            let before = before.find(|(before, _)| *before == thread);
            let before = before.map_or(Duration::ZERO, |(_, time)| *time);
            (thread, time.saturating_sub(before))
        };
        let mut times: Vec<_> = self.run_times().into_iter().map(since_ready).collect();
        times.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let Some(&((_, forwarding), time)) =
            times.first().filter(|(_, time)| *time >= TELLING_TIME_MIN)
        else {
            return Ok(());
        };
        let advice = format!(
            "make it run its forwarding thread on CPU {cpu} ({{dut-cpu}} in `start`) and its other threads on CPU {others_cpu} \
             ({{load-cpu}}); with DPDK: `--lcores={{load-cpu}},{{dut-cpu}} --main-lcore={{load-cpu}}`"
        );
        if !fwdlab_sys::may_run_on(forwarding, cpu) {
            let what = format!(
                "its busiest thread may not run on CPU {cpu}, where it is to forward; {advice}"
            );
            return Err(failed(&self.level, self.with_log(what)));
        }
        let ran_there =
            |&&((process, thread), _): &&Ran| fwdlab_sys::last_cpu(process, thread) == Some(cpu);
        let others = times[1..].iter().filter(ran_there).map(|(_, time)| *time);
        if let Some(threads) = sharing(time, others) {
            let what = format!("{threads} of its threads share CPU {cpu}; {advice}");
            return Err(failed(&self.level, self.with_log(what)));
        }
        times.retain(|((_, thread), _)| fwdlab_sys::may_run_on(*thread, cpu));
        for ((_, thread), _) in times {
            let place = if thread == forwarding {
                cpu
            } else {
                others_cpu
            };
            // One that has ended meanwhile is in nobody's way.
            let _ = fwdlab_sys::pin_thread(thread, place);
        }
        Ok(())
    }

    /// How long those of its threads have run that run now or wait for their CPU.
    pub(super) fn runnable(&self) -> Vec<Ran> {
        let mut times = self.run_times();
        times.retain(|&((process, thread), _)| fwdlab_sys::is_runnable(process, thread));
        times
    }

    /// How long each of its threads has run, by process and thread.
    fn run_times(&self) -> Vec<Ran> {
        let mut times = Vec::new();
        for process in self.started.processes() {
            for thread in fwdlab_sys::threads_of(process) {
                let time = fwdlab_sys::run_time(process, thread).unwrap_or_default();
                times.push(((process, thread), time));
            }
        }
        times
    }

    /// Ends it with all that it has started.
    ///
    /// # Errors
    /// Where some of that does not end.
    pub(super) fn end(
        mut self,
        dut: &NetworkNamespace,
        journal: &mut Journal,
    ) -> Result<(), LabError> {
        let deadline = Instant::now() + ENDING_MAX;
        if !self.has_ended() {
            if let Some(words) = &self.forwarder.stop {
                let stopped = dut.run(|| program::run_among(&self.started, ENDING_MAX, words))?;
                if let Err(error) = stopped.and_then(|output| output.succeeded(words)) {
                    self.printed.note(&format!("its `stop` failed: {error}"));
                    fwdlab_sys::terminate_process_group(self.process.id())?;
                }
            } else {
                fwdlab_sys::terminate_process_group(self.process.id())?;
            }
        }
        while !self.has_ended() && Instant::now() < deadline {
            sleep(STEP);
        }
        if !self.has_ended() {
            let seconds = ENDING_MAX.as_secs();
            let what = format!("it did not end in {seconds} s, and was killed");
            self.printed.note(&what);
        }
        self.started.end()?;
        let _ = self.process.wait();
        journal.undo(&self.change)
    }

    fn with_log(&self, what: String) -> String {
        kept_log::kept(what, &self.log_name(), &self.printed.text())
    }

    fn log_name(&self) -> String {
        let of_file = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let level: String = self.level.chars().take(40).map(of_file).collect();
        // The next start is not to take the place of what a crash has left.
        let how = if self.has_crashed { "-ended" } else { "" };
        format!("forwarder-{level}{how}.log")
    }
}

impl Drop for RunningForwarder {
    fn drop(&mut self) {
        // An error in the middle of a block leaves none running; the journal has it until it is gone.
        let _ = self.started.end();
        let _ = self.process.wait();
        self.printed.await_end();
        kept_log::keep(&self.log_name(), &self.printed.text());
    }
}

/// How many threads share a CPU, on which the busiest ran for so long, and others too; none where it had the CPU nearly to
/// itself.
fn sharing(busiest: Duration, others: impl Iterator<Item = Duration>) -> Option<usize> {
    let others: Vec<Duration> = others.filter(|time| *time >= TELLING_TIME_MIN).collect();
    let all = busiest + others.iter().sum::<Duration>();
    let is_alone = busiest.as_secs_f64() >= all.as_secs_f64() * FORWARDING_RATIO_MIN;
    (!is_alone).then_some(others.len() + 1)
}

/// Whether a thread that waits for its CPU now has not run since it was waited for before.
pub(super) fn is_starved(before: &[Ran], now: &[Ran]) -> bool {
    now.iter().any(|ran| before.contains(ran))
}

fn failed(level: &str, what: String) -> LabError {
    LabError::Forwarder {
        level: level.to_owned(),
        what,
    }
}

/// What a program prints, read in a separate thread: a pipe that nobody reads would stop it.
struct Printed(Arc<Mutex<Kept>>);

/// What is kept of it.
#[derive(Default)]
struct Kept {
    front: Vec<u8>,
    back: VecDeque<u8>,
    /// Whether what is looked for was printed.
    is_found: bool,
    /// Whether nothing more comes.
    is_over: bool,
}

impl Printed {
    fn read(
        mut output: impl Read + Send + 'static,
        forwarder: &Forwarder,
    ) -> Result<Self, LabError> {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let wanted = match &forwarder.ready {
            Ready::Prints(text) => text.clone().into_bytes(),
            Ready::Succeeds(_) => Vec::new(),
        };
        let written = Arc::clone(&kept);
        fwdlab_sys::start_thread(move || {
            let mut buffer = [0; 8192];
            // What was printed last, so that a text is found that came in two parts.
            let mut last = Vec::new();
            loop {
                let read = output.read(&mut buffer);
                let mut kept = written.lock().unwrap_or_else(PoisonError::into_inner);
                let bytes = match read {
                    Ok(length) if length > 0 => &buffer[..length],
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(_) | Err(_) => {
                        kept.is_over = true;
                        return;
                    }
                };
                kept.add(bytes);
                if !wanted.is_empty() && !kept.is_found {
                    last.extend_from_slice(bytes);
                    kept.is_found = last.windows(wanted.len()).any(|part| part == wanted);
                    last.drain(..last.len().saturating_sub(wanted.len() - 1));
                }
            }
        })?;
        Ok(Self(kept))
    }

    /// Waits a little until the last of what an ended program printed was read: what it has started may go on to print.
    fn await_end(&self) {
        const STEPS_MAX: u32 = 100;
        for _ in 0..STEPS_MAX {
            if self.kept().is_over {
                return;
            }
            sleep(STEP);
        }
    }

    /// Adds a line that is fwdlab's.
    fn note(&self, line: &str) {
        self.kept().add(format!("\nfwdlab: {line}\n").as_bytes());
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that is kept, as text.
    fn text(&self) -> String {
        let mut kept = self.kept();
        let front = String::from_utf8_lossy(&kept.front).into_owned();
        let back = String::from_utf8_lossy(kept.back.make_contiguous());
        match back.is_empty() {
            true => front,
            false => format!("{front}\n[…]\n{back}"),
        }
    }
}

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        let room = LOG_BYTES_MAX - self.front.len();
        let (front, back) = bytes.split_at(room.min(bytes.len()));
        self.front.extend_from_slice(front);
        self.back.extend(back);
        let excess = self.back.len().saturating_sub(LOG_BYTES_MAX);
        self.back.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::rc::Rc;

    use super::*;
    use crate::journal::state_directory;
    use crate::netns::ThisMachine;

    #[test]
    fn threads_that_sleep_share_no_cpu() {
        let sharing = |busiest_us, others_us: &[u64]| {
            let others = others_us.iter().copied().map(Duration::from_micros);
            sharing(Duration::from_micros(busiest_us), others)
        };
        assert_eq!(sharing(1200, &[0, 300, 300, 300]), None);
        assert_eq!(sharing(1200, &[1100, 300]), Some(2));
        assert_eq!(sharing(91_000, &[5000, 5000]), None);
        assert_eq!(sharing(89_000, &[5000, 6000]), Some(3));
    }

    #[test]
    fn a_thread_that_could_run_and_did_not_is_starved() {
        let ran = |thread, ms| ((1, thread), Duration::from_millis(ms));
        let before = [ran(1, 5), ran(2, 7)];
        assert!(is_starved(&before, &[ran(1, 5)]));
        assert!(!is_starved(&before, &[ran(1, 6), ran(3, 7)]));
        assert!(!is_starved(&before, &[]));
        assert!(!is_starved(&[], &before));
    }

    /// A script of the shell that is started as a forwarder.
    fn script(start: &str, ready: Ready, stop: Option<&[&str]>) -> Forwarder {
        Forwarder {
            start: owned(&["sh", "-c", start]),
            ready,
            stop: stop.map(owned),
            forwards: fwdlab_model::Forwards::default(),
        }
    }

    #[test]
    fn how_a_forwarder_fails_to_start_or_to_end_is_said() {
        testkit::require_root!();
        testkit::require_tool!("sh", "sleep");
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), "netns", Rc::new(ThisMachine)).unwrap();
        let dut = NetworkNamespace::create("forwarder").unwrap();
        let cpu = fwdlab_sys::online_cpus().unwrap()[0];
        let on = || Ready::Prints("on".to_owned());
        let hangs = Ready::Succeeds(owned(&["sleep", "3600"]));
        for (start, ready, expected) in [
            (
                "sleep 60 >/dev/null 2>&1 & exit 0",
                on(),
                "it ended before it was ready: exit status: 0; what it has started goes on in the background: have it stay \
                 in the foreground (VPP: `nodaemon`); it printed nothing",
            ),
            (
                "echo logging elsewhere; exec sleep 60 >&- 2>&-",
                on(),
                "it closed its output before it printed \"on\"; it printed last: logging elsewhere",
            ),
            (
                "sleep 0.1; exit 3",
                hangs,
                "it ended before it was ready: exit status: 3",
            ),
        ] {
            let forwarder = script(start, ready, None);
            let started =
                RunningForwarder::start(&dut, &mut journal, ("test-fails", &forwarder), cpu);
            let error = started.err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!journal.has_open_changes());
        }

        let file = folder.path().join("left-by-stop");
        let leaves = format!(
            "sleep 60 >/dev/null 2>&1 & echo $! >{}; exit 1",
            file.display()
        );
        let forwarder = script(
            "echo on; exec sleep 60",
            on(),
            Some(&["sh", "-c", leaves.as_str()]),
        );
        let running = RunningForwarder::start(&dut, &mut journal, ("test-leaves", &forwarder), cpu);
        running.unwrap().end(&dut, &mut journal).unwrap();
        let left = fs::read_to_string(file).unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", left.trim()));
        let stat = stat.unwrap_or_default();
        // It may wait to be reaped, which init does.
        assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");

        let asks_for_more: &[&str] = &["sh", "-c", "echo no such socket >&2; exit 1"];
        for (start, stop, expected) in [
            (
                "trap 'echo asked; exit 0' TERM; echo on; while :; do sleep 0.05; done",
                asks_for_more,
                &[
                    "fwdlab: its `stop` failed: command",
                    "no such socket",
                    "asked",
                ][..],
            ),
            (
                "trap '' TERM; echo on; exec sleep 60",
                &["sleep", "3600"],
                &[
                    "fwdlab: its `stop` failed: command",
                    "it took longer than 5 s",
                    "fwdlab: it did not end in 5 s, and was killed",
                ],
            ),
        ] {
            let forwarder = script(start, on(), Some(stop));
            let running =
                RunningForwarder::start(&dut, &mut journal, ("test-ends", &forwarder), cpu);
            running.unwrap().end(&dut, &mut journal).unwrap();
            assert!(!journal.has_open_changes());
            let log = state_directory().unwrap().join("forwarder-test-ends.log");
            let log = fs::read_to_string(log).unwrap();
            for expected in expected {
                assert!(log.contains(expected), "{log}");
            }
        }
    }
}
