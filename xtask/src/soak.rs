//! Long storms, of which the ordinary tests run a few seeded cases.

use anyhow::Result;

use crate::command::{cargo, run};

/// Tests that do more where this is set.
const SOAK: &str = "FWDLAB_SOAK";

/// Kills runs at 200 moments, and lets every single effect of a run fail; takes about an hour.
pub(crate) fn soak() -> Result<()> {
    for (test, name) in [
        (
            "interruption",
            "a_run_killed_at_any_moment_goes_on_to_the_same_plan",
        ),
        (
            "faults",
            "whichever_effect_fails_the_run_goes_on_afterwards",
        ),
    ] {
        let arguments = ["test", "--release", "--package", "fwdlab", "--test", test];
        run(cargo(arguments)
            .args([name, "--", "--exact", "--nocapture"])
            .env(SOAK, "1"))?;
    }
    Ok(())
}
