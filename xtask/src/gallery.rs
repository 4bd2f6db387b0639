//! Draws up docs/gallery.md: pictures of what fwdlab makes of the quickstart, of the reference router's experiments, and of
//! five published results from their raw logs.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::command::{self, command, is_installed, repository};
use crate::experiments::{self, Ready};

/// The page, and the folder of its pictures, from the root of the repository.
const PAGE: &str = "docs/gallery.md";
const PICTURES: &str = "docs/gallery";
/// Where the part of the public archive that tests read lies.
const ARCHIVE: &str = "../shared/corpus/netbenches";

const QUICKSTART: &str = "quickstart";
/// The published experiments that run on the reference router of any machine.
const ROUTER: [&str; 4] = [
    "l2-prepend",
    "tx_reclaim_thresh",
    "simple_tx-prefetch",
    "harvest-mask",
];

/// The published results: a name for files, and where the archive has the raw logs.
const PUBLISHED: [(&str, &str); 5] = [
    (
        "hyperthreading",
        "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/hyperthreading/results/fbsd15-n302145",
    ),
    (
        "tx_reclaim_thresh",
        "Atom_C2758_8Cores/Intel_82599/iflib.tx_reclaim_thresh/results/fbsd15-n302145simplecache",
    ),
    (
        "simple_tx",
        "Atom_C2758_8Cores/Intel_82599/iflib.simple_tx/results/fbsd15-n302145simplecache",
    ),
    (
        "harvest_mask",
        "AMD_Ryzen7-Pro-8845HS_8Cores/Intel_X710/harvest_mask/results/fbsd15-n302145",
    ),
    (
        "l2-prepend",
        "Atom_C2758_8Cores/Chelsio_T540-CR/firewalls/results/fbsd14-n277567-D33658",
    ),
];

const HEAD: &str = "\
# Gallery

What fwdlab shows, as it made it: `cargo xtask gallery` measures, imports and takes the pictures. Each report is one file,
`derived/report.html`, that opens from disk; each picture below is a part of one.

";

/// A picture to be taken of a run's page.
struct Shot {
    name: String,
    caption: String,
    size: (u32, u32),
    scheme: &'static str,
    from: Option<&'static str>,
    act: Option<&'static str>,
}

/// Measures what is not measured with this code, and draws up the page.
///
/// # Errors
/// A tool or the archive is missing, or something fails; the page then stays as it was.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let archive = match arguments {
        [] => repository().join(ARCHIVE),
        ["--archive", archive] => PathBuf::from(archive),
        _ => bail!("gallery: nothing but --archive DIR can be given"),
    };
    if !archive.is_dir() {
        bail!(
            "gallery: {}: no such folder; --archive DIR names the public archive, or the part of it that the tests read",
            archive.display()
        );
    }
    for tool in ["node", "chromium"] {
        if !is_installed(tool) {
            bail!("gallery: no {tool}; `cargo xtask setup` installs it");
        }
    }
    let program = experiments::built_program()?;
    let pictures = repository().join(PICTURES);
    fs::create_dir_all(&pictures)?;
    let mut page = HEAD.to_owned();
    let mut shots = Vec::new();

    page += "## The quickstart\n\n";
    let quickstart = experiments::find(QUICKSTART)?;
    let (directory, report) = measured(&program, &quickstart)?;
    introduce(&mut page, &quickstart, &report);
    for shot in quickstart_shots() {
        show(&mut page, &mut shots, &directory, &shot);
    }
    page += "While it is measured, the terminal shows it block by block: [a run while it is measured](live.md).\n\n";

    page += "## On the reference router\n\n\
        The published experiments, each with its factors, levels, comparisons and address families, on the \
        [reference router](router.md) of a small virtual machine. What can be compared with the published results, and what \
        cannot: [the published results, here](seeds.md).\n\n";
    for name in ROUTER {
        let ready = experiments::find(name)?;
        let (directory, report) = measured(&program, &ready)?;
        let _ = writeln!(page, "### {name}\n");
        introduce(&mut page, &ready, &report);
        show(&mut page, &mut shots, &directory, &router_shot(name));
    }

    page += "## Five published results, from their raw logs\n\n\
        `fwdlab import netbenches` reads the logs, `fwdlab report` makes the published text again, with its numbers, and judges \
        them: the comparisons of a block of ministat together, by Welch's t of the logarithms. What differs from the \
        published texts, line by line: [the published texts, made again](seeds.md#the-published-texts-made-again). Not \
        shown to differ is not the same as alike: the words tell them apart.\n\n";
    published(&mut page, &program, &archive, &pictures)?;

    take(&shots)?;
    fs::write(repository().join(PAGE), page.trim_end().to_owned() + "\n").context(PAGE)?;
    println!("{PAGE} is drawn up");
    Ok(())
}

/// A result of this code and its report, made again.
fn measured(program: &Path, ready: &Ready) -> Result<(PathBuf, Value)> {
    if !experiments::measure(program, ready, false)? {
        bail!("gallery: {} could not be measured", ready.name);
    }
    let directory = experiments::newest(ready)?
        .with_context(|| format!("gallery: no finished run of {}", ready.name))?;
    let report = experiments::report(program, &directory)?;
    Ok((directory, report))
}

fn introduce(page: &mut String, ready: &Ready, report: &Value) {
    let text = |pointer: &str| {
        report
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("")
    };
    let _ = writeln!(
        page,
        "`fwdlab run {}`: *{}* {}, {}.\n",
        ready.source,
        text("/question"),
        text("/lab/cpu_model"),
        text("/lab/kernel").split(' ').next().unwrap_or("")
    );
}

fn quickstart_shots() -> Vec<Shot> {
    let shot = |name: &str, caption: &str, size, scheme, from, act| Shot {
        name: format!("{QUICKSTART}-{name}.png"),
        caption: caption.to_owned(),
        size,
        scheme,
        from,
        act,
    };
    vec![
        shot(
            "verdicts",
            "Verdicts, their reasons, and the effects",
            (1200, 1000),
            "light",
            None,
            None,
        ),
        shot(
            "trials",
            "Every trial over time, and the slices of one",
            (1200, 1180),
            "light",
            Some("#trials"),
            Some("slices"),
        ),
        shot(
            "difference",
            "Where connection tracking spends what it costs: orange-red functions cost more",
            (1200, 1000),
            "dark",
            Some("#why"),
            Some("difference"),
        ),
        shot("phone", "On a phone", (390, 844), "dark", None, None),
    ]
}

fn router_shot(name: &str) -> Shot {
    Shot {
        name: format!("router-{name}.png"),
        caption: format!("The report of {name} on the reference router"),
        size: (1200, 1000),
        scheme: "light",
        from: None,
        act: None,
    }
}

/// Puts a picture on the page, and among those to be taken.
fn show(page: &mut String, shots: &mut Vec<Value>, directory: &Path, shot: &Shot) {
    let _ = writeln!(page, "![{}](gallery/{})\n", shot.caption, shot.name);
    shots.push(json!({
        "page": directory.join("derived/report.html"),
        "file": repository().join(PICTURES).join(&shot.name),
        "width": shot.size.0,
        "height": shot.size.1,
        "scheme": shot.scheme,
        "from": shot.from,
        "act": shot.act,
    }));
}

fn take(shots: &[Value]) -> Result<()> {
    let chromium = env::split_paths(&env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join("chromium"))
        .find(|path| path.is_file())
        .context("no chromium on the PATH")?;
    let list = serde_json::to_string(shots)?;
    let mut node = command("node", ["shots.mjs", &list]);
    node.current_dir(repository().join("crates/report/page"));
    command::output(node.env("FWDLAB_CHROMIUM", chromium)).map(drop)
}

/// The published results: what fwdlab makes of each block of ministat.
fn published(page: &mut String, program: &Path, archive: &Path, pictures: &Path) -> Result<()> {
    let scratch = repository().join("target/gallery");
    let fwdlab = |arguments: &[&str], path: &Path| {
        let mut fwdlab = command(&program.to_string_lossy(), arguments.iter().copied());
        fwdlab.arg(path);
        fwdlab
    };
    let results = scratch.to_string_lossy();
    command::output(&mut fwdlab(
        &["import", "netbenches", "--results", &results],
        archive,
    ))?;
    for (name, folder) in PUBLISHED {
        let folder = scratch.join("results").join(folder);
        let report = command::output(&mut fwdlab(&["report", "--json"], &folder))?;
        let report: Value =
            serde_json::from_str(&report).context("a report of imported results")?;
        let blocks = report["blocks"].as_array().map_or(&[][..], Vec::as_slice);
        let _ = writeln!(
            page,
            "### {name}\n\n`{}`\n",
            report["source"].as_str().unwrap_or("")
        );
        for block in blocks.iter().filter(|block| block["judged"].is_object()) {
            let line = &block["line"];
            let groups = block["judged"]["groups"].as_array();
            let rows = groups
                .into_iter()
                .flatten()
                .filter_map(|group| group["rows"].as_array());
            for row in rows.flatten() {
                let (Some(label), Some(sentence)) =
                    (row["label"].as_str(), row["verdict"]["sentence"].as_str())
                else {
                    continue;
                };
                let _ = writeln!(page, "- **{}**: {sentence}", label.replace('_', "\\_"));
            }
            let picture = format!("published-{name}-{line}.svg");
            let plot = folder.join(format!("derived/effects-{line}.svg"));
            fs::copy(&plot, pictures.join(&picture)).with_context(|| plot.display().to_string())?;
            let _ = writeln!(
                page,
                "\n![Effects with their intervals](gallery/{picture})\n"
            );
        }
    }
    Ok(())
}
