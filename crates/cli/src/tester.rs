//! `fwdlab tester`: the tester's process of a lab of hosts, started over ssh by the run that asks.

use std::io::{self, BufReader};

use anyhow::Context as _;

use crate::exit::{Code, DONE};

pub(crate) fn serve() -> anyhow::Result<Code> {
    let input = BufReader::new(io::stdin());
    fwdlab_lab::serve_tester(input, &mut io::stdout()).context("serving a tester")?;
    Ok(DONE)
}
