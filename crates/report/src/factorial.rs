//! What the factors do, where an experiment combined their levels.

use fwdlab_model::{Comparison, Resolved};
use fwdlab_stats::{
    ContrastOf, Factor, FactorialTerm, FactorialVerdict, FactorialVerdicts, StatsError,
    VerdictSettings, block_factorial, factorial_analysis, independent_factorial, logarithms,
};
use serde::{Deserialize, Serialize};

use crate::report::{Effect, VerdictSection, Warning};
use crate::sections::verdict_section;
use crate::text;

/// The main effects and interactions of the factors that a comparison combines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactorialSection {
    /// Every level of every factor against the baseline's.
    pub main_effects: Vec<FactorialRow>,
    /// Every pair of levels, of the factors of which all combinations were measured.
    pub interactions: Vec<FactorialRow>,
    /// The classical table of the same terms, on the logarithms; empty where it was not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub analysis_of_variance: Vec<VarianceRow>,
}

/// A term in an analysis of variance: all levels of a factor, or of two, at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VarianceRow {
    /// The factors, joined by ` x `.
    pub term: String,
    /// Degrees of freedom of the term and of what is left over.
    pub degrees_of_freedom: (usize, usize),
    /// Mean square of the term over that of what is left over (type III).
    pub f: f64,
    /// Probability of a larger one without any effect, for this term alone.
    pub p: f64,
}

/// A main effect or an interaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactorialRow {
    /// Its name for readers.
    pub label: String,
    /// Which levels of which factors it is of; one for a main effect, two for an interaction.
    pub of: Vec<FactorLevel>,
    /// Of a main effect: the change of the forwarding rate at the level, averaged over the other
    /// factors' levels. Of an interaction: how far the rate with both levels is from what the effects
    /// of each alone would make it.
    pub effect: Effect,
    /// What is concluded.
    pub verdict: VerdictSection,
}

/// A level, and the one it is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactorLevel {
    /// The factor.
    pub factor: String,
    /// The level.
    pub level: String,
    /// The baseline's level.
    pub against: String,
}

/// Factors whose levels a set of variants combines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactorialDesign {
    names: Vec<String>,
    /// Of each factor its levels, the baseline's first.
    levels: Vec<Vec<String>>,
    /// Of each factor the level of each variant, the baseline first.
    of_variants: Vec<Factor>,
}

impl FactorialDesign {
    /// The factors that are not the same in all variants; none where fewer than two of them were
    /// combined in all their levels.
    ///
    /// Shape: `names` of the factors, and the level of each for every variant, the baseline first.
    #[must_use]
    pub fn new(names: &[String], variants: &[Vec<String>]) -> Option<Self> {
        let mut design = Self {
            names: Vec::new(),
            levels: Vec::new(),
            of_variants: Vec::new(),
        };
        for (place, name) in names.iter().enumerate() {
            let mut levels: Vec<String> = Vec::new();
            let mut numbers = Vec::with_capacity(variants.len());
            for variant in variants {
                let level = &variant[place];
                let known = levels.iter().position(|known| known == level);
                numbers.push(known.unwrap_or(levels.len()));
                if known.is_none() {
                    levels.push(level.clone());
                }
            }
            if levels.len() > 1 {
                design.of_variants.push(Factor {
                    name: name.clone(),
                    levels: numbers,
                });
                design.names.push(name.clone());
                design.levels.push(levels);
            }
        }
        let is_factorial = design
            .of_variants
            .iter()
            .enumerate()
            .any(|(place, second)| {
                let before = &design.of_variants[..place];
                before.iter().any(|first| first.is_crossed_with(second))
            });
        is_factorial.then_some(design)
    }

    /// The factors of a comparison as its variants combine them.
    pub(crate) fn of_comparison(resolved: &Resolved, comparison: &Comparison) -> Option<Self> {
        let names: Vec<String> = resolved
            .factors
            .iter()
            .map(|factor| text::one_line(&factor.name))
            .collect();
        let variants = std::iter::once(&comparison.baseline)
            .chain(&comparison.variants)
            .map(|name| {
                let variant = resolved.variant(name)?;
                let level = |factor: &fwdlab_model::Factor| {
                    let level = variant.levels.get(&factor.name).unwrap_or(&factor.default);
                    text::one_line(&level.to_string())
                };
                Some(resolved.factors.iter().map(level).collect())
            })
            .collect::<Option<Vec<Vec<String>>>>()?;
        Self::new(&names, &variants)
    }

    /// What blocks say: the effects of every variant by block, the baseline's zeros first.
    ///
    /// # Errors
    /// [`StatsError::NotEstimable`] where factors were changed together only.
    pub(crate) fn judge_blocks(
        &self,
        effects: &[Vec<f64>],
        settings: &VerdictSettings,
    ) -> Result<(FactorialSection, Vec<Warning>), StatsError> {
        let name = |of: &ContrastOf| self.label(of);
        let verdicts = block_factorial(&self.of_variants, effects, settings, name)?;
        Ok(self.section(&verdicts))
    }

    /// What independent observations say: those of every variant, the baseline's first.
    ///
    /// # Errors
    /// [`StatsError::NotEstimable`] where factors were changed together only.
    pub(crate) fn judge_independent(
        &self,
        observations: &[Vec<f64>],
        settings: &VerdictSettings,
    ) -> Result<(FactorialSection, Vec<Warning>), StatsError> {
        let name = |of: &ContrastOf| self.label(of);
        let verdicts = independent_factorial(&self.of_variants, observations, settings, name)?;
        Ok(self.section(&verdicts))
    }

    /// The analysis of variance of the logarithms of independent observations.
    ///
    /// # Errors
    /// Those of [`factorial_analysis`].
    pub(crate) fn analysis_of_variance(
        &self,
        observations: &[Vec<f64>],
        confidence: f64,
    ) -> Result<Vec<VarianceRow>, StatsError> {
        let mut responses = Vec::new();
        for values in observations {
            responses.extend(logarithms("factorial design", values)?);
        }
        let factors: Vec<Factor> = self
            .of_variants
            .iter()
            .map(|factor| Factor {
                name: factor.name.clone(),
                levels: factor
                    .levels
                    .iter()
                    .zip(observations)
                    .flat_map(|(level, values)| std::iter::repeat_n(*level, values.len()))
                    .collect(),
            })
            .collect();
        let analysis = factorial_analysis(&responses, &factors, None, 2, confidence)?;
        let left_over = analysis.residual_degrees_of_freedom;
        let row = |term: FactorialTerm| VarianceRow {
            term: term.factors.join(" x "),
            degrees_of_freedom: (term.degrees_of_freedom, left_over),
            f: term.f,
            p: term.p,
        };
        Ok(analysis.terms.into_iter().map(row).collect())
    }

    fn section(&self, verdicts: &FactorialVerdicts) -> (FactorialSection, Vec<Warning>) {
        let rows = |verdicts: &[FactorialVerdict]| {
            verdicts.iter().map(|verdict| self.row(verdict)).collect()
        };
        let section = FactorialSection {
            main_effects: rows(&verdicts.main_effects),
            interactions: rows(&verdicts.interactions),
            analysis_of_variance: Vec::new(),
        };
        // A block that lies far from the others is reported with the variant that it is of.
        let warnings = verdicts
            .warnings
            .iter()
            .filter(|warning| !matches!(warning, fwdlab_stats::Warning::OutlyingBlock { .. }))
            .map(Warning::from)
            .collect();
        (section, warnings)
    }

    fn row(&self, verdict: &FactorialVerdict) -> FactorialRow {
        let of = &verdict.of;
        // An average over variants is of nobody's rate, so it is a ratio only.
        let effect = Effect::of_verdict(&verdict.verdict, None);
        FactorialRow {
            label: self.label(of),
            of: self.levels_of(of).collect(),
            verdict: verdict_section(&verdict.verdict, &effect),
            effect,
        }
    }

    /// `packet filter: conntrack against none`, or `packet filter conntrack x offloads off`.
    fn label(&self, of: &ContrastOf) -> String {
        let parts: Vec<FactorLevel> = self.levels_of(of).collect();
        match &parts[..] {
            [main] => format!("{}: {} against {}", main.factor, main.level, main.against),
            several => {
                let names: Vec<String> = several
                    .iter()
                    .map(|part| format!("{} {}", part.factor, part.level))
                    .collect();
                names.join(" x ")
            }
        }
    }

    fn levels_of<'a>(&'a self, of: &'a ContrastOf) -> impl Iterator<Item = FactorLevel> + 'a {
        of.factors.iter().zip(&of.levels).map(|(&factor, &level)| {
            let levels = &self.levels[factor];
            FactorLevel {
                factor: self.names[factor].clone(),
                level: levels[level].clone(),
                against: levels[0].clone(),
            }
        })
    }
}
