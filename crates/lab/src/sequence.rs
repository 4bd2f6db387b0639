//! The slices of a family in a block, one after the other, and what is looked at under their loads: the same in every
//! kind of lab.

use std::time::Instant;

use fwdlab_model::{
    AddressFamily, Load, LoadRegime, ProfileEvery, Resolved, SliceRecord, SliceSource, SliceTraffic,
};
use fwdlab_sys::Interrupts;

use crate::LabError;
use crate::block::{Asked, BlockLog, LabEvent, MeasuredSlice};

/// A lab that offers a family's frames to its DUT; its errors are what DUT and tester refuse.
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
    pub(crate) resolved: &'a Resolved,
    /// The load regime of the block.
    pub(crate) regime: LoadRegime,
    pub(crate) interrupts: Interrupts,
    pub(crate) slices: &'a mut dyn SliceSource,
    pub(crate) on_event: &'a mut dyn FnMut(LabEvent<'_>),
}

impl<'a> Sequence<'a> {
    /// Measures the slices of a family to the last one, and takes the profiles that are asked for.
    ///
    /// Shape: for every variant that lost frames, the last of its slices that did.
    ///
    /// # Errors
    /// Those of the lab, a slice that it cannot have, or the wish to stop now.
    pub(crate) fn measure_family(
        &mut self,
        lab: &mut impl UnderLoad,
        family: AddressFamily,
    ) -> Result<Vec<Asked<'a>>, LabError> {
        let mut measured = Vec::new();
        let mut lossy = Vec::new();
        let mut last: Option<SliceRecord> = None;
        while let Some(next) = self.slices.next_slice(family, last.as_ref()) {
            stop_if_asked(self.interrupts)?;
            let slice = Asked {
                family,
                round: next.round,
                position: next.position,
                variant: self
                    .resolved
                    .variant(&next.slice.variant)
                    .expect("plans are made of the experiment's variants"),
                load: load_of(self.resolved, self.regime, &next.slice.traffic)?,
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

/// The load of a slice in a block of a load regime.
///
/// # Errors
/// `UnknownTraffic`; `OtherRegime` where the block is not of the slice's regime. The experiment's own load is always
/// accepted, also where the lab offers another regime instead.
fn load_of(
    resolved: &Resolved,
    regime: LoadRegime,
    traffic: &SliceTraffic,
) -> Result<Load, LabError> {
    let load = resolved.load_of(traffic);
    let load = load.ok_or_else(|| LabError::UnknownTraffic {
        name: traffic.name.clone().unwrap_or_default(),
    })?;
    if load == resolved.traffic.load || load.regime() == regime {
        return Ok(load);
    }
    Err(LabError::OtherRegime {
        asked: load.regime(),
        regime,
    })
}
