//! `fwdlab watch`: a run as it goes on, seen from another terminal.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_archive::holder;
use fwdlab_report::{Frame, Reader, RunState};
use fwdlab_sys::Interrupts;

use crate::args::NamedArguments;
use crate::exit::{Code, DONE, GOAL_MISSED, INTERRUPTED};
use crate::live::Seen;
use crate::output;
use crate::progress::block_line;
use crate::results;
use crate::screen::Screen;

/// How often is looked for something new.
const LOOK: Duration = Duration::from_secs(1);
/// How soon a wish to stop is heard.
const HEAR: Duration = Duration::from_millis(50);

pub(crate) fn watch(arguments: &NamedArguments) -> anyhow::Result<Code> {
    let directory = results::find_run(arguments)?;
    let interrupts = fwdlab_sys::watch_interrupts()?;
    match Screen::on_stdout() {
        Some(screen) => {
            let code = follow(&directory, interrupts, |seen, state| {
                let lines = seen
                    .view
                    .lines(&seen.moment(state), &screen.frame(Reader::Watch));
                screen.draw(&lines);
                Ok(true)
            });
            screen.leave();
            code
        }
        None => {
            let mut lines = Lines { blocks: 0 };
            follow(&directory, interrupts, |seen, state| {
                lines.tell(seen, state)
            })
        }
    }
}

/// Looks at a run until it ends, `show` says that nobody looks any more, or the user does.
fn follow(
    directory: &Path,
    interrupts: Interrupts,
    mut show: impl FnMut(&Seen, RunState) -> anyhow::Result<bool>,
) -> anyhow::Result<Code> {
    let mut seen: Option<Seen> = None;
    loop {
        // Asked before the records are read, so that a run that ends meanwhile is not taken for dead.
        let held_by = holder(directory);
        let is_new = !seen.as_ref().is_some_and(Seen::is_current);
        let now = match seen.take() {
            Some(seen) if !is_new => seen,
            _ => Seen::read(directory)?,
        };
        let now = seen.insert(now);
        let state = now.state(held_by);
        if state == RunState::Running && is_new {
            now.stay_off_the_load_cpu();
        }
        if !show(now, state)? {
            return Ok(DONE);
        }
        match state {
            RunState::Running => {}
            RunState::Finished => return Ok(DONE),
            RunState::Stopped | RunState::Died => return Ok(GOAL_MISSED),
        }
        let looked = Instant::now();
        while looked.elapsed() < LOOK {
            if interrupts.requests() > 0 {
                return Ok(INTERRUPTED);
            }
            sleep(HEAR);
        }
    }
}

/// A line a block, where lines cannot be drawn again.
struct Lines {
    /// Attempts at blocks that were told.
    blocks: usize,
}

impl Lines {
    /// Whether anybody reads.
    fn tell(&mut self, seen: &Seen, state: RunState) -> anyhow::Result<bool> {
        let planned = seen.loaded.plan.blocks.len();
        for attempt in seen.loaded.attempts.iter().skip(self.blocks) {
            let text = block_line(&attempt.record, planned, &attempt.trials);
            if !output::line(&text)? {
                return Ok(false);
            }
        }
        self.blocks = seen.loaded.attempts.len();
        if state == RunState::Running {
            return Ok(true);
        }
        // How it ended, and what came of it.
        let frame = Frame {
            width: output::terminal_columns(),
            rows_max: None,
            colour: output::stdout_takes_colour(),
            reader: Reader::Watch,
        };
        for line in seen.view.lines(&seen.moment(state), &frame) {
            if !output::line(&line)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
