//! `fwdlab ministat`.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};

use fwdlab_stats::ministat::{Layout, Surroundings, run, terminal_plot_width};
use fwdlab_sys::{Bounded, Input};

use crate::args::MinistatArguments;
use crate::dataset::BYTES_MAX;
use crate::exit::{Code, DONE};
use crate::output;

pub(crate) fn ministat(arguments: &MinistatArguments) -> anyhow::Result<Code> {
    let plot_width = if console::Term::stdout().is_term() {
        let columns = env::var("COLUMNS").ok();
        terminal_plot_width(columns.as_deref(), Some(output::terminal_columns()))
    } else {
        Layout::default().plot_width
    };
    let mut open = |name: &OsStr| -> io::Result<Box<dyn Read>> {
        Ok(Box::new(
            Input::file_or_stream(name.as_ref(), BYTES_MAX).open()?,
        ))
    };
    let surroundings = Surroundings {
        open: &mut open,
        stdin: &mut Bounded::new(io::stdin().lock(), BYTES_MAX),
        stdout: &mut io::stdout().lock(),
        stderr: &mut io::stderr().lock(),
        layout: Layout {
            plot_width,
            dialect: arguments.dialect,
            ..Layout::default()
        },
    };
    let own = &arguments.own;
    let code = output::unless_nobody_reads(run(own, surroundings).map(Code))?;
    // Behind the first of ministat's own options and files it is taken for one of them.
    let is_dialect = |argument: &OsString| {
        let name = argument
            .as_encoded_bytes()
            .split(|byte| *byte == b'=')
            .next();
        name == Some(b"--dialect")
    };
    if code != DONE && own.iter().any(is_dialect) {
        output::tell(
            "error: --dialect: behind ministat's own options and files it is taken for one of them; \
             give it first: fwdlab ministat --dialect NAME ...",
        );
    }
    Ok(code)
}
