//! `fwdlab agent` and `fwdlab stacks`: processes on the hosts of a lab, started over ssh by the run that asks.

use std::io::{self, BufReader};

use anyhow::Context as _;
use fwdlab_lab::StackWatch;

use crate::args::StacksArguments;
use crate::exit::{Code, DONE};

pub(crate) fn agent() -> anyhow::Result<Code> {
    let input = BufReader::new(io::stdin());
    fwdlab_lab::serve_agent(input, &mut io::stdout()).context("serving a run elsewhere")?;
    Ok(DONE)
}

pub(crate) fn stacks(arguments: &StacksArguments) -> anyhow::Result<Code> {
    let of = StackWatch {
        interface: arguments.interface.clone(),
        load_frames_min: arguments.load_frames,
        settle_ms: arguments.settle_ms,
        length_ms: arguments.length_ms,
        frequency_hz: arguments.frequency,
    };
    fwdlab_lab::serve_stacks(&of, &mut io::stdout()).context("sampling stacks")?;
    Ok(DONE)
}
