use fwdlab_archive::netbenches::*;
use std::collections::BTreeMap;
use std::time::Instant;
fn main() {
    let root = std::env::args().nth(1).unwrap();
    let start = Instant::now();
    let tree = ArchiveTree::read(root.as_ref()).unwrap();
    eprintln!(
        "{:?} {} files {} folders",
        start.elapsed(),
        tree.files.len(),
        tree.folders.len()
    );
    let mut t: BTreeMap<String, usize> = BTreeMap::new();
    for f in &tree.files {
        let what = match &f.outcome {
            Outcome::Read(_) => "read".into(),
            Outcome::Skipped(s) => s.to_string(),
            Outcome::Failed(p) => {
                if !p.message.contains("TODO") {
                    println!("{}:{:?} {}", f.path.display(), p.line, p.message);
                }
                "failed".into()
            }
        };
        *t.entry(format!("{} {what}", f.kind.as_str())).or_default() += 1;
    }
    for (k, v) in t {
        println!("{v} {k}");
    }
    let mut o: BTreeMap<String, usize> = BTreeMap::new();
    for folder in &tree.folders {
        for d in &folder.datasets {
            let ending = tree.files[d.file]
                .path
                .extension()
                .is_some_and(|e| e == "pps");
            let k = match &d.origin {
                Origin::Logs { median, .. } => format!("logs {median:?}"),
                Origin::OtherLogs { median, .. } => format!("other {median:?}"),
                Origin::Altered { group, .. } => {
                    let g = &folder.groups[*group];
                    println!(
                        "ALT {} {:?} {:?} {:?}",
                        tree.files[d.file].path.display(),
                        g.folder,
                        g.key,
                        g.published(
                            &tree.files,
                            fwdlab_archive::pkt_gen::PublishedMedian::Averaged
                        )
                    );
                    "altered".into()
                }
                Origin::NoLogs => "nologs".into(),
            };
            *o.entry(format!("pps={ending} {k}")).or_default() += 1;
        }
    }
    for (k, v) in o {
        println!("{v} {k}");
    }
    println!(
        "{}",
        std::fs::read_to_string("/proc/self/status")
            .unwrap()
            .lines()
            .find(|l| l.starts_with("VmHWM"))
            .unwrap()
    );
}
