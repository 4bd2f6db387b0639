//! Whether an effect hangs on how much of a block was left undisturbed.

use fwdlab_archive::Loaded;
use fwdlab_model::{RateBasis, Stratum};
use fwdlab_stats::median;

use crate::evidence::{self, Scope};
use crate::format::counted;
use crate::report::{BlockEffectSection, Row, Warning};

/// With fewer blocks on a side nothing is said.
const BLOCKS_MIN: usize = 2;

/// W229 for each effect that is another one in the blocks whose rates rest on undisturbed time than in the others, by more
/// than half of its interval and the practical threshold.
///
/// What others leave behind, cold caches above all, costs some variants more than others, and no time that is left out
/// makes up for it.
pub(crate) fn warnings(
    loaded: &Loaded,
    stratum: Stratum,
    rows: &[Row],
    subject: impl Fn(&Row) -> String,
) -> Vec<Warning> {
    let attempts = evidence::attempts(loaded, Scope::Accepted);
    let is_undisturbed = |block: u32| {
        evidence::of_block(&attempts, block).is_some_and(|attempt| {
            evidence::basis(attempt, stratum, Scope::Accepted) == RateBasis::Undisturbed
        })
    };
    let warning = |row: &Row| {
        let effect = row.effect.as_ref()?;
        let (undisturbed, others): (Vec<f64>, Vec<f64>) = {
            let (one, other): (Vec<_>, Vec<_>) =
                (effect.blocks.iter()).partition(|effect| is_undisturbed(effect.block));
            let percents = |blocks: Vec<&BlockEffectSection>| {
                blocks.into_iter().map(|effect| effect.percent).collect()
            };
            (percents(one), percents(other))
        };
        if undisturbed.len() < BLOCKS_MIN || others.len() < BLOCKS_MIN {
            return None;
        }
        let (one, other) = (median(&undisturbed)?, median(&others)?);
        let half_width = effect.half_width_percent().unwrap_or_default();
        let threshold = loaded.resolved.design.threshold_percent;
        let apart = (one - other).abs();
        let text = format!(
            "{one:+.1} % in the {} whose rates rest on undisturbed time, {other:+.1} % in the other {}",
            counted(undisturbed.len() as u64, "block"),
            others.len(),
        );
        (apart > half_width.max(threshold)).then(|| Warning {
            percent: Some(apart),
            ..Warning::new(
                "W229",
                [subject(row)],
                text,
                "what others leave behind, such as cold caches, is part of the latter: measure at a quieter time",
            )
        })
    };
    rows.iter().filter_map(warning).collect()
}
