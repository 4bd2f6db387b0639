//! One block in a lab of hosts, from its set-up to its last slice.
//!
//! The load of a slice is started when the variant is set and stopped before anything is asked of the DUT again: a
//! DUT that forwards all it can has no time for ssh, and counters are read when nothing is under way.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fwdlab_model::{
    AddressFamily, DutReading, FamilyOrder, Load, NextSlice, PlannedBlock, ProfileEvery, Resolved,
    SliceRecord, SliceSource, Tester, Variant, VariantName, Verification,
};
use fwdlab_stats::as_f64;
use fwdlab_sys::{BootTime, Interrupts};

use super::Link;
use super::boot::Booter;
use super::cpu_watch::CpuWatch;
use super::detached::{Detached, LOAD_FRAMES_MIN, Window};
use super::dut::unless_refused;
use super::facts::{Facts, difference, left, shown};
use super::load::{SentLoad, Sums, account_for_not_sent, explain};
use super::protocol::SinkState;
use super::tester::{Sent, Station};
use crate::LabError;
use crate::block::{BlockLog, LabEvent, MeasuredSlice, conservation, load_of};
use crate::counters::{self, Drops};
use crate::journal::{Changes, Journal};
use crate::probe::FailedProbe;
use crate::sample::Sample;

/// How long the DUT's counters of drops may be behind: the drivers of some ports read their cards every two seconds.
const DROPS_LATE_MAX: Duration = Duration::from_millis(2500);
/// How often they are read until then.
const BETWEEN_LOOKS_AT_DROPS: Duration = Duration::from_millis(250);

/// How late a program on the DUT may see the load: counters of some ports are a second old.
const LATE_MAX: Duration = Duration::from_secs(1);

/// How many facts are named where a variant is not what it was.
const FACTS_NAMED: usize = 3;

/// The facts that differ between variants, by variant.
pub(super) type DifferingFacts = BTreeMap<VariantName, BTreeMap<String, String>>;

/// Everything that lives as long as a block.
pub(super) struct Measurement<'a> {
    resolved: &'a Resolved,
    link: &'a mut Link,
    changes: Changes<'a>,
    interrupts: Interrupts,
    known: &'a mut BTreeMap<VariantName, Facts>,
    /// What boots the DUT, where its variants need that.
    boots: Option<Boots<'a>>,
    /// How the DUT was before anything was changed, in the boot of the moment.
    before: Facts,
    generator: Station,
    sink: Station,
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
        known: &'a mut BTreeMap<VariantName, Facts>,
        boots: Option<Boots<'a>>,
        on_event: &mut dyn FnMut(LabEvent<'_>),
    ) -> Result<Self, LabError> {
        let log = BlockLog::new(resolved, resolved.traffic.load.regime());
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

    fn boots_every_trial(&self) -> bool {
        self.boots.as_ref().is_some_and(|boots| boots.every_trial)
    }

    /// Boots the DUT where something is held constant that needs it, and it does not stand booted so already.
    fn boot_once(&mut self, on_event: &mut dyn FnMut(LabEvent<'_>)) -> Result<(), LabError> {
        let (Some(boots), Some(variant)) = (&mut self.boots, self.resolved.variants.first()) else {
            return Ok(());
        };
        let choice = self.link.dut.boot_choice(variant)?;
        if boots.booter.stands(&choice, self.link.dut.boot_id()) {
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
            &self.resolved.traffic.families,
            [&self.generator, &self.sink],
        )
    }

    /// Boots the DUT for a trial, whatever has booted there before, and sets it up: every trial has a boot of
    /// its own. Nothing where no variant needs one.
    fn boot_for(
        &mut self,
        family: AddressFamily,
        variant: &Variant,
        on_event: &mut dyn FnMut(LabEvent<'_>),
    ) -> Result<(), LabError> {
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
        self.prove_variant(family, variant)?;
        self.expect(family, false)
    }

    /// Has the tester count what the DUT forwards, from now on.
    fn expect(&mut self, family: AddressFamily, every_frame: bool) -> Result<(), LabError> {
        let Link { dut, tester, .. } = &mut *self.link;
        tester.expect(self.resolved, family, dut.stations(), every_frame)?;
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
        for order in &planned.families {
            for name in order.variants() {
                self.stop_if_asked()?;
                self.prove_variant(order.family, self.variant(name))?;
            }
        }
        Ok(())
    }

    fn prove_variant(&mut self, family: AddressFamily, variant: &Variant) -> Result<(), LabError> {
        self.link.dut.apply(self.changes.0, variant)?;
        if let Some(what) = self.link.dut.moved(variant)? {
            let host = self.link.dut_connection.host().to_owned();
            return Err(LabError::Host { host, why: what });
        }
        self.probe(family, variant)
    }

    fn probe(&mut self, family: AddressFamily, variant: &Variant) -> Result<(), LabError> {
        self.expect(family, true)?;
        let Link { dut, tester, .. } = &mut *self.link;
        let dropped_before = dut.drops(family)?;
        let (sent, seen) = tester.probe(self.resolved, family, dut.stations())?;
        let wrong: u64 = seen.wrong_frames.values().sum();
        let flows = self.resolved.traffic.flows_in_all_directions();
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
        let dropped = counters::difference(&dropped_before, &dut.drops(family)?);
        let reasons = dropped
            .iter()
            .map(|(reason, frames)| format!("{reason}: {frames}"));
        let failed = FailedProbe {
            sent: sent.offered_frames,
            forwarded: seen.forwarded_frames,
            wrong,
            kinds,
            reasons: reasons.collect(),
        };
        Err(failed.of(self.resolved, family, variant))
    }

    /// A load for every slice; only what happens inside slices is measured.
    ///
    /// # Errors
    /// Those of the connections, or the wish to stop now.
    pub(super) fn measure_family(
        &mut self,
        order: &FamilyOrder,
        slices: &mut dyn SliceSource,
        on_event: &mut dyn FnMut(LabEvent<'_>),
    ) -> Result<(), LabError> {
        let family = order.family;
        if !self.boots_every_trial() {
            self.expect(family, false)?;
        }
        let mut sums = Sums::default();
        let mut seen = SinkState::default();
        let mut is_warm = false;
        let mut last: Option<SliceRecord> = None;
        while let Some(next) = slices.next_slice(family, last.as_ref()) {
            let name = &next.slice.variant;
            self.stop_if_asked()?;
            let switching = Instant::now();
            self.boot_for(family, self.variant(name), on_event)?;
            let mut slice = self.slice(family, &next, !is_warm)?;
            // From when the one before had ended: a boot is part of the switch, and so is what is asked behind the load.
            slice.measured.switch = switching.elapsed().saturating_sub(slice.loaded);
            sums.add(
                &slice.sent,
                slice.measured.not_transmitted_frames,
                &slice.measured.dut.drops,
            );
            let record = self.log.add_slice(slice.measured);
            on_event(LabEvent::Slice(record));
            last = Some(record.clone());
            if self.log.profiles(ProfileEvery::Trial)
                    // There is no other moment at which it stands booted so.
                    || self.boots_every_trial() && self.log.profiles(ProfileEvery::Block)
            {
                self.profile(family, name, &mut sums)?;
                on_event(LabEvent::Profile(name));
            }
            if self.boots_every_trial() {
                seen.add(self.link.tester.count()?);
            } else {
                is_warm = true;
            }
        }
        if !self.boots_every_trial() && self.log.profiles(ProfileEvery::Block) {
            for slice in order.rounds.last().into_iter().flatten() {
                let name = &slice.variant;
                self.stop_if_asked()?;
                self.link.dut.apply(self.changes.0, self.variant(name))?;
                self.profile(family, name, &mut sums)?;
                on_event(LabEvent::Profile(name));
            }
        }
        if let Some(why) = sums.failed {
            self.log.note_generator_stopped(family, why);
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
        self.log.end_family(family, conservation, None);
        Ok(())
    }

    fn slice<'v>(
        &mut self,
        family: AddressFamily,
        next: &'v NextSlice,
        is_first: bool,
    ) -> Result<SentSlice<'v>, LabError> {
        let regime = self.resolved.traffic.load.regime();
        let asked = load_of(self.resolved, regime, &next.slice.traffic)?;
        let name = &next.slice.variant;
        let variant = self.variant(name);
        self.link.dut.apply(self.changes.0, variant)?;
        let mut moved = self.link.dut.moved(variant)?;
        if next.round == 1 && moved.is_none() {
            moved = self.is_another(name)?;
        }
        let design = &self.resolved.design;
        let settle_ms = design.settle_ms + if is_first { design.warm_up_ms } else { 0 };
        let settle = Duration::from_millis(settle_ms.into());
        let watch = self.start_cpu_watch(Window {
            settle,
            // It sees the load late, and is to be done before it ends.
            length: Duration::from_millis(u64::from(design.slice_ms) / 2),
        })?;
        let load = self.load(family, asked, settle_ms, design.slice_ms)?;
        let cpus = match watch {
            Some(watch) => self.watched_cpus(watch, load.transmitted_pps())?,
            None => None,
        };
        if moved.is_none() {
            moved = self.link.dut.moved(variant)?;
        }
        let begin = load.started + settle;
        let samples = load.counted.iter().map(|counted| Sample {
            at: begin + Duration::from_secs_f64(counted.at_s.max(0.0)),
            forwarded_frames: counted.forwarded_frames,
            // No loop runs on the DUT, whose time is its own.
            loop_ns: 0,
            taken: Duration::ZERO,
        });
        let stolen_ratio = cpus.as_ref().map_or(0.0, CpuWatch::stolen_ratio);
        Ok(SentSlice {
            measured: MeasuredSlice {
                family,
                variant: name,
                round: next.round,
                position: next.position,
                switch: Duration::ZERO,
                samples: samples.collect(),
                offered_frames: load.offered_frames,
                intended_pps: asked.intended_pps().map(as_f64),
                taken_frames: load.taken_frames(),
                // Who else runs there is not asked of a host.
                takers: None,
                steal_s: stolen_ratio * load.time_s(),
                not_transmitted_frames: load.not_transmitted_frames,
                dut: DutReading {
                    drops: load.dropped,
                    events: BTreeMap::new(),
                    cpus: cpus.map(|watch| watch.cpus).unwrap_or_default(),
                },
                settings_moved: moved,
            },
            loaded: settle + Duration::from_millis(design.slice_ms.into()),
            sent: load.sent,
        })
    }

    /// Sends the load, and counts for a while when it has settled.
    fn load(
        &mut self,
        family: AddressFamily,
        asked: Load,
        settle_ms: u32,
        length_ms: u32,
    ) -> Result<SentLoad, LabError> {
        let Link { dut, tester, .. } = &mut *self.link;
        let before = dut.drops(family)?;
        let forwarded_before = tester.count()?.forwarded_frames;
        tester.send(
            self.resolved,
            family,
            dut.stations(),
            asked.intended_pps(),
            self.resolved.traffic.burst_frames,
        )?;
        let started = BootTime::now();
        let (counted, offered_frames) = tester.measure(settle_ms, length_ms)?;
        let sent = tester.stop()?;
        let forwarded = tester.count()?.forwarded_frames;
        let forwarded = forwarded.saturating_sub(forwarded_before);
        let lost = sent.transmitted_frames.saturating_sub(forwarded);
        let mut dropped = self.dropped_since(&before, family, lost, sent.offered_frames)?;
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
        })
    }

    /// What the DUT has dropped since its counters were read, once they tell of all frames that were lost, or have had
    /// the time for it.
    fn dropped_since(
        &mut self,
        before: &Drops,
        family: AddressFamily,
        lost: u64,
        offered: u64,
    ) -> Result<Drops, LabError> {
        let start = Instant::now();
        loop {
            let dropped = counters::difference(before, &self.link.dut.drops(family)?);
            if explain(&dropped, lost, offered) || start.elapsed() > DROPS_LATE_MAX {
                return Ok(dropped);
            }
            sleep(BETWEEN_LOOKS_AT_DROPS);
        }
    }

    fn start_cpu_watch(&self, window: Window) -> Result<Option<Detached>, LabError> {
        if !self.link.watches_cpus {
            return Ok(None);
        }
        let words = self.link.dut.cpu_watch(window, LOAD_FRAMES_MIN);
        unless_refused(Detached::start(&self.link.dut_connection, &words, window)).map(Result::ok)
    }

    /// What the DUT's CPUs did; none where that could not be read, or the load was not there all the time.
    fn watched_cpus(
        &self,
        watch: Detached,
        transmitted_pps: f64,
    ) -> Result<Option<CpuWatch>, LabError> {
        let text = unless_refused(watch.collect())?;
        let watch = text.ok().and_then(|text| self.link.dut.watched_cpus(&text));
        Ok(watch.filter(|watch| watch.was_loaded(transmitted_pps)))
    }

    /// Samples the stacks of the variant that the DUT is set to, under loads that are no part of any trial.
    fn profile(
        &mut self,
        family: AddressFamily,
        name: &VariantName,
        sums: &mut Sums,
    ) -> Result<(), LabError> {
        let design = &self.resolved.design;
        loop {
            let Some(profiler) = &self.log.profiler else {
                return Ok(());
            };
            let frequency_hz = profiler.frequency_hz();
            let window = Window {
                settle: Duration::from_millis(design.settle_ms.into()),
                length: profiler.slice(),
            };
            let words = self
                .link
                .dut
                .stack_watch(window, frequency_hz, LOAD_FRAMES_MIN)?;
            let connection = &self.link.dut_connection;
            let watch = unless_refused(Detached::start(connection, &words, window))?;
            let length_ms = as_milliseconds(window.length + LATE_MAX).max(design.slice_ms);
            let load = self.load(
                family,
                self.resolved.traffic.load,
                design.settle_ms,
                length_ms,
            )?;
            sums.add(&load.sent, load.not_transmitted_frames, &load.dropped);
            let text = match watch {
                Ok(watch) => unless_refused(watch.collect())?,
                Err(why) => Err(why),
            };
            let sampled = text.and_then(|text| {
                let dut = &self.link.dut;
                dut.sampled_stacks(&text, frequency_hz, window)
            });
            let Some(profiler) = &mut self.log.profiler else {
                return Ok(());
            };
            let again = match sampled {
                Ok(mut slice) => {
                    slice.record.pooled_pps = load.forwarded_pps();
                    profiler.add(family, name, slice)
                }
                Err(why) => profiler.add_failure(family, name, why),
            };
            if !again {
                return Ok(());
            }
        }
    }

    /// What of a variant is another than when it was first looked at.
    fn is_another(&mut self, name: &VariantName) -> Result<Option<String>, LabError> {
        let now = self.link.dut.facts()?;
        let Some(known) = self.known.get(name) else {
            self.known.insert(name.clone(), now);
            return Ok(None);
        };
        let differing = difference(known, &now);
        Ok((!differing.is_empty()).then(|| named(&differing)))
    }

    /// Puts the DUT back as it was, and proves it.
    ///
    /// # Errors
    /// `Host` where it is not, and those of the connection.
    pub(super) fn finish(self) -> Result<(BlockLog, DifferingFacts), LabError> {
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
            return Err(LabError::Host {
                host: link.dut_connection.host().to_owned(),
                why: format!(
                    "after the block it is not as it was before: {}; see what else changes it, or whether the \
                     experiment's own programs undo all that they do",
                    named(&left)
                ),
            });
        }
        Ok((log, differing_facts(resolved, known)))
    }

    fn variant(&self, name: &VariantName) -> &'a Variant {
        self.resolved
            .variant(name)
            .expect("plans are made of the experiment's variants")
    }

    fn stop_if_asked(&self) -> Result<(), LabError> {
        if self.interrupts.requests() > 1 {
            Err(LabError::Interrupted)
        } else {
            Ok(())
        }
    }
}

fn as_milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// A slice, and what was sent for it.
struct SentSlice<'v> {
    measured: MeasuredSlice<'v>,
    /// How long the load settled and was counted.
    loaded: Duration,
    sent: Sent,
}

/// Some of the facts that differ, with both values.
fn named(differing: &BTreeMap<String, (String, String)>) -> String {
    let some = differing.iter().take(FACTS_NAMED);
    let some = some.map(|(name, (then, now))| {
        let [then, now] = shown(then, now);
        format!("{name} was {then:?} and is {now:?}")
    });
    let mut text = some.collect::<Vec<_>>().join("; ");
    if differing.len() > FACTS_NAMED {
        text += &format!(" and {} facts more", differing.len() - FACTS_NAMED);
    }
    text
}

/// What the variants differ in, by variant.
fn differing_facts(resolved: &Resolved, known: &BTreeMap<VariantName, Facts>) -> DifferingFacts {
    let Some(baseline) = resolved
        .comparisons
        .first()
        .and_then(|comparison| known.get(&comparison.baseline))
    else {
        return DifferingFacts::new();
    };
    let all = known.values().flat_map(|facts| difference(baseline, facts));
    let names: std::collections::BTreeSet<String> = all.map(|(name, _)| name).collect();
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
