//! Finds how two hosts are cabled, by setting ports down and seeing whose links drop.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::System;
use fwdlab_sys::Interrupts;

use crate::cabling::{Cabling, End, HostFacts, Layout, Search, Side};
use crate::hosts::SurveyedHost;
use crate::journal::Destination;
use crate::restore::{Tell, Whose, restore_all, restore_own_copies};
use crate::{LabError, MachineClaim};

/// How long a link may take to come: some cards take 4 seconds.
const LINK_UP_MAX: Duration = Duration::from_secs(15);
/// How long no link may have changed until those that are missing are taken for missing.
const LINK_SETTLES: Duration = Duration::from_secs(6);
/// How long a link may take to drop: drivers look after it every one or two seconds.
const LINK_DOWN_MAX: Duration = Duration::from_secs(5);
/// How long after a first drop others may follow that have the same cause.
const OTHERS_DROP: Duration = Duration::from_secs(1);
/// How often links are looked at.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
/// How long frames may be counted late: drivers of many cards read their counters once in two seconds.
const COUNTED_MAX: Duration = Duration::from_secs(3);
/// Why two names of one machine are refused.
const SAME: &str = "the DUT and the tester are the same machine; name two hosts, or measure on this machine alone with \
                    labs/netns.toml";

/// Two hosts whose cables are looked for.
pub struct Survey {
    dut: SurveyedHost,
    tester: SurveyedHost,
    /// Asked for once ports are set down.
    interrupts: Option<Interrupts>,
    _claims: [MachineClaim; 2],
}

impl Survey {
    /// Claims both, logs in to them, and puts back what killed runs have left there, which is passed to `tell`; changes
    /// nothing else.
    ///
    /// # Errors
    /// `MachineTaken` where a run of this machine's has one of them for its DUT; `Ssh`, `Host` where one is none that a
    /// lab can be made of, or both are one machine; `NotRestored`.
    pub fn open(
        [dut, tester]: [&str; 2],
        ssh_config: Option<PathBuf>,
        state_directory: &Path,
        tell: &mut Tell<'_>,
    ) -> Result<Self, LabError> {
        if dut == tester {
            return Err(LabError::Host {
                host: tester.to_owned(),
                why: SAME.to_owned(),
            });
        }
        let claims = [MachineClaim::of_host(dut)?, MachineClaim::of_host(tester)?];
        restore_all(state_directory, Whose::Hosts(&[dut, tester]), tell)?;
        let open = |host: &str, side| {
            let destination = Destination {
                host: host.to_owned(),
                config: ssh_config.clone(),
            };
            SurveyedHost::open(destination, side, state_directory)
        };
        let survey = Self {
            dut: open(dut, Side::Dut)?,
            tester: open(tester, Side::Tester)?,
            interrupts: None,
            _claims: claims,
        };
        let (of_dut, of_tester) = (&survey.dut, &survey.tester);
        if of_dut.facts.is_machine_of(&of_tester.facts) {
            return Err(of_tester.connection.wrong(SAME.to_owned()));
        }
        for host in [of_dut, of_tester] {
            restore_own_copies(&host.connection, state_directory, tell)?;
        }
        Ok(survey)
    }

    /// The DUT, and the tester.
    #[must_use]
    pub fn facts(&self) -> [&HostFacts; 2] {
        [&self.dut.facts, &self.tester.facts]
    }

    /// The ports that a search sets down, those that their owner has left down included.
    #[must_use]
    pub fn to_set_down(&self) -> BTreeSet<End> {
        let mut ends = BTreeSet::new();
        for side in Side::ALL {
            let ports = self.host(side).facts.ports.iter();
            let free = ports.filter(|port| port.kept.is_none());
            ends.extend(free.map(|port| End {
                side,
                port: port.name.clone(),
            }));
        }
        ends
    }

    /// Finds the cables, a line for each step, and puts all ports back.
    ///
    /// # Errors
    /// `Interrupted`, those of the connections and the journals. What could not be put back stays in the journals.
    pub fn find(
        &mut self,
        interrupts: Interrupts,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Cabling, LabError> {
        self.interrupts = Some(interrupts);
        let found = self.found(tell);
        let put_back = [self.tester.put_all_back(), self.dut.put_all_back()];
        let found = found?;
        for result in put_back {
            result?;
        }
        Ok(found)
    }

    /// Whether something is not as it was.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.dut.has_changes() || self.tester.has_changes()
    }

    fn found(&mut self, tell: &mut dyn FnMut(&str)) -> Result<Cabling, LabError> {
        let may_set = self.to_set_down();
        for end in &may_set {
            self.go_on()?;
            let host = self.host_mut(end.side);
            if host.facts.port(&end.port).is_some_and(|port| !port.is_up) {
                tell(&format!("setting up {end}, which is down"));
                host.set(&end.port, true)?;
            }
        }
        tell("waiting for links");
        let linked = self.await_links(&may_set)?;
        self.note_links()?;
        let mut search = Search::new(linked, &may_set);
        while let Some(end) = search.poll_port() {
            let dropped = self.dropped_with(&end)?;
            let names: Vec<String> = dropped.iter().map(ToString::to_string).collect();
            tell(&match &*names.join(", ") {
                "" => format!("{end} down: no link drops"),
                names => format!("{end} down: the link of {names} drops"),
            });
            search.note_dropped(end, dropped);
        }
        let [dut, tester] = self.facts();
        if !Layout::of(dut, tester, &search.cabling()).is_whole() {
            self.send_frames(&mut search, &may_set, tell)?;
        }
        Ok(search.cabling())
    }

    /// Sends frames between ports of which no link has told.
    fn send_frames(
        &mut self,
        search: &mut Search,
        may_set: &BTreeSet<End>,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), LabError> {
        let mut from = search.unknown(Side::Tester);
        from.retain(|end| may_set.contains(end));
        let to = search.unknown(Side::Dut).into_iter();
        let to: Vec<(End, String)> = to
            .filter_map(|end| {
                let port = self.dut.facts.port(&end.port)?;
                let mac = port.refused.is_none().then(|| port.mac.clone())?;
                Some((end, mac))
            })
            .collect();
        if to.is_empty() || self.tester.facts.system != System::Linux {
            return Ok(());
        }
        'ports: for end in from {
            let before = self.dut.received()?;
            let mut sent = u64::MAX;
            for (_, mac) in &to {
                self.go_on()?;
                match self.tester.send(&end.port, mac) {
                    Ok(frames) => sent = sent.min(frames),
                    Err(error @ LabError::Ssh { .. }) => return Err(error),
                    // What fwdlab's program cannot do there is no reason to tell nothing of the links.
                    Err(error) => {
                        tell(&format!("{end} sends no frames: {error}"));
                        continue 'ports;
                    }
                }
            }
            let start = Instant::now();
            let reached = loop {
                let now = self.dut.received()?;
                let is_reached = |end: &&(End, String)| {
                    let counted =
                        |all: &BTreeMap<String, u64>| all.get(&end.0.port).copied().unwrap_or(0);
                    sent > 0 && counted(&now).saturating_sub(counted(&before)) >= sent.div_ceil(2)
                };
                let reached: BTreeSet<End> = to
                    .iter()
                    .filter(is_reached)
                    .map(|(end, _)| end.clone())
                    .collect();
                if start.elapsed() > COUNTED_MAX {
                    break reached;
                }
                self.go_on()?;
                sleep(BETWEEN_LOOKS);
            };
            let names: Vec<String> = reached.iter().map(ToString::to_string).collect();
            tell(&match &*names.join(", ") {
                "" => format!("no port of the DUT receives frames of {end}"),
                names => format!("{names} receives frames of {end}"),
            });
            search.note_reached(end, reached);
        }
        Ok(())
    }

    /// The links that drop when a port is set down; it is up again, and so are they, as far as they come.
    fn dropped_with(&mut self, end: &End) -> Result<BTreeSet<End>, LabError> {
        let before = self.links()?;
        let change = self.host_mut(end.side).set(&end.port, false)?;
        let dropped = |now: &BTreeSet<End>| {
            let mut dropped: BTreeSet<End> = before.difference(now).cloned().collect();
            dropped.remove(end);
            dropped
        };
        let start = Instant::now();
        while dropped(&self.links()?).is_empty() && start.elapsed() < LINK_DOWN_MAX {
            self.go_on()?;
            sleep(BETWEEN_LOOKS);
        }
        sleep(OTHERS_DROP);
        let dropped = dropped(&self.links()?);
        self.host_mut(end.side).put_back(&change)?;
        let start = Instant::now();
        while !self.links()?.is_superset(&before) && start.elapsed() < LINK_UP_MAX {
            self.go_on()?;
            sleep(BETWEEN_LOOKS);
        }
        Ok(dropped)
    }

    /// Waits until ports have a link, or none has come for a while.
    fn await_links(&self, ports: &BTreeSet<End>) -> Result<BTreeSet<End>, LabError> {
        let start = Instant::now();
        let mut links = self.links()?;
        let mut changed = Instant::now();
        while !links.is_superset(ports)
            && changed.elapsed() < LINK_SETTLES
            && start.elapsed() < LINK_UP_MAX
        {
            self.go_on()?;
            sleep(BETWEEN_LOOKS);
            let now = self.links()?;
            if now != links {
                (links, changed) = (now, Instant::now());
            }
        }
        Ok(links)
    }

    /// Notes what ports tell of their links that had none when they were looked at first.
    fn note_links(&mut self) -> Result<(), LabError> {
        for side in Side::ALL {
            let host = self.host_mut(side);
            let now = host.ports()?;
            for port in &mut host.facts.ports {
                if let Some(now) = now.iter().find(|now| now.name == port.name) {
                    (port.has_link, port.speed_mbps) = (now.has_link, now.speed_mbps);
                }
            }
        }
        Ok(())
    }

    fn links(&self) -> Result<BTreeSet<End>, LabError> {
        let mut ends = BTreeSet::new();
        for side in Side::ALL {
            let ports = self.host(side).linked()?.into_iter();
            ends.extend(ports.map(|port| End { side, port }));
        }
        Ok(ends)
    }

    fn go_on(&self) -> Result<(), LabError> {
        match self.interrupts {
            Some(interrupts) if interrupts.requests() > 0 => Err(LabError::Interrupted),
            _ => Ok(()),
        }
    }

    fn host(&self, side: Side) -> &SurveyedHost {
        match side {
            Side::Dut => &self.dut,
            Side::Tester => &self.tester,
        }
    }

    fn host_mut(&mut self, side: Side) -> &mut SurveyedHost {
        match side {
            Side::Dut => &mut self.dut,
            Side::Tester => &mut self.tester,
        }
    }
}
