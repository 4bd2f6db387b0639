//! A record as a file holds it, which an earlier version may have written.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::record::{BlockRecord, Record, SCHEMA_VERSION, TrialRecord};

/// Under this reason, drops of schema 1 held the frames that the tester's own port did not transmit.
const NOT_TRANSMITTED: &str = "not transmitted by the tester";

/// A record of any schema up to [`SCHEMA_VERSION`].
#[derive(Deserialize)]
#[serde(tag = "record", rename_all = "lowercase")]
pub(crate) enum WrittenRecord {
    Trial(TrialRecord),
    Block(BlockRecord),
}

impl From<WrittenRecord> for Record {
    fn from(written: WrittenRecord) -> Self {
        match written {
            WrittenRecord::Trial(mut trial) => {
                if trial.schema < 2 {
                    trial.tester.not_transmitted_frames = not_transmitted(&mut trial.dut.drops);
                    trial.schema = SCHEMA_VERSION;
                }
                Self::Trial(trial)
            }
            WrittenRecord::Block(mut block) => {
                if block.schema < 2 {
                    for frames in block.conservation.values_mut() {
                        frames.not_transmitted_frames = not_transmitted(&mut frames.drops);
                    }
                    block.schema = SCHEMA_VERSION;
                }
                Self::Block(block)
            }
        }
    }
}

fn not_transmitted(drops: &mut BTreeMap<String, u64>) -> u64 {
    drops.remove(NOT_TRANSMITTED).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The same record in both schemas, each part with some frames in `drops` and some not transmitted.
    fn written(schema: u32, mut record: Value, frames: &str) -> Value {
        record["schema"] = schema.into();
        let part = match frames {
            "" => &mut record,
            pointer => record.pointer_mut(pointer).unwrap(),
        };
        if schema == 1 {
            part["drops"] = json!({ "full ring": 7, NOT_TRANSMITTED: 300 });
        } else {
            part["drops"] = json!({ "full ring": 7 });
            part["not_transmitted_frames"] = 300.into();
        }
        record
    }

    #[test]
    fn a_record_of_schema_1_reads_as_its_form_of_today() {
        let trial = json!({
            "record": "trial", "session": 1, "block": 2, "attempt": 1, "order": 0, "variant": "none",
            "family": "inet", "start": "", "measured_s": 1.0, "offered_frames": 1000,
            "forwarded_frames": 693, "dut_cpus": [{ "cpu": 3, "watched_s": 1.0, "busy_s": 0.5,
            "interrupts_s": 0.25, "stolen_s": 0.0 }], "undisturbed_s": 1.0, "observation_pps": 693.0,
            "pooled_pps": 693.0, "steal_s": 0.0, "calibration_ns": 0.0, "invalid": []
        });
        let block = json!({
            "record": "block", "session": 1, "block": 2, "attempt": 1, "start": "", "set_up_s": 1.0,
            "switch_s": 0.1, "conservation": { "inet": { "offered_frames": 1000, "forwarded_frames": 693,
            "unaccounted_frames": 0, "foreign_frames": 0, "verification": { "checked_frames": 10,
            "wrong_frames": {}, "flows_seen": 10 } } }, "generator_cost_ns": {},
            "undisturbed_loop_ns": 0.0, "rate_basis": { "inet": "all-time" }
        });
        for (record, frames) in [(trial, ""), (block, "/conservation/inet")] {
            let [first, today] = [1, SCHEMA_VERSION]
                .map(|schema| written(schema, record.clone(), frames))
                .map(|record| serde_json::from_value::<Record>(record).unwrap());
            assert_eq!(first, today);
            let again = serde_json::to_value(&first).unwrap();
            let part = again.pointer(frames).unwrap();
            assert_eq!(part["not_transmitted_frames"], 300);
            assert_eq!(part["drops"], json!({ "full ring": 7 }));
            assert_eq!(again["schema"], SCHEMA_VERSION);
        }
    }

    #[test]
    fn a_reason_of_that_name_stays_a_reason_today() {
        let mut record = written(
            SCHEMA_VERSION,
            json!({
                "record": "block", "session": 1, "block": 2, "attempt": 1, "start": "", "set_up_s": 1.0,
                "switch_s": 0.1, "conservation": { "inet": { "offered_frames": 1, "forwarded_frames": 1,
                "unaccounted_frames": 0, "foreign_frames": 0, "verification": { "checked_frames": 0,
                "wrong_frames": {}, "flows_seen": 0 } } }, "generator_cost_ns": {},
                "undisturbed_loop_ns": 0.0, "rate_basis": {}
            }),
            "/conservation/inet",
        );
        record["conservation"]["inet"]["drops"] = json!({ NOT_TRANSMITTED: 1 });
        let Record::Block(block) = serde_json::from_value(record).unwrap() else {
            panic!("it is a block");
        };
        let frames = &block.conservation[&crate::Stratum::INET];
        assert_eq!(
            (frames.not_transmitted_frames, frames.drops.len()),
            (300, 1)
        );
    }
}
