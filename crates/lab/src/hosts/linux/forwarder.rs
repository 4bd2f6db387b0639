//! The XDP forwarder on a Linux DUT's ports. It is a process of fwdlab's own there that holds it, so that it goes with
//! the connection, and never outlives a run.

use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{DutHost, XdpProgram};

use crate::hosts::dut::OnHost;
use crate::hosts::process::AgentProcess;
use crate::hosts::protocol::{Answer, Ask, HELD_MAX};
use crate::hosts::settings::Abilities;
use crate::hosts::ssh::Connection;
use crate::mechanism::xdp::link_of;
use crate::{Asks, LabError};

const WHAT: &str = "forwarding by XDP";

/// What holds the forwarder, from when a variant first asks for it.
#[derive(Default)]
pub(in crate::hosts) struct Forwarder {
    process: Option<AgentProcess>,
    /// Whether it is on the ports.
    is_attached: bool,
}

impl Forwarder {
    /// Has the DUT's kernel take the forwarder, and puts it on no port.
    ///
    /// # Errors
    /// As of [`attach`](Abilities::attach).
    pub(in crate::hosts) fn load(
        &mut self,
        connection: &Rc<Connection>,
        of: &DutHost,
    ) -> Result<(), LabError> {
        let interfaces = Vec::new();
        self.done(connection, of, &Ask::Forward { interfaces })
    }

    fn done(
        &mut self,
        connection: &Rc<Connection>,
        of: &DutHost,
        ask: &Ask,
    ) -> Result<(), LabError> {
        let process = match &mut self.process {
            Some(process) => process,
            none => none.insert(AgentProcess::start(connection, of.program.as_deref())?),
        };
        let done = process.done_or_refused(WHAT, ask)?;
        done.map_err(|why| LabError::Host {
            host: connection.host().to_owned(),
            why: format!("{WHAT}: {why}"),
        })
    }
}

impl Abilities for Forwarder {
    /// Of the drivers only trying tells.
    fn not_attachable(
        &mut self,
        host: &OnHost,
        program: XdpProgram,
        asks: Asks,
    ) -> Result<Option<String>, LabError> {
        let tried = match asks {
            Asks::Plan => self.load(&host.connection, &host.of),
            Asks::Run => self.attach(host, program).map(|_| ()),
        };
        match tried {
            Err(LabError::Host { why, .. }) => Ok(Some(why)),
            tried => {
                tried?;
                self.release()?;
                Ok(None)
            }
        }
    }

    /// On both ports: drivers of many cards send what is redirected to them only where they have a program themselves.
    fn attach(&mut self, host: &OnHost, program: XdpProgram) -> Result<bool, LabError> {
        let wanted = program == XdpProgram::Fib;
        if wanted == self.is_attached {
            return Ok(false);
        }
        let of = &host.of;
        let ask = if wanted {
            Ask::Forward {
                interfaces: vec![of.interface_in.clone(), of.interface_out.clone()],
            }
        } else {
            Ask::StopForwarding
        };
        self.done(&host.connection, of, &ask)?;
        self.is_attached = wanted;
        Ok(true)
    }

    fn attached(&mut self, program: XdpProgram) -> Result<Option<u32>, LabError> {
        match (program, &mut self.process) {
            (XdpProgram::Fib, Some(process)) => Ok(Some(forwarded(process)?.program)),
            _ => Ok(None),
        }
    }

    fn dropped_frames(&mut self) -> Result<Option<u64>, LabError> {
        let process = self.process.as_mut();
        process
            .map(|process| Ok(forwarded(process)?.dropped_frames))
            .transpose()
    }

    fn release(&mut self) -> Result<(), LabError> {
        match &mut self.process {
            Some(process) if self.is_attached => {
                process.done(WHAT, &Ask::StopForwarding)?;
                self.is_attached = false;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn forget(&mut self) {
        self.process = None;
        self.is_attached = false;
    }
}

/// Waits until a process before this one has taken the forwarder off a DUT's ports: one whose connection was lost finds
/// that out by itself. What is not gone then is its owner's.
///
/// # Errors
/// Those of the connection.
pub(super) fn await_no_forwarder(connection: &Connection, of: &DutHost) -> Result<(), LabError> {
    let start = Instant::now();
    let ports = [&of.interface_in, &of.interface_out];
    let questions = ports.map(|interface| link_of(interface));
    loop {
        let answers = connection.run_all(&questions)?;
        let mut links = answers.iter().flatten();
        let is_there = links.any(|link| {
            let behind = link.split_once("prog/xdp");
            behind.is_some_and(|(_, program)| program.contains(" name forward "))
        });
        if !is_there || start.elapsed() > HELD_MAX {
            return Ok(());
        }
        sleep(Duration::from_secs(1));
    }
}

/// The forwarder, as its process tells of it.
struct Forwarded {
    program: u32,
    dropped_frames: u64,
}

fn forwarded(process: &mut AgentProcess) -> Result<Forwarded, LabError> {
    match process.ask(WHAT, &Ask::Forwarded)? {
        Answer::Forwarded {
            program,
            dropped_frames,
        } => Ok(Forwarded {
            program,
            dropped_frames,
        }),
        other => Err(process.unexpected(WHAT, &other)),
    }
}
