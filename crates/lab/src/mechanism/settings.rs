//! What sets a DUT to variants: what its mechanisms ask and do, for a transport to carry out.

use std::collections::BTreeSet;

use fwdlab_model::{AddressFamily, Resolved, Variant};

use super::question::{Answers, Question};
use super::step::{Action, BootChoice, Step};
use super::tools::{self, ToolNeed, tools_needed};
use super::transport::{Noticed, Transport};
use super::{Mechanism, unbound_level};
use crate::Moved;
use crate::counters::Drops;
use crate::{Asks, LabError};

/// What sets a DUT to variants.
pub(crate) struct Settings {
    /// In the order in which they set a variant.
    mechanisms: Vec<Box<dyn Mechanism>>,
    factors: BTreeSet<String>,
    /// The programs that factors need of a host.
    tools: Vec<ToolNeed>,
}

impl Settings {
    /// Of a DUT that nothing is set on yet.
    pub(crate) fn new(resolved: &Resolved, mechanisms: Vec<Box<dyn Mechanism>>) -> Self {
        Self {
            mechanisms,
            factors: resolved.lab.bindings.keys().cloned().collect(),
            tools: tools_needed(resolved),
        }
    }

    /// What a variant has the DUT boot.
    ///
    /// # Errors
    /// `Unbound` for a level that no binding knows.
    pub(crate) fn boot_choice(&self, variant: &Variant) -> Result<BootChoice, LabError> {
        self.prove_bound(variant)?;
        let mut choice = BootChoice::default();
        for mechanism in &self.mechanisms {
            mechanism.boot(variant, &mut choice)?;
        }
        Ok(choice)
    }

    /// Why the DUT cannot have a variant; none where it can.
    ///
    /// # Errors
    /// Those of the transport.
    pub(crate) fn unavailable(
        &self,
        transport: &mut dyn Transport,
        variant: &Variant,
        asks: Asks,
    ) -> Result<Option<String>, LabError> {
        self.prove_bound(variant)?;
        let mut questions = Vec::new();
        for mechanism in &self.mechanisms {
            questions.extend(mechanism.needs(variant)?);
        }
        let answers = transport.ask(&questions, asks)?;
        // All that is to be installed at once.
        if let Some(missing) = tools::missing(&tools::missing_of(variant, &self.tools, &answers)) {
            return Ok(Some(missing));
        }
        for mechanism in &self.mechanisms {
            let reason = mechanism.lacking(variant, &answers)?;
            if reason.is_some() {
                return Ok(reason);
            }
        }
        Ok(None)
    }

    /// What has to be known before anything is changed.
    pub(crate) fn looks(&self) -> impl Iterator<Item = Question> {
        let mechanisms = self.mechanisms.iter();
        mechanisms.flat_map(|mechanism| mechanism.looks())
    }

    /// How everything is that variants may set, with what puts it back. Nothing stands yet of what they set.
    ///
    /// # Errors
    /// `Host` for what the DUT does not tell, or could not be put back.
    pub(crate) fn keep(&mut self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        let mut steps = Vec::new();
        for mechanism in &mut self.mechanisms {
            steps.extend(mechanism.keep(answers)?);
        }
        Ok(steps)
    }

    /// Takes note of another boot.
    pub(crate) fn forget(&mut self) {
        for mechanism in &mut self.mechanisms {
            mechanism.forget();
        }
    }

    /// Takes note that only frames of this family are forwarded from now on.
    pub(crate) fn set_family(&mut self, family: AddressFamily) {
        for mechanism in &mut self.mechanisms {
            mechanism.set_family(family);
        }
    }

    /// What sets all levels of a variant but those that take a boot, in this order.
    ///
    /// # Errors
    /// `Unbound` for a level that no binding knows, and where there is no room for what it asks for.
    pub(crate) fn actions(&mut self, variant: &Variant) -> Result<Vec<Action>, LabError> {
        self.prove_bound(variant)?;
        let mut actions = Vec::new();
        for mechanism in &mut self.mechanisms {
            actions.extend(mechanism.actions(variant)?);
        }
        Ok(actions)
    }

    /// What reads back as something else than the variant's; none where all is as asked. What can be is watched from before
    /// it is read.
    ///
    /// # Errors
    /// Those of the transport.
    pub(crate) fn moved(
        &mut self,
        transport: &mut dyn Transport,
        variant: &Variant,
    ) -> Result<Option<Moved>, LabError> {
        self.prove_bound(variant)?;
        for mechanism in &self.mechanisms {
            if let Some(watch) = mechanism.watch(variant)? {
                transport.watch(&watch)?;
            }
        }
        let all = (0..self.mechanisms.len()).map(|place| (place, None));
        self.first_moved(transport, variant, all.collect())
    }

    /// The same once it was read back. What is watched is only read where it was changed since.
    ///
    /// # Errors
    /// Those of the transport.
    pub(crate) fn moved_since(
        &mut self,
        transport: &mut dyn Transport,
        variant: &Variant,
    ) -> Result<Option<Moved>, LabError> {
        let mut suspects = Vec::new();
        for (place, mechanism) in self.mechanisms.iter().enumerate() {
            let noticed = match mechanism.watch(variant)? {
                Some(watch) => transport.noticed(&watch)?,
                None => Noticed::NotWatched,
            };
            match noticed {
                Noticed::NotWatched => suspects.push((place, None)),
                Noticed::NoChange => {}
                Noticed::Change(moved) => suspects.push((place, Some(moved))),
            }
        }
        self.first_moved(transport, variant, suspects)
    }

    /// The first that was moved of some mechanisms, by their places, each with what was noticed of it.
    fn first_moved(
        &mut self,
        transport: &mut dyn Transport,
        variant: &Variant,
        suspects: Vec<(usize, Option<Moved>)>,
    ) -> Result<Option<Moved>, LabError> {
        let mut questions = Vec::new();
        for &(place, _) in &suspects {
            questions.extend(self.mechanisms[place].reads(variant)?);
        }
        let answers = transport.ask(&questions, Asks::Run)?;
        for (place, noticed) in suspects {
            let moved = self.mechanisms[place].moved(variant, &answers)?.or(noticed);
            if moved.is_some() {
                return Ok(moved);
            }
        }
        Ok(None)
    }

    /// What tells how many frames were dropped by what variants may set.
    pub(crate) fn counters(&self) -> Vec<Vec<String>> {
        let mechanisms = self.mechanisms.iter();
        mechanisms
            .flat_map(|mechanism| mechanism.counters())
            .collect()
    }

    /// Those frames so far, by reason, from the answers of the counters.
    ///
    /// # Errors
    /// Those of the transport.
    pub(crate) fn drops(
        &self,
        transport: &mut dyn Transport,
        answers: &Answers,
    ) -> Result<Drops, LabError> {
        let mut drops = transport.drops()?;
        for mechanism in &self.mechanisms {
            drops.extend(mechanism.drops(answers));
        }
        Ok(drops)
    }

    /// Fails where nothing says how a factor is set.
    fn prove_bound(&self, variant: &Variant) -> Result<(), LabError> {
        let mut levels = variant.levels.iter();
        let unbound = levels.find(|(factor, _)| !self.factors.contains(*factor));
        unbound.map_or(Ok(()), |(factor, level)| Err(unbound_level(factor, level)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fwdlab_model::{Level, VariantName};

    use super::*;
    use crate::journal::Journal;
    use crate::mechanism::DutPlace;
    use crate::mechanism::by_level::ByLevel;
    use crate::mechanism::nft::LinuxNft;
    use crate::mechanism::transport::Watch;

    /// Lists one ruleset, and has noticed a change or not.
    struct Listing {
        ruleset: &'static str,
        has_changed: bool,
        asked: usize,
    }

    impl Transport for Listing {
        fn ask(&mut self, questions: &[Question], _: Asks) -> Result<Answers, LabError> {
            self.asked += questions.len();
            let mut answers = Answers::default();
            for look in questions.iter().filter_map(Question::look) {
                let listed = Some(self.ruleset.to_owned());
                answers.printed.insert(look.words(), listed);
            }
            Ok(answers)
        }

        fn carry_out(&mut self, _: &mut Journal, _: Vec<Action>) -> Result<bool, LabError> {
            Ok(false)
        }

        fn drops(&mut self) -> Result<Drops, LabError> {
            Ok(Drops::new())
        }

        fn noticed(&mut self, watch: &Watch) -> Result<Noticed, LabError> {
            let change = || Noticed::Change(Moved::of(&watch.setting, "1", "3"));
            Ok(match self.has_changed {
                true => change(),
                false => Noticed::NoChange,
            })
        }
    }

    #[test]
    fn what_is_watched_is_read_only_where_it_was_changed() {
        let rulesets = [("one", "table ip t"), ("none", "")];
        let rulesets = rulesets.map(|(level, text)| (level.to_owned(), text.to_owned()));
        let rulesets = ByLevel::of_factor("filter", &BTreeMap::from(rulesets));
        let mut settings = Settings {
            mechanisms: vec![Box::new(LinuxNft::new(
                rulesets,
                &DutPlace::in_namespace(false),
            ))],
            factors: BTreeSet::from(["filter".to_owned()]),
            tools: Vec::new(),
        };
        let variant = |level: &str| Variant {
            name: VariantName::from_label(level),
            label: level.to_owned(),
            levels: BTreeMap::from([("filter".to_owned(), Level::Text(level.to_owned()))]),
            control_of: None,
            unavailable: None,
        };
        let mut listing = Listing {
            ruleset: "table ip t",
            has_changed: false,
            asked: 0,
        };
        let mut moved = |listing: &mut Listing, level: &str, is_since: bool| {
            listing.asked = 0;
            let variant = variant(level);
            let moved = if is_since {
                settings.moved_since(listing, &variant)
            } else {
                assert!(settings.actions(&variant).is_ok());
                settings.moved(listing, &variant)
            };
            (moved.unwrap().map(|moved| moved.to_string()), listing.asked)
        };
        // Nothing was set yet that could be emptied.
        assert_eq!(moved(&mut listing, "none", false), (None, 0));
        assert_eq!(moved(&mut listing, "one", false), (None, 1));
        assert_eq!(moved(&mut listing, "one", true), (None, 0));
        listing.has_changed = true;
        let (back, asked) = moved(&mut listing, "one", true);
        assert!(back.unwrap().starts_with("the generation of"));
        assert_eq!(asked, 1);
        listing.ruleset = "";
        let (gone, _) = moved(&mut listing, "one", true);
        assert!(gone.unwrap().starts_with("the nft ruleset was set to"));
        assert_eq!(moved(&mut listing, "none", false).1, 1);
    }
}
