//! `fwdlab completions`.

use clap_complete::Shell;

use crate::args::Arguments;
use crate::exit::Code;
use crate::output;

pub(crate) fn completions(shell: Shell) -> anyhow::Result<Code> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::grouped(), "fwdlab", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
