//! Lines on a terminal that are drawn again in the same place.

use console::Term;
use fwdlab_report::{Frame, Reader, inert};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// How often a second is drawn at most.
const DRAWS_HZ: u8 = 4;

/// A place at the end of a terminal's text.
pub(crate) struct Screen {
    bar: ProgressBar,
    terminal: Term,
    colour: bool,
}

impl Screen {
    /// One on standard error; none where that is no terminal on which lines can be drawn again.
    pub(crate) fn on_stderr() -> Option<Self> {
        let target = ProgressDrawTarget::stderr_with_hz(DRAWS_HZ);
        let colour = output::stderr_takes_colour();
        output::stderr_moves().then(|| Self::new(Term::stderr(), target, colour))
    }

    /// One on standard output, likewise.
    pub(crate) fn on_stdout() -> Option<Self> {
        let target = ProgressDrawTarget::stdout_with_hz(DRAWS_HZ);
        let colour = output::stdout_takes_colour();
        output::stdout_moves().then(|| Self::new(Term::stdout(), target, colour))
    }

    fn new(terminal: Term, target: ProgressDrawTarget, colour: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is fixed"));
        Self {
            bar,
            terminal,
            colour,
        }
    }

    /// What a view has to fit into now: a terminal can change its size. Its last row stays free for the
    /// cursor.
    pub(crate) fn frame(&self, reader: Reader) -> Frame {
        let (rows, columns) = self.terminal.size_checked().unwrap_or((24, 80));
        Frame {
            width: usize::from(columns).max(1),
            rows_max: Some(usize::from(rows).saturating_sub(1).max(1)),
            colour: self.colour,
            reader,
        }
    }

    /// Draws the lines over those that were drawn before.
    pub(crate) fn draw(&self, lines: &[String]) {
        let text = inert(&lines.join("\n"), self.colour).into_owned();
        self.bar.set_message(text);
        self.bar.tick();
    }

    /// A line above them.
    pub(crate) fn say(&self, text: &str) {
        self.bar.println(inert(text, self.colour));
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Leaves the lines that were drawn last where they are.
    pub(crate) fn leave(&self) {
        self.bar.abandon();
    }
}
