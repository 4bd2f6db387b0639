//! One block in a lab of hosts, from its set-up to its last slice.
//!
//! The load of a slice is started when the variant is set and stopped before anything is asked of the DUT again: a
//! DUT that forwards all it can has no time for ssh, and counters are read when nothing is under way.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{
    Binding, DutReading, PlannedBlock, Resolved, Stratum, StratumOrder, Tester, TesterReading,
    Variant, VariantName, Verification, devices,
};
use fwdlab_stats::as_f64;
use fwdlab_sys::{BootTime, Interrupts};

use super::Link;
use super::boot::Booter;
use super::cables::crossed_cables;
use super::cpu_watch::CpuWatch;
use super::detached::{Detached, LOAD_FRAMES_MIN, Window};
use super::dut::{LinkSince, PortLinks, unless_refused};
use super::facts::{Facts, KnownFacts, described, difference, left};
use super::load::{
    BETWEEN_LOOKS, COUNTERS_LATE_MAX, SentLoad, Sums, account_for_not_sent, explain,
};
use super::protocol::{SinkState, Station};
use crate::LabError;
use crate::block::{Asked, BlockLog, LabEvent, MeasuredSlice, conservation};
use crate::counters::{self, Drops};
use crate::journal::{Changes, Journal};
use crate::probe::FailedProbe;
use crate::sample::Sample;
use crate::sequence::{Sequence, UnderLoad, stop_if_asked};

/// How late a program on the DUT may see the load: counters of some ports are a second old.
const LATE_MAX: Duration = Duration::from_secs(1);

/// The facts that differ between variants, by variant.
pub(super) type DifferingFacts = BTreeMap<VariantName, BTreeMap<String, String>>;

/// Everything that lives as long as a block.
pub(super) struct Measurement<'a> {
    resolved: &'a Resolved,
    link: &'a mut Link,
    changes: Changes<'a>,
    interrupts: Interrupts,
    known: &'a mut KnownFacts,
    /// What boots the DUT, where its variants need that.
    boots: Option<Boots<'a>>,
    /// How the DUT was before anything was changed, in the boot of the moment.
    before: Facts,
    generator: Station,
    sink: Station,
    /// The DUT's ports of whose link nobody knows whether it was lost under a load.
    links_unknown: BTreeSet<String>,
    log: BlockLog,
}

/// What boots the DUT, and where it stands written that it is to boot as by itself again.
pub(super) struct Boots<'a> {
    pub(super) booter: &'a mut Booter,
    pub(super) journal: &'a mut Journal,
    /// Whether variants differ in what they boot, so that every trial has a boot of its own.
    pub(super) every_trial: bool,
}

impl<'a> Measurement<'a> {
    /// Sets the DUT up for the tester's frames.
    ///
    /// # Errors
    /// Those of the connections, and what the DUT refuses.
    pub(super) fn start(
        resolved: &'a Resolved,
        link: &'a mut Link,
        journal: &'a mut Journal,
        interrupts: Interrupts,
        known: &'a mut KnownFacts,
        boots: Option<Boots<'a>>,
        on_event: &mut dyn FnMut(LabEvent<'_>),
    ) -> Result<Self, LabError> {
        let log = BlockLog::new(resolved, resolved.regime());
        let changes = Changes(journal);
        // What a broken connection had left no time to put back.
        changes.0.enter_dut(link.dut_connection.clone());
        changes.0.undo_all()?;
        let [generator, sink] = link.tester.stations()?;
        let mut measurement = Self {
            resolved,
            link,
            changes,
            interrupts,
            known,
            boots,
            before: Facts::new(),
            generator,
            sink,
            links_unknown: BTreeSet::new(),
            log,
        };
        if !measurement.boots_every_trial() {
            measurement.boot_once(on_event)?;
            measurement.set_up()?;
        }
        Ok(measurement)
    }

    /// What would have sent better, and why it does not.
    pub(super) fn refused(&self) -> &[(Tester, String)] {
        self.link.tester.refused()
    }

    /// Why nobody knows whether a link was lost under a load; none where it is known.
    pub(super) fn links_unseen(&self) -> Option<String> {
        let ports: Vec<&str> = self.links_unknown.iter().map(String::as_str).collect();
        (!ports.is_empty()).then(|| {
            format!(
                "host {}: whether the link of {} was lost under a load is not known, because its kernel's message buffer has \
                 been written full in that time; set kern.msgbufsize higher in its loader.conf, or end what fills it",
                self.link.dut_connection.host(),
                ports.join(" or ")
            )
        })
    }

    fn boots_every_trial(&self) -> bool {
        self.boots.as_ref().is_some_and(|boots| boots.every_trial)
    }

    /// Boots the DUT where something is held constant that needs it, and it does not stand booted so already.
    fn boot_once(&mut self, on_event: &mut dyn FnMut(LabEvent<'_>)) -> Result<(), LabError> {
        let (Some(boots), Some(variant)) = (&mut self.boots, self.resolved.variants.first()) else {
            return Ok(());
        };
        let choice = self.link.dut.boot_choice(variant)?;
        if boots.booter.stands(&choice, &self.link.dut.host.boot_id) {
            return Ok(());
        }
        on_event(LabEvent::Boot {
            into: choice.to_string(),
        });
        boots.booter.boot(boots.journal, &choice, self.interrupts)?;
        self.link.dut.has_booted()
    }

    /// Gives the DUT what it needs for the tester's frames.
    fn set_up(&mut self) -> Result<(), LabError> {
        let Link {
            dut,
            dut_connection,
            ..
        } = &mut *self.link;
        self.changes.0.enter_dut(dut_connection.clone());
        // What ports have agreed on is known while there is a link.
        if !self.sink.is_virtual {
            dut.await_link()?;
        }
        self.before = dut.facts()?;
        dut.set_up(
            self.changes.0,
            &self.resolved.families(),
            [&self.generator, &self.sink],
        )
    }

    /// Proves that the tester's stations are still the DUT's neighbours; nothing where it is not set up.
    fn prove_neighbours(&self) -> Result<(), LabError> {
        if self.before.is_empty() {
            return Ok(());
        }
        let families = self.resolved.families();
        (self.link.dut).prove_neighbours(&families, [&self.generator, &self.sink])
    }

    /// Boots the DUT for a trial, whatever has booted there before, and sets it up: every trial has a boot of
    /// its own. Nothing where no variant needs one.
    fn boot_for(
        &mut self,
        stratum: Stratum,
        variant: &Variant,
        on_event: &mut dyn FnMut(LabEvent<'_>),
    ) -> Result<(), LabError> {
        if self.boots_every_trial() {
            self.prove_neighbours()?;
        }
        let Some(boots) = self.boots.as_mut().filter(|boots| boots.every_trial) else {
            return Ok(());
        };
        let choice = self.link.dut.boot_choice(variant)?;
        let into = choice.to_string();
        on_event(LabEvent::Boot { into });
        // What the tester does at the other end of a cable may change what a port can do.
        self.link.tester.release()?;
        self.link.dut.release()?;
        // A boot would take it back anyway, but for what programs of the owner's have written.
        self.changes.0.undo_all()?;
        boots.booter.boot(boots.journal, &choice, self.interrupts)?;
        self.link.dut.has_booted()?;
        self.set_up()?;
        self.prove_variant(stratum, variant)?;
        self.expect(stratum, false)
    }

    /// Has the tester count what the DUT forwards, from now on.
    fn expect(&mut self, stratum: Stratum, every_frame: bool) -> Result<(), LabError> {
        let Link { dut, tester, .. } = &mut *self.link;
        tester.expect(dut.crossed_by(self.resolved, stratum), every_frame)?;
        // Many a card loses its link when a program is attached, and its other end sees it a moment later.
        if self.sink.is_virtual {
            return Ok(());
        }
        dut.await_link()
    }

    /// Proves every variant of a block with probe frames of every flow and size, where all can be had in one
    /// boot; those that cannot are proved when they have booted.
    ///
    /// # Errors
    /// `Probe` and `ReadBack` where one is not as planned.
    pub(super) fn prove(&mut self, planned: &PlannedBlock) -> Result<(), LabError> {
        if self.boots_every_trial() {
            return Ok(());
        }
        for order in &planned.strata {
            for name in order.variants() {
                stop_if_asked(self.interrupts)?;
                let variant = self.resolved.variant(name);
                let variant = variant.expect("what a plan asks for is checked first");
                self.prove_variant(order.stratum, variant)?;
            }
        }
        Ok(())
    }

    fn prove_variant(&mut self, stratum: Stratum, variant: &Variant) -> Result<(), LabError> {
        self.link.dut.apply(self.changes.0, variant)?;
        if let Some(what) = self.link.dut.moved(variant)? {
            return Err(self.link.dut_connection.wrong(what));
        }
        self.probe(stratum, variant)
    }

    fn probe(&mut self, stratum: Stratum, variant: &Variant) -> Result<(), LabError> {
        self.expect(stratum, true)?;
        let Link { dut, tester, .. } = &mut *self.link;
        let dropped_before = dut.drops(stratum.family)?;
        let (sent, seen) = tester.probe(dut.crossed_by(self.resolved, stratum))?;
        let wrong: u64 = seen.wrong_frames.values().sum();
        let flows = self.resolved.traffic(stratum).flows_in_all_directions();
        let is_right = seen.forwarded_frames == sent.offered_frames
            && sent.failed.is_none()
            && wrong == 0
            && (seen.flows_seen == flows || !tester.sees_flows());
        if is_right {
            return Ok(());
        }
        let mut kinds: Vec<String> = seen.wrong_frames.keys().cloned().collect();
        kinds.extend(sent.failed);
        if wrong == 0 && seen.flows_seen != flows && tester.sees_flows() {
            kinds.push(format!("of {flows} flows it saw {}", seen.flows_seen));
        }
        let dropped = counters::difference(&dropped_before, &dut.drops(stratum.family)?);
        let reasons = dropped
            .iter()
            .map(|(reason, frames)| format!("{reason}: {frames}"));
        let reasons = reasons.collect();
        let advice = match seen.forwarded_frames {
            // Where it cannot be found out, what failed says more.
            0 => crossed_cables(self.link, self.resolved, stratum).unwrap_or(None),
            _ => None,
        };
        let failed = FailedProbe {
            sent: sent.offered_frames,
            forwarded: seen.forwarded_frames,
            wrong,
            kinds,
            reasons,
            advice,
        };
        Err(failed.of(self.resolved, stratum, variant))
    }

    /// A load for every slice; only what happens inside slices is measured.
    ///
    /// # Errors
    /// Those of the connections, or the wish to stop now.
    pub(super) fn measure_stratum(
        &mut self,
        order: &StratumOrder,
        sequence: &mut Sequence<'_>,
    ) -> Result<(), LabError> {
        let stratum = order.stratum;
        if !self.boots_every_trial() {
            self.expect(stratum, false)?;
        }
        let mut under_load = StratumUnderLoad {
            measurement: self,
            sums: Sums::default(),
            seen: SinkState::default(),
            is_warm: false,
        };
        sequence.measure_stratum(&mut under_load, order)?;
        let StratumUnderLoad { sums, mut seen, .. } = under_load;
        if let Some(why) = sums.failed {
            self.log.note_generator_stopped(stratum, why);
        }
        if !self.boots_every_trial() {
            seen = self.link.tester.count()?;
        }
        let SinkState {
            forwarded_frames,
            foreign_frames,
            checked_frames,
            wrong_frames,
            flows_seen,
        } = seen;
        let verification = Verification {
            checked_frames,
            wrong_frames,
            flows_seen,
        };
        let conservation = conservation(
            sums.offered_frames,
            forwarded_frames,
            sums.not_transmitted_frames,
            sums.dropped,
            foreign_frames,
            verification,
        );
        // The generator is another host, whose time costs the DUT nothing.
        self.log.end_stratum(stratum, conservation, None);
        Ok(())
    }

    /// Sends the load, and counts for a while when it has settled.
    fn load(
        &mut self,
        slice: &Asked<'_>,
        settle_ms: u32,
        length_ms: u32,
    ) -> Result<SentLoad, LabError> {
        let stratum = slice.stratum;
        let Link { dut, tester, .. } = &mut *self.link;
        let (before, links) = dut.drops_and_links(stratum.family)?;
        let forwarded_before = tester.count()?.forwarded_frames;
        let crossing = dut.crossed_by(self.resolved, stratum);
        tester.send(crossing, slice.load.intended_pps())?;
        let started = BootTime::now();
        let (counted, offered_frames) = tester.measure(settle_ms, length_ms)?;
        let sent = tester.stop()?;
        let forwarded = tester.count()?.forwarded_frames;
        let forwarded = forwarded.saturating_sub(forwarded_before);
        let lost = sent.transmitted_frames.saturating_sub(forwarded);
        let (mut dropped, links_now) =
            self.dropped_since(&before, stratum, lost, sent.offered_frames)?;
        let links_that = |became| match self.link.tester.keeps_links() {
            true => self.link.dut.links_that(became, &links, &links_now),
            false => BTreeSet::new(),
        };
        let links_lost = links_that(LinkSince::Lost);
        self.links_unknown.extend(links_that(LinkSince::Unknown));
        let counted_twice = self
            .generator
            .is_virtual
            .then(|| self.link.dut.received_and_dropped());
        let not_transmitted_frames =
            account_for_not_sent(&mut dropped, &sent, counted_twice.as_deref());
        Ok(SentLoad {
            started,
            counted,
            offered_frames,
            sent,
            not_transmitted_frames,
            dropped,
            links_lost,
        })
    }

    /// What the DUT has dropped since its counters were read, once they tell of all frames that were lost, or have had
    /// the time for it; and its ports then.
    fn dropped_since(
        &mut self,
        before: &Drops,
        stratum: Stratum,
        lost: u64,
        offered: u64,
    ) -> Result<(Drops, PortLinks), LabError> {
        let start = Instant::now();
        loop {
            let (now, links) = self.link.dut.drops_and_links(stratum.family)?;
            let dropped = counters::difference(before, &now);
            if explain(&dropped, lost, offered) || start.elapsed() > COUNTERS_LATE_MAX {
                return Ok((dropped, links));
            }
            sleep(BETWEEN_LOOKS);
        }
    }

    fn start_cpu_watch(&self, window: Window) -> Result<Option<Detached>, LabError> {
        if !self.link.watches_cpus {
            return Ok(None);
        }
        let dut = &self.link.dut;
        let words = dut.system.cpu_watch(&dut.host, window, LOAD_FRAMES_MIN);
        unless_refused(Detached::start(&self.link.dut_connection, &words, window)).map(Result::ok)
    }

    /// What the DUT's CPUs did; none where that could not be read, or the load was not there all the time.
    fn watched_cpus(
        &self,
        watch: Detached,
        transmitted_pps: f64,
    ) -> Result<Option<CpuWatch>, LabError> {
        let text = unless_refused(watch.collect())?;
        let watch = text
            .ok()
            .and_then(|text| self.link.dut.system.watched_cpus(&text));
        Ok(watch.filter(|watch| watch.was_loaded(transmitted_pps)))
    }

    /// What of a variant is another than when it was first looked at.
    fn is_another(&mut self, name: &VariantName) -> Result<Option<String>, LabError> {
        Ok(self.known.another(name, self.link.dut.facts()?))
    }

    /// Puts the DUT back as it was, and proves it.
    ///
    /// # Errors
    /// `Host` where it is not, and those of the connection.
    pub(super) fn finish(self) -> Result<(BlockLog, DifferingFacts), LabError> {
        self.prove_neighbours()?;
        let Self {
            link,
            changes,
            known,
            before,
            log,
            resolved,
            sink,
            ..
        } = self;
        link.tester.release()?;
        link.dut.release()?;
        changes.0.undo_all()?;
        drop(changes);
        // Whatever was let go of and put back may have taken the link.
        if !sink.is_virtual {
            link.dut.await_link()?;
        }
        let left = left(&before, &link.dut.facts()?);
        if !left.is_empty() {
            return Err(link.dut_connection.wrong(format!(
                "after the block it is not as it was before: {}; see what else changes it, or whether the \
                 experiment's own programs undo all that they do",
                described(&left)
            )));
        }
        Ok((log, differing_facts(resolved, known.by_variant())))
    }
}

/// The loads of a stratum, one for every slice.
struct StratumUnderLoad<'m, 'a> {
    measurement: &'m mut Measurement<'a>,
    sums: Sums,
    /// What the sink has counted in boots that are over.
    seen: SinkState,
    is_warm: bool,
}

impl UnderLoad for StratumUnderLoad<'_, '_> {
    /// Nothing: a load ends before anything is asked of the DUT again.
    type Running = ();

    fn log(&mut self) -> &mut BlockLog {
        &mut self.measurement.log
    }

    fn sets_once(&self) -> bool {
        self.measurement.boots_every_trial()
    }

    fn begin(
        &mut self,
        slice: &Asked<'_>,
        on_event: &mut dyn FnMut(LabEvent<'_>),
    ) -> Result<(), LabError> {
        let measurement = &mut *self.measurement;
        measurement.boot_for(slice.stratum, slice.variant, on_event)?;
        let dut = &mut measurement.link.dut;
        dut.apply(measurement.changes.0, slice.variant)
    }

    fn measure(&mut self, (): &(), slice: &Asked<'_>) -> Result<MeasuredSlice, LabError> {
        let measurement = &mut *self.measurement;
        let variant = slice.variant;
        let mut moved = measurement.link.dut.moved(variant)?;
        let design = &measurement.resolved.design;
        let confirms = slice.round == design.rounds && measurement.known.is_new(&variant.name);
        if (slice.round == 1 || confirms) && moved.is_none() {
            moved = measurement.is_another(&variant.name)?;
        }
        let warm_up_ms = if self.is_warm { 0 } else { design.warm_up_ms };
        let settle_ms = design.settle_ms + warm_up_ms;
        let settle = Duration::from_millis(settle_ms.into());
        let length = Duration::from_millis(design.slice_ms.into());
        let watch = measurement.start_cpu_watch(Window {
            settle,
            // It sees the load late, and is to be done before it ends.
            length: length / 2,
        })?;
        let load = measurement.load(slice, settle_ms, design.slice_ms)?;
        let cpus = match watch {
            Some(watch) => measurement.watched_cpus(watch, load.transmitted_pps())?,
            None => None,
        };
        if moved.is_none() {
            moved = measurement.link.dut.moved(variant)?;
        }
        self.sums.add(&load);
        // Where the DUT boots for every trial, nothing stays warm.
        self.is_warm = !self.sets_once();
        let begin = load.started + settle;
        let samples = load.counted.iter().map(|counted| Sample {
            at: begin + Duration::from_secs_f64(counted.at_s.max(0.0)),
            forwarded_frames: counted.forwarded_frames,
            // No loop runs on the DUT, whose time is its own.
            loop_ns: 0,
            taken: Duration::ZERO,
        });
        let stolen_ratio = cpus.as_ref().map_or(0.0, CpuWatch::stolen_ratio);
        Ok(MeasuredSlice {
            // A boot is part of the switch, and so is what is asked after the load.
            switch: slice.begin.elapsed().saturating_sub(settle + length),
            samples: samples.collect(),
            tester: TesterReading {
                offered_frames: load.offered_frames,
                not_transmitted_frames: load.not_transmitted_frames,
                ..TesterReading::default()
            },
            intended_pps: slice.load.intended_pps().map(as_f64),
            taken_frames: load.taken_frames(),
            // Who else runs there is not asked of a host.
            takers: None,
            steal_s: stolen_ratio * load.time_s(),
            dut: DutReading {
                drops: load.dropped,
                events: BTreeMap::new(),
                cpus: cpus.map(|watch| watch.cpus).unwrap_or_default(),
            },
            settings_moved: moved,
            forwarder_ended: None,
            links_lost: load.links_lost,
        })
    }

    /// The loads of a profile are no part of any trial.
    fn profile(&mut self, (): &(), slice: &Asked<'_>) -> Result<(), LabError> {
        let measurement = &mut *self.measurement;
        let (stratum, name) = (slice.stratum, &slice.variant.name);
        let design = &measurement.resolved.design;
        loop {
            let Some(profiler) = &measurement.log.profiler else {
                return Ok(());
            };
            let frequency_hz = profiler.frequency_hz();
            let window = Window {
                settle: Duration::from_millis(design.settle_ms.into()),
                length: profiler.slice(),
            };
            let Link {
                dut,
                dut_connection,
                ..
            } = &mut *measurement.link;
            let words = dut
                .system
                .stack_watch(&dut.host, window, frequency_hz, LOAD_FRAMES_MIN)?;
            let watch = unless_refused(Detached::start(dut_connection, &words, window))?;
            let length_ms = as_milliseconds(window.length + LATE_MAX).max(design.slice_ms);
            let load = measurement.load(slice, design.settle_ms, length_ms)?;
            self.sums.add(&load);
            let text = match watch {
                Ok(watch) => unless_refused(watch.collect())?,
                Err(why) => Err(why),
            };
            let sampled = text.and_then(|text| {
                let dut = &measurement.link.dut;
                dut.system.sampled_stacks(&text, frequency_hz, window)
            });
            let Some(profiler) = &mut measurement.log.profiler else {
                return Ok(());
            };
            let again = match sampled {
                Ok(mut slice) => {
                    slice.record.pooled_pps = load.forwarded_pps();
                    profiler.add(stratum, name, slice, None)
                }
                Err(why) => profiler.add_failure(stratum, name, why),
            };
            if !again {
                return Ok(());
            }
        }
    }

    fn end(&mut self, (): ()) -> Result<(), LabError> {
        if self.sets_once() {
            self.seen.add(self.measurement.link.tester.count()?);
        }
        Ok(())
    }
}

fn as_milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// The facts of sysctls that the kernel has made something else of than was asked for, where it may.
fn changed_by_the_kernel(
    resolved: &Resolved,
    known: &BTreeMap<VariantName, Facts>,
) -> BTreeSet<String> {
    let mut changed = BTreeSet::new();
    for variant in &resolved.variants {
        let Some(facts) = known.get(&variant.name) else {
            continue;
        };
        for (factor, level) in &variant.levels {
            let Some(Binding::Sysctl { key, values, .. }) = resolved.lab.bindings.get(factor)
            else {
                continue;
            };
            let asked = values.value(level);
            let names = devices(key)
                .into_iter()
                .map(|name| format!("sysctl {name}"));
            changed.extend(names.filter(|name| {
                let stands = facts.get(name);
                stands.is_some_and(|it| !it.split_whitespace().eq(asked.split_whitespace()))
            }));
        }
    }
    changed
}

/// What the variants differ in, by variant, and what the kernel made of sysctls.
fn differing_facts(resolved: &Resolved, known: &BTreeMap<VariantName, Facts>) -> DifferingFacts {
    let Some(baseline) = resolved
        .comparisons
        .first()
        .and_then(|comparison| known.get(&comparison.baseline))
    else {
        return DifferingFacts::new();
    };
    let all = known.values().flat_map(|facts| difference(baseline, facts));
    let mut names: BTreeSet<String> = all.map(|(name, _)| name).collect();
    names.extend(changed_by_the_kernel(resolved, known));
    let of = |facts: &Facts| {
        let values = names.iter();
        let values =
            values.map(|name| (name.clone(), facts.get(name).cloned().unwrap_or_default()));
        values.collect()
    };
    known
        .iter()
        .map(|(name, facts)| (name.clone(), of(facts)))
        .collect()
}
