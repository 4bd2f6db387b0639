//! What a variant's levels make of the router.

use fwdlab_model::{Binding, Knob, Lab, Level, Resolved, Variant};
use fwdlab_router::Knobs;

use super::network::OWN_ROUTES;
use crate::LabError;

/// What a variant makes of the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) knobs: Knobs,
    pub(super) routes: u32,
}

/// What a variant's levels say of the router.
///
/// # Errors
/// `Unbound` where a level is none that the binding has: an experiment is checked when it is read.
pub(super) fn setting(resolved: &Resolved, variant: &Variant) -> Result<Setting, LabError> {
    bound(&resolved.lab, variant)
}

fn bound(lab: &Lab, variant: &Variant) -> Result<Setting, LabError> {
    let mut setting = Setting {
        knobs: Knobs::default(),
        routes: OWN_ROUTES,
    };
    for (factor, binding) in &lab.bindings {
        let Some(level) = variant.levels.get(factor) else {
            continue;
        };
        let unbound = || LabError::Unbound {
            factor: factor.clone(),
            level: level.to_string(),
        };
        match binding {
            Binding::Knob { knob } => {
                let number = knob_number(*knob, level).ok_or_else(unbound)?;
                setting.knobs = setting.knobs.with(*knob, number);
            }
            Binding::Routes => {
                let Level::Integer(count) = level else {
                    return Err(unbound());
                };
                setting.routes = u32::try_from(*count).map_err(|_| unbound())?;
            }
            _ => return Err(unbound()),
        }
    }
    Ok(setting)
}

fn knob_number(knob: Knob, level: &Level) -> Option<u32> {
    u32::try_from(knob.number(level)?).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fwdlab_model::VariantName;

    use super::*;

    #[test]
    fn what_a_variant_says_of_its_factors_is_what_the_router_is_set_to() {
        let mut lab = Lab::netns("router");
        for knob in Knob::ALL {
            let binding = Binding::Knob { knob };
            lab.bindings.insert(knob.name().to_owned(), binding);
        }
        lab.bindings.insert("routes".to_owned(), Binding::Routes);
        let of = |factor: &str, level: i64| {
            let variant = Variant {
                name: VariantName::from_label("a"),
                label: "a".to_owned(),
                levels: BTreeMap::from([(factor.to_owned(), Level::Integer(level))]),
                control_of: None,
                unavailable: None,
            };
            bound(&lab, &variant)
        };
        for knob in Knob::ALL {
            let other = match knob.default_level() {
                0 => 1,
                1 => 0,
                larger => 2 * larger,
            };
            for level in [knob.default_level(), other] {
                let setting = of(knob.name(), level).unwrap();
                let number = u32::try_from(level).unwrap();
                assert_eq!(setting.knobs, Knobs::default().with(knob, number));
                assert_eq!(setting.routes, OWN_ROUTES);
            }
        }
        let setting = of("routes", 1000).unwrap();
        assert_eq!((setting.knobs, setting.routes), (Knobs::default(), 1000));
        // What no factor says stays as it is.
        assert_eq!(of("elsewhere", 1).unwrap().knobs, Knobs::default());
        assert!(matches!(of("l2_prepend", 2), Err(LabError::Unbound { .. })));
        assert!(matches!(of("routes", -1), Err(LabError::Unbound { .. })));
    }
}
