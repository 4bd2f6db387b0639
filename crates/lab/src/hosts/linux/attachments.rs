//! What is attached to a Linux DUT's ports. A fwdlab process on the DUT attaches programs. XDP programs and tcx links
//! end with that process; tc filters stay, and the journal removes them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::DutHost;

use crate::counters::Drops;
use crate::hosts::dut::OnHost;
use crate::hosts::process::AgentProcess;
use crate::hosts::protocol::{Answer, Ask, HELD_MAX};
use crate::hosts::ssh::Connection;
use crate::hosts::transport::Abilities;
use crate::mechanism::program::{Attachment, Hook, Program};
use crate::mechanism::xdp::{link_of, name_of};
use crate::{Asks, LabError};

/// What holds programs on the ports, from when a variant first asks for one.
#[derive(Default)]
pub(in crate::hosts) struct Attachments {
    process: Option<AgentProcess>,
    /// What was attached; what is not there was only loaded.
    standing: BTreeMap<Hook, Program>,
    /// The hooks for which a program was loaded.
    loaded: BTreeSet<Hook>,
}

impl Attachments {
    /// Has the DUT's kernel take a program, and puts it on no port.
    ///
    /// # Errors
    /// As of [`attach`](Abilities::attach).
    pub(in crate::hosts) fn load(
        &mut self,
        connection: &Rc<Connection>,
        of: &DutHost,
        program: Program,
    ) -> Result<(), LabError> {
        let hook = program.hook();
        let ask = Ask::Attach {
            program,
            interfaces: Vec::new(),
        };
        self.done(connection, of, hook, &ask)?;
        self.loaded.insert(hook);
        Ok(())
    }

    fn done(
        &mut self,
        connection: &Rc<Connection>,
        of: &DutHost,
        hook: Hook,
        ask: &Ask,
    ) -> Result<(), LabError> {
        let process = match &mut self.process {
            Some(process) => process,
            none => none.insert(AgentProcess::start(connection, of.program.as_deref())?),
        };
        let what = hook.what();
        let done = process.done_or_refused(what, ask)?;
        done.map_err(|why| connection.wrong(format!("{what}: {why}")))
    }

    fn attached(&mut self, hook: Hook) -> Result<Option<(Option<u32>, Drops)>, LabError> {
        let Some(process) = self
            .process
            .as_mut()
            .filter(|_| self.loaded.contains(&hook))
        else {
            return Ok(None);
        };
        match process.ask(hook.what(), &Ask::Attached { hook })? {
            Answer::Attached { program, drops } => Ok(Some((program, drops))),
            other => Err(process.unexpected(hook.what(), &other)),
        }
    }
}

impl Abilities for Attachments {
    fn not_attachable(
        &mut self,
        host: &OnHost,
        attachment: &Attachment,
        asks: Asks,
    ) -> Result<Option<String>, LabError> {
        let Some(program) = attachment.program.clone() else {
            return Ok(None);
        };
        let tried = match asks {
            Asks::Run if attachment.hook.is_tried() => self.attach(host, attachment).map(|_| ()),
            Asks::Run | Asks::Plan => self.load(&host.connection, &host.of, program),
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

    fn attach(&mut self, host: &OnHost, attachment: &Attachment) -> Result<bool, LabError> {
        let hook = attachment.hook;
        if attachment.is_done(self.standing.get(&hook)) {
            return Ok(false);
        }
        let ask = match &attachment.program {
            Some(program) => Ask::Attach {
                program: program.clone(),
                interfaces: attachment.ports.clone(),
            },
            None => Ask::Detach { hook },
        };
        // What stands after an attempt that failed is not known.
        self.standing.remove(&hook);
        self.done(&host.connection, &host.of, hook, &ask)?;
        if let Some(program) = &attachment.program {
            self.standing.insert(hook, program.clone());
            self.loaded.insert(hook);
        }
        Ok(true)
    }

    fn attached(&mut self, hook: Hook) -> Result<Option<u32>, LabError> {
        Ok(self.attached(hook)?.and_then(|(number, _)| number))
    }

    fn drops(&mut self) -> Result<Drops, LabError> {
        let mut drops = Drops::new();
        for hook in self.loaded.clone() {
            let attached = self.attached(hook)?;
            drops.extend(attached.into_iter().flat_map(|(_, drops)| drops));
        }
        Ok(drops)
    }

    fn release(&mut self) -> Result<(), LabError> {
        if let Some(process) = &mut self.process {
            while let Some((&hook, _)) = self.standing.first_key_value() {
                process.done(hook.what(), &Ask::Detach { hook })?;
                self.standing.remove(&hook);
            }
        }
        Ok(())
    }

    fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Waits until a process before this one has taken its programs off a DUT's ports: one whose connection was lost finds
/// that out by itself. What is not gone then is its owner's.
///
/// # Errors
/// Those of the connection.
pub(super) fn await_no_program(
    connection: &Connection,
    of: &DutHost,
    names: &BTreeSet<String>,
) -> Result<(), LabError> {
    let start = Instant::now();
    let ports = [&of.interface_in, &of.interface_out];
    let questions = ports.map(|interface| link_of(interface));
    loop {
        let answers = connection.run_all(&questions)?;
        let links = answers.iter().flatten();
        let mut there = links.filter_map(|link| name_of(link));
        if !there.any(|name| names.contains(name)) || start.elapsed() > HELD_MAX {
            return Ok(());
        }
        sleep(Duration::from_secs(1));
    }
}
