//! `ministat` as a program of its own: what `fwdlab ministat` does, for output
//! that is no terminal.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::process::ExitCode;

use fwdlab_stats::ministat::{Layout, Surroundings, run};

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let exit_code = run(
        &arguments,
        Surroundings {
            open: &mut |name| Ok(Box::new(File::open(name)?) as Box<dyn Read>),
            stdin: &mut io::stdin().lock(),
            stdout: &mut io::stdout().lock(),
            stderr: &mut io::stderr().lock(),
            layout: Layout::default(),
        },
    )?;
    Ok(ExitCode::from(exit_code))
}
