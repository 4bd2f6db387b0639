//! `fwdlab ministat`.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};

use fwdlab_stats::ministat::{Layout, Surroundings, run, terminal_plot_width};

use crate::exit::Code;
use crate::output;

pub(crate) fn ministat(arguments: &[OsString]) -> anyhow::Result<Code> {
    let plot_width = if console::Term::stdout().is_term() {
        let columns = env::var("COLUMNS").ok();
        terminal_plot_width(columns.as_deref(), Some(output::terminal_columns()))
    } else {
        Layout::default().plot_width
    };
    let mut open = |name: &OsStr| -> io::Result<Box<dyn Read>> { Ok(Box::new(File::open(name)?)) };
    let surroundings = Surroundings {
        open: &mut open,
        stdin: &mut io::stdin().lock(),
        stdout: &mut io::stdout().lock(),
        stderr: &mut io::stderr().lock(),
        plot_width,
    };
    output::unless_nobody_reads(run(arguments, surroundings).map(Code))
}
