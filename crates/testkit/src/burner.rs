//! A process that takes CPU time from others: a test program that starts itself again under another name.
#![allow(
    clippy::print_stdout,
    reason = "that is how a burner answers who started it"
)]

use std::env;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Set for a burner: the CPU, and what it burns.
const ASKED: &str = "FWDLAB_TEST_BURNER";

/// What a burner asks for.
#[derive(Clone, Copy, Debug)]
pub enum Burn {
    /// A part of each so long turn, for so many turns.
    Part(f64, Duration, u32),
    /// All of the time, or nothing, by turns of random lengths up to this, until it is ended; from a seed.
    Spells(Duration, u64),
}

/// A process that burns CPU time.
#[derive(Debug)]
pub struct Burner {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Burner {
    /// Starts the calling test program at a path, whose last part is the burner's name, to run a test that calls
    /// [`burn_if_asked`] first. It waits for [`go`](Self::go).
    ///
    /// # Panics
    /// Where it cannot be started.
    #[must_use]
    pub fn start(program: &Path, test: &str, cpu: u32, burn: Burn) -> Self {
        if !program.exists() {
            let own = env::current_exe().expect("this program has a path");
            symlink(own, program).expect("a link can be made");
        }
        let burn = match burn {
            Burn::Part(part, turn, turns) => format!("part {part} {} {turns}", turn.as_micros()),
            Burn::Spells(longest, seed) => format!("spells {} {seed}", longest.as_micros()),
        };
        let mut child = Command::new(program)
            .args(["--exact", test, "--nocapture", "--test-threads", "1"])
            .env(ASKED, format!("{cpu} {burn}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started again");
        let output = child.stdout.take().expect("it is piped");
        let mut burner = Self {
            child,
            output: BufReader::new(output),
        };
        burner.number_behind("ready");
        burner
    }

    /// Lets it burn.
    ///
    /// # Panics
    /// Where it has ended.
    pub fn go(&mut self) {
        let mut input = self.child.stdin.as_ref().expect("it is piped");
        input.write_all(b"go\n").expect("it reads");
    }

    /// Waits until it has done, and tells how much CPU time it got.
    ///
    /// # Panics
    /// Where it ends without a word.
    pub fn used(&mut self) -> Duration {
        Duration::from_secs_f64(self.number_behind("used"))
    }

    fn number_behind(&mut self, word: &str) -> f64 {
        let mut line = String::new();
        while self.output.read_line(&mut line).expect("it writes text") > 0 {
            if let Some((_, number)) = line.split_once(word) {
                return number.trim().parse().expect("a number is behind the word");
            }
            line.clear();
        }
        panic!("the burner ended");
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Burns where this process was started for it: then the calling test has nothing else to do.
///
/// `pin` keeps the calling thread on a CPU, and `used` tells its CPU time.
///
/// # Panics
/// Where it was asked for what it does not understand.
#[must_use]
pub fn burn_if_asked(pin: impl Fn(u32), used: impl Fn() -> Duration) -> bool {
    let Ok(asked) = env::var(ASKED) else {
        return false;
    };
    let words: Vec<&str> = asked.split(' ').collect();
    let micros = |word: &str| Duration::from_micros(word.parse().expect("a whole number"));
    pin(words[0].parse().expect("a CPU"));
    println!("ready 0");
    let _ = io::stdin().read_line(&mut String::new());
    let begun = used();
    match words[1..] {
        ["part", part, turn, turns] => {
            let (part, turn): (f64, _) = (part.parse().expect("a part"), micros(turn));
            for _ in 0..turns.parse().expect("a whole number") {
                let (start, before) = (Instant::now(), used());
                while used() - before < turn.mul_f64(part) {
                    std::hint::spin_loop();
                }
                sleep(turn.saturating_sub(start.elapsed()));
            }
        }
        ["spells", longest, seed] => {
            let (longest, mut state): (_, u64) =
                (micros(longest), seed.parse().expect("a whole number"));
            loop {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let length = longest.mul_f64(f64::from((state >> 33) as u32) / 2.0_f64.powi(31));
                let start = Instant::now();
                if state >> 63 == 0 {
                    sleep(length);
                }
                while start.elapsed() < length {
                    std::hint::spin_loop();
                }
            }
        }
        _ => panic!("{asked}"),
    }
    println!("used {}", (used() - begun).as_secs_f64());
    let _ = io::stdin().read_line(&mut String::new());
    true
}
