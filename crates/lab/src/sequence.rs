//! The slices of a stratum in a block, one after the other, and what is looked at under their loads: the same in every
//! kind of lab.

use std::time::{Duration, Instant};

use fwdlab_model::{
    Load, LoadRegime, PlannedBlock, PlannedSlice, ProfileEvery, Resolved, SliceRecord, SliceSource,
    StratumOrder, Variant,
};
use fwdlab_sys::Interrupts;

use crate::LabError;
use crate::block::{Asked, BlockLog, BlockOutcome, BlockRun, BlockStart, LabEvent, MeasuredSlice};
use crate::validity::AskedLoad;

/// A lab that offers a stratum's frames to its DUT; its errors are what DUT and tester refuse.
pub(crate) trait UnderLoad {
    /// What works from a slice's switch to its end.
    type Running;

    /// What is noted of the block.
    fn log(&mut self) -> &mut BlockLog;

    /// Whether each variant is set once, because that takes a boot: it is profiled right after its slice then.
    fn sets_once(&self) -> bool {
        false
    }

    /// Sets the DUT to a slice's variant, and the generator to its load.
    fn begin(
        &mut self,
        slice: &Asked<'_>,
        on_event: &mut dyn FnMut(LabEvent<'_>),
    ) -> Result<Self::Running, LabError>;

    /// Measures a slice that has begun, when its load has settled.
    fn measure(
        &mut self,
        running: &Self::Running,
        slice: &Asked<'_>,
    ) -> Result<MeasuredSlice, LabError>;

    /// Samples the stacks of a slice's variant under the slice's load, where profiles are asked for.
    fn profile(&mut self, running: &Self::Running, slice: &Asked<'_>) -> Result<(), LabError>;

    /// Ends what works for a slice.
    fn end(&mut self, running: Self::Running) -> Result<(), LabError>;
}

/// What a block is measured by, beside its lab.
pub(crate) struct Sequence<'a> {
    resolved: &'a Resolved,
    regime: LoadRegime,
    interrupts: Interrupts,
    planned: &'a PlannedBlock,
    slices: &'a mut dyn SliceSource,
    pub(crate) on_event: &'a mut dyn FnMut(LabEvent<'_>),
    begun: Instant,
    start: BlockStart,
}

impl<'a> Sequence<'a> {
    /// Checks what a block's plan asks for, before anything is set up, and tells that the set-up begins.
    ///
    /// # Errors
    /// `UnknownStratum`; those of a planned slice that the lab cannot have: `NoVariant`, `OtherRegime`.
    pub(crate) fn begin(
        resolved: &'a Resolved,
        regime: LoadRegime,
        interrupts: Interrupts,
        run: &'a mut BlockRun<'_>,
    ) -> Result<Self, LabError> {
        for order in &run.planned.strata {
            let stratum = order.stratum;
            if !resolved.strata().any(|of| of == stratum) {
                return Err(LabError::UnknownStratum { stratum });
            }
            for slice in order.rounds.iter().flatten() {
                asked(resolved, regime, order, slice)?;
            }
        }
        (run.on_event)(LabEvent::SetUp);
        Ok(Self {
            resolved,
            regime,
            interrupts,
            planned: run.planned,
            slices: run.slices,
            on_event: run.on_event,
            begun: Instant::now(),
            start: BlockStart {
                session: run.session,
                attempt: run.attempt,
                set_up: Duration::ZERO,
            },
        })
    }

    /// Tells that the lab is set up.
    pub(crate) fn is_ready(&mut self) {
        let set_up = self.begun.elapsed();
        self.start.set_up = set_up;
        (self.on_event)(LabEvent::Ready { set_up });
    }

    /// What has come of the block, which had to be measured under `asked`.
    pub(crate) fn outcome(self, log: BlockLog, asked: &AskedLoad) -> BlockOutcome {
        log.outcome(self.resolved, asked, self.planned, self.start)
    }

    /// Measures the slices of a stratum to the last one, and takes the profiles that are asked for.
    ///
    /// Shape: for every variant that lost frames, the last of its slices that did.
    ///
    /// # Errors
    /// Those of the lab, a slice that it cannot have, or the wish to stop now.
    pub(crate) fn measure_stratum(
        &mut self,
        lab: &mut impl UnderLoad,
        order: &StratumOrder,
    ) -> Result<Vec<Asked<'a>>, LabError> {
        let stratum = order.stratum;
        let mut measured = Vec::new();
        let mut lossy = Vec::new();
        let mut last: Option<SliceRecord> = None;
        while let Some(next) = self.slices.next_slice(stratum, last.as_ref()) {
            stop_if_asked(self.interrupts)?;
            let (variant, load) = asked(self.resolved, self.regime, order, &next.slice)?;
            let slice = Asked {
                stratum,
                round: next.round,
                position: next.position,
                variant,
                load,
                begin: Instant::now(),
            };
            let running = lab.begin(&slice, self.on_event)?;
            let outcome = lab.measure(&running, &slice)?;
            let record = lab.log().add_slice(&slice, outcome);
            (self.on_event)(LabEvent::Slice(record));
            last = Some(record.clone());
            if record.dropped_frames > 0 {
                replace(&mut lossy, &slice);
            }
            replace(&mut measured, &slice);
            let sets_once = lab.sets_once();
            let log = lab.log();
            if log.profiles(ProfileEvery::Trial) || sets_once && log.profiles(ProfileEvery::Block) {
                self.profile(lab, &running, &slice)?;
            }
            lab.end(running)?;
        }
        if !lab.sets_once() && lab.log().profiles(ProfileEvery::Block) {
            for slice in &measured {
                stop_if_asked(self.interrupts)?;
                let running = lab.begin(slice, self.on_event)?;
                self.profile(lab, &running, slice)?;
                lab.end(running)?;
            }
        }
        Ok(lossy)
    }

    fn profile<L: UnderLoad>(
        &mut self,
        lab: &mut L,
        running: &L::Running,
        slice: &Asked<'_>,
    ) -> Result<(), LabError> {
        lab.profile(running, slice)?;
        (self.on_event)(LabEvent::Profile(&slice.variant.name));
        Ok(())
    }
}

/// Puts a slice in the place of the one of the same variant, at the end.
fn replace<'a>(slices: &mut Vec<Asked<'a>>, slice: &Asked<'a>) {
    slices.retain(|of| of.variant.name != slice.variant.name);
    slices.push(slice.clone());
}

/// Ends a block that has begun where the user asks a second time to stop.
///
/// # Errors
/// `Interrupted`.
pub(crate) fn stop_if_asked(interrupts: Interrupts) -> Result<(), LabError> {
    if interrupts.requests() > 1 {
        return Err(LabError::Interrupted);
    }
    Ok(())
}

/// Fails when somebody has asked to stop, be it as soon as a block is done or now.
pub(crate) fn stop_at_once_if_asked(interrupts: Interrupts) -> Result<(), LabError> {
    if interrupts.requests() > 0 {
        return Err(LabError::Interrupted);
    }
    Ok(())
}

/// The variant and the load of a slice in a block of a load regime. The variant is among those that are proved with probe
/// frames; the experiment's own load is always accepted, also where the lab offers another regime instead.
///
/// # Errors
/// `NoVariant`; `OtherRegime` where the block is not of the slice's regime.
fn asked<'a>(
    resolved: &'a Resolved,
    regime: LoadRegime,
    order: &StratumOrder,
    slice: &PlannedSlice,
) -> Result<(&'a Variant, Load), LabError> {
    let no_variant = |why: &str| LabError::NoVariant {
        name: slice.variant.clone(),
        why: why.to_owned(),
    };
    let variant = resolved.variant(&slice.variant);
    let variant = variant.ok_or_else(|| no_variant("the experiment does not have it"))?;
    if !order.variants().any(|name| *name == variant.name) {
        let why = "it is not in the block's first round, whose variants are proved";
        return Err(no_variant(why));
    }
    let own = resolved.traffic(order.stratum).load;
    let load = slice.load.unwrap_or(own);
    if load == own || load.regime() == regime {
        return Ok((variant, load));
    }
    Err(LabError::OtherRegime {
        asked: load.regime(),
        regime,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fwdlab_model::{
        DutReading, Lab, NextSlice, PlannedBlock, SliceRecord, Stratum, TesterReading, VariantName,
    };
    use fwdlab_sys::BootTime;

    use super::*;
    use crate::doctor::control_experiment;
    use crate::sample::Sample;

    const STRATUM: Stratum = Stratum::INET;

    /// A DUT that drops a frame where more than 1 Mpps are offered.
    struct Loads {
        log: BlockLog,
        begun: Vec<(String, Load)>,
    }

    impl UnderLoad for Loads {
        type Running = ();

        fn log(&mut self) -> &mut BlockLog {
            &mut self.log
        }

        fn begin(
            &mut self,
            slice: &Asked<'_>,
            _: &mut dyn FnMut(LabEvent<'_>),
        ) -> Result<(), LabError> {
            let name = slice.variant.name.to_string();
            self.begun.push((name, slice.load));
            Ok(())
        }

        fn measure(&mut self, (): &(), slice: &Asked<'_>) -> Result<MeasuredSlice, LabError> {
            let sample = |frames| Sample {
                at: BootTime::now(),
                forwarded_frames: frames,
                loop_ns: 1,
                taken: Duration::ZERO,
            };
            let mut dut = DutReading::default();
            if slice.load.intended_pps() > Some(1_000_000) {
                dut.drops.insert("full ring".to_owned(), 1);
            }
            Ok(MeasuredSlice {
                switch: Duration::ZERO,
                samples: vec![sample(0), sample(9)],
                tester: TesterReading::default(),
                steal_s: 0.0,
                intended_pps: None,
                taken_frames: 0,
                dut,
                settings_moved: None,
                forwarder_ended: None,
                links_lost: BTreeSet::new(),
                takers: None,
            })
        }

        fn profile(&mut self, (): &(), _: &Asked<'_>) -> Result<(), LabError> {
            Ok(())
        }

        fn end(&mut self, (): ()) -> Result<(), LabError> {
            Ok(())
        }
    }

    /// Each slice of the block at half the load of the one before.
    struct Halving(PlannedBlock);

    impl SliceSource for Halving {
        fn next_slice(
            &mut self,
            stratum: Stratum,
            last: Option<&SliceRecord>,
        ) -> Option<NextSlice> {
            let mut next = self.0.slice_after(stratum, last)?;
            let slices = 2 * (next.round - 1) + next.position;
            let pps = 4_000_000 >> slices;
            next.slice.load = Some(Load::Paced { pps });
            Some(next)
        }
    }

    fn experiment() -> Resolved {
        control_experiment(
            &Lab::netns("here"),
            Load::Paced { pps: 4_000_000 },
            1,
            false,
        )
    }

    /// Two rounds of all variants.
    fn block(resolved: &Resolved) -> PlannedBlock {
        let names = resolved.variants.iter().map(|of| of.name.clone().into());
        let round: Vec<PlannedSlice> = names.collect();
        PlannedBlock {
            number: 1,
            strata: vec![StratumOrder {
                stratum: STRATUM,
                rounds: vec![round.clone(), round],
            }],
        }
    }

    #[test]
    fn every_slice_has_its_load_and_the_last_that_lost_frames_is_known() {
        let resolved = experiment();
        let planned = block(&resolved);
        let mut slices = Halving(planned.clone());
        let mut events = 0;
        let mut count = |_: LabEvent<'_>| events += 1;
        let interrupts = fwdlab_sys::watch_interrupts().unwrap();
        let regime = LoadRegime::Paced;
        let mut run = BlockRun {
            planned: &planned,
            slices: &mut slices,
            session: 1,
            attempt: 1,
            on_event: &mut count,
        };
        let mut sequence = Sequence::begin(&resolved, regime, interrupts, &mut run).unwrap();
        let mut lab = Loads {
            log: BlockLog::new(&resolved, regime),
            begun: Vec::new(),
        };
        let order = &planned.strata[0];
        let lossy = sequence.measure_stratum(&mut lab, order).unwrap();
        let loads = lab.begun.iter().map(|(_, load)| load.intended_pps());
        let expected = [4_000_000, 2_000_000, 1_000_000, 500_000].map(Some);
        assert!(loads.eq(expected), "{:?}", lab.begun);
        let lossy = lossy.iter().map(|of| (of.round, of.load.intended_pps()));
        assert!(lossy.eq([(1, Some(4_000_000)), (1, Some(2_000_000))]));
        assert_eq!(events, 5);
    }

    #[test]
    fn a_slice_that_the_lab_cannot_have_is_refused_before_the_set_up() {
        let mut resolved = experiment();
        let planned = block(&resolved);
        let refused_block = |resolved: &Resolved, change: &dyn Fn(&mut PlannedBlock)| {
            let mut planned = planned.clone();
            change(&mut planned);
            let mut slices = planned.clone();
            let interrupts = fwdlab_sys::watch_interrupts().unwrap();
            let regime = LoadRegime::Paced;
            let mut ignore = |_: LabEvent<'_>| ();
            let mut run = BlockRun {
                planned: &planned,
                slices: &mut slices,
                session: 1,
                attempt: 1,
                on_event: &mut ignore,
            };
            let sequence = Sequence::begin(resolved, regime, interrupts, &mut run);
            sequence.map(|_| ()).map_err(|error| error.to_string())
        };
        let refused = |resolved: &Resolved, change: fn(&mut PlannedSlice)| {
            refused_block(resolved, &|of| change(&mut of.strata[0].rounds[1][0]))
        };
        assert_eq!(refused(&resolved, |_| ()), Ok(()));
        assert_eq!(
            refused(&resolved, |of| of.variant = VariantName::from_label("x")),
            Err(
                "the plan asks for variant x: the experiment does not have it; make the plan anew"
                    .to_owned()
            )
        );
        let overload = refused(&resolved, |of| of.load = Some(Load::Overload));
        assert!(
            overload
                .unwrap_err()
                .contains("this block is measured paced")
        );
        let other = refused_block(&resolved, &|of| {
            of.strata[0].stratum = "inet-imix".parse().unwrap();
        });
        assert!(other.unwrap_err().contains("asks for inet-imix"));
        let mut more = resolved.variants[0].clone();
        more.name = VariantName::from_label("more");
        resolved.variants.push(more);
        let unproved = refused(&resolved, |of| of.variant = VariantName::from_label("more"));
        assert!(
            unproved
                .unwrap_err()
                .contains("not in the block's first round")
        );
    }
}
