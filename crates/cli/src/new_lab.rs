//! `fwdlab lab new`: a first lab file of two hosts, written by looking at them and at what their cables do.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueHint};
use fwdlab_lab::Survey;
use fwdlab_lab::cabling::{Cabling, End, HostFacts, Layout, Port, Side, lab_file, speed};
use fwdlab_model::{check_destination, load_lab};
use fwdlab_sys::give_to_caller;
use serde_json::json;

use crate::disk::Disk;
use crate::exit::{Code, DONE, GOAL_MISSED, INTERRUPTED, WrongArguments};
use crate::output::{self, tell};
use crate::restore::tell_put_back;

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Log in to a DUT and a tester, find the cables between them by setting ports down, and write a lab file
    New(NewArguments),
}

#[derive(Debug, Args)]
pub(crate) struct NewArguments {
    /// The host that forwards, as ssh reaches it: root@HOST
    #[arg(value_name = "DUT", value_parser = destination)]
    pub(crate) dut: String,
    /// The host that sends and counts
    #[arg(value_name = "TESTER", value_parser = destination)]
    pub(crate) tester: String,
    /// The lab file to write; it may not be there yet
    #[arg(long, short, value_name = "FILE", default_value = "lab.toml", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Set ports down without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// A file for `ssh -F`, which the lab file then names too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ssh_config: Option<PathBuf>,
    /// Print what was found as JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

fn destination(text: &str) -> Result<String, String> {
    check_destination(text)
        .map(|()| text.to_owned())
        .map_err(|fault| format!("no destination for ssh: {fault}"))
}

pub(crate) fn lab(command: &LabCommand) -> anyhow::Result<Code> {
    let LabCommand::New(arguments) = command;
    let file = &arguments.output;
    if fs::symlink_metadata(file).is_ok() {
        let text = format!(
            "{} is there already; name another file with -o, or remove it",
            file.display()
        );
        return Err(WrongArguments(text).into());
    }
    let ssh_config = arguments.ssh_config.as_ref().map(std::path::absolute);
    let ssh_config = ssh_config.transpose()?;
    if let Some(folder) = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        && !folder.is_dir()
    {
        let text = format!("{}: no such folder; make it first", folder.display());
        return Err(WrongArguments(text).into());
    }
    tell(&format!(
        "logging in to {} and {}",
        arguments.dut, arguments.tester
    ));
    let hosts = [&*arguments.dut, &*arguments.tester];
    let state_directory = fwdlab_lab::state_directory()?;
    let mut survey = Survey::open(
        hosts,
        ssh_config.clone(),
        &state_directory,
        &mut tell_put_back,
    )?;
    for (side, facts) in Side::ALL.into_iter().zip(survey.facts()) {
        for port in &facts.ports {
            if let Some(why) = &port.kept {
                tell(&format!("{side}'s {} is not set down: {why}", port.name));
            }
        }
    }
    let to_set_down = survey.to_set_down();
    if !to_set_down.is_empty() && !arguments.yes {
        let ports: Vec<String> = to_set_down.iter().map(End::to_string).collect();
        let question = format!(
            "each of these ports will be set down for some seconds, or up where it is down, and may get some thousand \
             frames; then it will be as it was: {}",
            ports.join(", ")
        );
        if !is_agreed(&question)? {
            tell("nothing was set down, and no file was written");
            return Ok(INTERRUPTED);
        }
    }
    // Until here an interrupt ends the process: nothing is changed.
    let interrupts = fwdlab_sys::watch_interrupts()?;
    let cabling = survey.find(interrupts, &mut tell).inspect_err(|_| {
        if survey.has_changes() {
            tell("ports are not as they were; `fwdlab restore` puts them back");
        }
    })?;
    let [dut, tester] = survey.facts();
    let layout = Layout::of(dut, tester, &cabling);
    let text = lab_file(dut, tester, &layout, ssh_config.as_deref());
    write(file, &text)?;
    if arguments.json {
        let document = json!({
            "file": file,
            "is_whole": layout.is_whole(),
            "to_dut": layout.to_dut,
            "from_dut": layout.from_dut,
            "remarks": layout.remarks,
            "dut": dut,
            "tester": tester,
            "cabling": cabling,
        });
        output::print(&format!("{document:#}\n"))?;
    } else {
        output::print(&found(dut, tester, &cabling, &layout))?;
    }
    if layout.is_whole()
        && let Err(errors) = load_lab(file, &Disk)
    {
        // What is written is to be read as it is.
        return Err(errors).with_context(|| format!("{}: of fwdlab's own making", file.display()));
    }
    tell(&format!("written: {}", file.display()));
    let named = file.to_string_lossy();
    let named = shlex::try_quote(&named)?;
    if layout.is_whole() {
        tell(&format!("next: fwdlab doctor {named} --quick"));
        return Ok(DONE);
    }
    tell(&format!(
        "next: write the ports that are missing into {named}, then fwdlab doctor {named} --quick"
    ));
    Ok(GOAL_MISSED)
}

/// Asks at the terminal whether something may be done.
fn is_agreed(question: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let text = format!("{question}; no terminal to ask at; pass --yes to agree");
        return Err(WrongArguments(text).into());
    }
    write!(io::stderr(), "{question}\ngo on? [y/N] ")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&&*answer.trim().to_ascii_lowercase()))
}

/// Writes a file that is not there yet.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let write = || {
        let mut file = File::create_new(path)?;
        give_to_caller(&file);
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write()
        .map_err(|error: io::Error| WrongArguments(format!("{}: {error}", path.display())).into())
}

/// What was found, for a reader.
fn found(dut: &HostFacts, tester: &HostFacts, cabling: &Cabling, layout: &Layout) -> String {
    let mut text = String::new();
    for (side, host) in [(Side::Dut, dut), (Side::Tester, tester)] {
        _ = writeln!(
            text,
            "{side} {}: {}, {} CPUs, with {}",
            host.host,
            host.release,
            host.cpus,
            match &*host.programs.join(", ") {
                "" => "none of the programs that factors may need",
                programs => programs,
            }
        );
        let rows: Vec<[String; 4]> = host
            .ports
            .iter()
            .map(|port| {
                let end = End {
                    side,
                    port: port.name.clone(),
                };
                [
                    port.name.clone(),
                    port.driver.clone().unwrap_or_default(),
                    link(port),
                    other_end(&end, cabling)
                        .or_else(|| port.kept.as_ref().map(|why| format!("not set down: {why}")))
                        .unwrap_or_default(),
                ]
            })
            .collect();
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths = [0, 1, 2].map(width);
        for [name, driver, link, what] in &rows {
            let [of_name, of_driver, of_link] = widths;
            let line = format!("  {name:of_name$}  {driver:of_driver$}  {link:of_link$}  {what}");
            _ = writeln!(text, "{}", line.trim_end());
        }
    }
    if let (Some(to), Some(from)) = (&layout.to_dut, &layout.from_dut) {
        _ = writeln!(
            text,
            "tester's {} -> DUT's {}, DUT's {} -> tester's {}",
            to.tester, to.dut, from.dut, from.tester
        );
    }
    for remark in &layout.remarks {
        _ = writeln!(text, "- {remark}");
    }
    text
}

fn link(port: &Port) -> String {
    match (port.has_link, port.speed_mbps) {
        (false, _) => "no link".to_owned(),
        (true, None) => "link".to_owned(),
        (true, Some(mbps)) => speed(mbps),
    }
}

fn other_end(end: &End, cabling: &Cabling) -> Option<String> {
    let cable = cabling.cables.iter().find_map(|cable| match end.side {
        Side::Dut => (cable.dut == end.port).then(|| format!("tester's {}", cable.tester)),
        Side::Tester => (cable.tester == end.port).then(|| format!("DUT's {}", cable.dut)),
    });
    let of_loop = || {
        let pair = cabling.loops.iter().find(|pair| pair.contains(end))?;
        pair.iter().find(|other| *other != end).map(End::to_string)
    };
    cable.or_else(of_loop)
}
