//! An experiment file and a lab file, apart by a line of `---`, are resolved or refused with places.
#![no_main]

use std::io;
use std::path::Path;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (experiment, lab) = text
        .split_once("\n---\n")
        .unwrap_or((text, "kind = \"netns\"\n"));
    let read = |path: &Path| match path.to_str() {
        Some("experiment.toml") => Ok(experiment.to_owned()),
        Some("lab.toml") => Ok(lab.to_owned()),
        // A ruleset that the lab names.
        Some(_) => Ok("table inet filter {}\n".to_owned()),
        None => Err(io::ErrorKind::NotFound.into()),
    };
    let path = Path::new("experiment.toml");
    match fwdlab_model::load(path, Some(Path::new("lab.toml")), &read, 1) {
        Ok(loaded) => {
            assert_eq!(loaded.warnings.errors(), 0);
            // What was resolved is data that reads back as it is.
            let text = serde_json::to_string(&loaded.resolved).expect("it is plain data");
            let back: fwdlab_model::Resolved = serde_json::from_str(&text).expect("as written");
            assert_eq!(back, loaded.resolved);
            assert_eq!(back.hash(), loaded.resolved.hash());
        }
        Err(diagnostics) => {
            assert!(diagnostics.errors() > 0);
            assert!(!diagnostics.render(false).is_empty());
        }
    }
});
