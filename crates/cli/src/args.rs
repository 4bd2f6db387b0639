//! The command line.

use std::env;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{
    ArgAction, Args, CommandFactory as _, FromArgMatches, Parser, Subcommand, ValueEnum, ValueHint,
};
use clap_complete::Shell;
use fwdlab_model::{
    AddressFamily, FrameSizes, LoadChoice, PortRange, Tester, Zipf, change_options, nearest,
    parse_address,
};
use fwdlab_packet::MacAddress;
use fwdlab_report::Gate;
use fwdlab_stats::ministat::Dialect;

use crate::audit::AuditArguments;
use crate::bench_lab::BenchLabArguments;
use crate::export::ExportCommand;
use crate::flame::FlameCommand;
use crate::ls::LsArguments;
use crate::new_lab::LabCommand;
use crate::query::QueryArguments;
use crate::schema::FileKind;
use crate::values::{
    addresses, burst, confidence, dialect, family, flows, frames_a_second, minutes, parse_time,
    rule_codes, sender, threshold, vlan,
};

/// How `--help` groups the commands: every one stands in one group.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Measure",
        &["lab", "ab", "run", "watch", "plan", "doctor", "restore"],
    ),
    (
        "Results",
        &[
            "show", "report", "analyze", "compare", "lint", "ministat", "ls", "query",
        ],
    ),
    ("Archive", &["import", "audit", "export"]),
    ("Profiles", &["flame"]),
    ("Traffic", &["gen", "sink"]),
    ("Files and shells", &["schema", "completions"]),
];

/// Does X change how fast this box forwards packets, by how much, and why?
#[derive(Debug, Parser)]
#[command(version, disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// The command line's arguments.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let matches = Self::grouped().try_get_matches().map_err(advised)?;
        Self::from_arg_matches(&matches)
    }

    /// The command with its help in groups, which clap knows for options only.
    pub(crate) fn grouped() -> clap::Command {
        let mut command = Self::command();
        let width = command
            .get_subcommands()
            .map(|subcommand| subcommand.get_name().len())
            .max()
            .unwrap_or(0);
        let mut commands = String::new();
        for (heading, names) in GROUPS {
            commands += &format!("{heading}:\n");
            for subcommand in names
                .iter()
                .filter_map(|name| command.find_subcommand(name))
            {
                let name = subcommand.get_name();
                let about = subcommand.get_about().cloned().unwrap_or_default();
                commands += &format!("  {name:width$}  {about}\n");
            }
            commands.push('\n');
        }
        command = command.help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{commands}Options:\n{{options}}"
        ));
        command
    }
}

/// The same error with what to write instead, where a command needs a word that was left out.
fn advised(mut error: clap::Error) -> clap::Error {
    let asked = env::args().nth(1).unwrap_or_default();
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let written = context(ContextKind::InvalidSubcommand);
            missing_subcommand(&asked, &written)
        }
        ErrorKind::UnknownArgument if asked == "ab" => {
            let is_value = !context(ContextKind::InvalidArg).starts_with('-');
            is_value.then(missing_mechanism)
        }
        _ => None,
    };
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    error
}

/// The arguments of `ab` with the option that says what they are.
fn missing_mechanism() -> String {
    let values = env::args()
        .skip(2)
        .take_while(|word| !word.starts_with('-'));
    let values: Vec<String> = values.collect();
    format!(
        "which mechanism? For rulesets: fwdlab ab --nft {} (`fwdlab ab --help` lists all)",
        values.join(" ")
    )
}

/// Which word has to stand between a command and what was written after it.
fn missing_subcommand(asked: &str, written: &str) -> Option<String> {
    let command = Arguments::command();
    let command = command.find_subcommand(asked)?;
    let names: Vec<&str> = command
        .get_subcommands()
        .map(clap::Command::get_name)
        .collect();
    // A slip in such a word is named by clap.
    if nearest(written, names.iter().copied()).is_some() {
        return None;
    }
    let choice = match names[..] {
        [name] => format!("the word {name}"),
        _ => format!("one of the words {}", names.join(", ")),
    };
    let mut tip = format!(
        "{asked} takes {choice} first: fwdlab {asked} {} {written}",
        names[0]
    );
    if asked == "export" {
        tip += "; CSV and JSON come from `fwdlab query` and `fwdlab report --json`";
    }
    Some(tip)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure one change: write an experiment and a lab file, and run them
    Ab(AbArguments),
    /// Measure an experiment, or go on with one that was interrupted, and publish the result
    Run(RunArguments),
    /// Show what an experiment would measure, how long it takes and what it could detect
    Plan(PlanArguments),
    /// Watch a run that another terminal measures, until it ends
    Watch(NamedArguments),
    /// Show how a run stands, finished or not: its effects, block by block; writes nothing
    Show(ShowArguments),
    /// Make README.md, plots and report.json of a results directory again from its records
    Report(ReportArguments),
    /// Judge the records of a results directory again, as asked, and write nothing
    Analyze(AnalyzeArguments),
    /// Compare observations that you have: files of numbers, or results directories
    Compare(CompareArguments),
    /// Trace every published number to its raw data, and say what is wrong, see docs/lint.md
    Lint(LintArguments),
    /// Take in results that others have published, or the lab that they were measured in
    #[command(subcommand, disable_help_subcommand = true)]
    Import(ImportCommand),
    /// Judge results that others have published again: their verdicts by every method, their noise
    Audit(AuditArguments),
    /// Look for what would spoil a measurement here, and measure how much noise the lab has
    Doctor(DoctorArguments),
    /// Write a first lab file for two hosts, by finding how they are cabled
    #[command(subcommand, disable_help_subcommand = true)]
    Lab(LabCommand),
    /// Put back what a run that was killed has left changed
    Restore(RestoreArguments),
    /// Compare samples the way FreeBSD's ministat does, byte for byte
    #[command(disable_help_flag = true)]
    Ministat(MinistatArguments),
    /// List results directories, of fwdlab and imported ones
    Ls(LsArguments),
    /// Ask any number of results directories what was forwarded, when, where and with what
    Query(QueryArguments),
    /// Lay results out in the form of others; CSV and JSON come from `query` and `report --json`
    #[command(subcommand, disable_help_subcommand = true)]
    Export(ExportCommand),
    /// Fold, draw and compare profiles that others took
    #[command(subcommand, disable_help_subcommand = true)]
    Flame(FlameCommand),
    /// Send frames of many flows from an interface of this machine, see docs/gen-and-sink.md
    Gen(GenArguments),
    /// Count and verify, at an interface of this machine, the frames that `fwdlab gen` sends
    Sink(SinkArguments),
    /// Send, count and forward frames as a run elsewhere asks over standard input and output
    #[command(hide = true)]
    Agent,
    /// Sample the kernel's stacks under a load, as a run elsewhere asks
    #[command(hide = true)]
    Stacks(StacksArguments),
    /// Print the JSON Schema of experiment or lab files
    Schema {
        /// The kind of file
        file: FileKind,
    },
    /// Print the completions of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, Args)]
#[command(override_usage = "fwdlab ab --MECHANISM BASELINE VARIANT... [OPTIONS]")]
pub(crate) struct AbArguments {
    #[command(flatten)]
    pub(crate) change: ChangeArguments,
    /// The command that puts back what --command sets
    #[arg(long, value_name = "COMMAND", requires = "command")]
    pub(crate) undo: Option<String>,
    /// A command whose output must contain the words in which the variants' commands differ
    #[arg(long, value_name = "COMMAND", requires = "command")]
    pub(crate) check: Option<String>,
    /// Address families: inet, inet6, or both with a comma
    #[arg(long, value_name = "FAMILY", default_value = "inet", value_delimiter = ',', value_parser = family())]
    pub(crate) family: Vec<AddressFamily>,
    /// Bytes of a frame, FCS included: 64 to 1518, imix, or sizes with shares like
    /// 64:7,594:4,1518:1
    #[arg(long, value_name = "BYTES", default_value = "64")]
    pub(crate) frame_size: FrameSizes,
    /// How many flows; several numbers with commas are measured one after the other and judged apart
    #[arg(long, value_name = "N", default_value = "2000", value_delimiter = ',', value_parser = flows)]
    pub(crate) flows: Vec<(u32, u32)>,
    /// Zipf exponent of the flows, 0.01 to 10; default: every flow in its turn
    #[arg(long, value_name = "EXPONENT", allow_negative_numbers = true)]
    pub(crate) zipf: Option<Zipf>,
    /// Tag every frame with this VLAN, 1 to 4094; a tag is 4 bytes more
    #[arg(long, value_name = "ID", value_parser = vlan, allow_negative_numbers = true)]
    pub(crate) vlan: Option<u16>,
    /// What is offered: lab (as the lab has it), self-clocked, overload, packets per second, or a
    /// share of the line rate like 50%
    #[arg(long, value_name = "LOAD", default_value = "lab")]
    pub(crate) load: LoadChoice,
    /// The lab to measure in; default: this machine's kernel
    #[arg(long, value_name = "FILE")]
    pub(crate) lab: Option<PathBuf>,
    /// Measure for about N minutes; default: 8 blocks of 10 rounds
    #[arg(long, value_name = "N", value_parser = minutes)]
    pub(crate) minutes: Option<f64>,
    /// Name of the files, and of the folder of results; default: what is changed
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Write the files, and do not run them
    #[arg(long)]
    pub(crate) write_only: bool,
    #[command(flatten)]
    pub(crate) measurement: MeasurementArguments,
}

/// What is changed: one mechanism of those that a lab file knows, with two words or more.
#[derive(Debug)]
pub(crate) struct ChangeArguments {
    pub(crate) mechanism: &'static str,
    pub(crate) words: Vec<String>,
}

/// The group of the options that name a mechanism.
const CHANGE: &str = "change";

impl Args for ChangeArguments {
    fn augment_args(command: clap::Command) -> clap::Command {
        let options = change_options().map(|option| {
            clap::Arg::new(option.mechanism)
                .long(option.mechanism)
                .value_name(option.word)
                .num_args(2..)
                .help(option.what)
                .help_heading("What to change: one of these, with a value for each variant, the baseline first")
        });
        let group =
            clap::ArgGroup::new(CHANGE).args(change_options().map(|option| option.mechanism));
        command.args(options).group(group)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ChangeArguments {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        let mut given = change_options().filter_map(|option| {
            let words = matches.get_many::<String>(option.mechanism)?;
            Some(Self {
                mechanism: option.mechanism,
                words: words.cloned().collect(),
            })
        });
        given
            .next()
            .ok_or_else(|| {
                let text = "nothing is changed; say what, for example --sysctl net.ipv4.conf.all.rp_filter=0 \
                            net.ipv4.conf.all.rp_filter=1 (`fwdlab ab --help` lists all)\n";
                clap::Error::raw(ErrorKind::MissingRequiredArgument, text)
            })
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// What is measured, and where.
#[derive(Debug, Args)]
pub(crate) struct FileArguments {
    /// The experiment file, see docs/experiment-file.md
    pub(crate) experiment: PathBuf,
    /// The lab to measure in, instead of the one that the experiment names
    #[arg(long, value_name = "FILE")]
    pub(crate) lab: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) files: FileArguments,
    #[command(flatten)]
    pub(crate) measurement: MeasurementArguments,
}

/// How a run is kept and shown.
#[derive(Debug, Args)]
pub(crate) struct MeasurementArguments {
    /// Where the results directories are
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Name of this run under results/<experiment>/; default: kernel and start time
    #[arg(long)]
    pub(crate) label: Option<String>,
    /// Start afresh, even if an earlier run of this experiment was interrupted
    #[arg(long)]
    pub(crate) new: bool,
    /// Seed of the random orders, instead of the file's or a drawn one
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) form: FormArguments,
    #[command(flatten)]
    pub(crate) gates: GateArguments,
    /// Wait while another fwdlab of this machine measures here or on the same DUT, instead of ending with an error
    #[arg(long)]
    pub(crate) wait: bool,
    /// Print the report and errors only
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// How a report is printed.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FormArguments {
    /// Print the report as JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a comment for a pull request instead, in Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Print the verdicts alone instead, as JSON
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    pub(crate) summary: bool,
}

/// What a check fails on.
#[derive(Debug, Args)]
pub(crate) struct GateArguments {
    /// Exit with 1 where a variant is worse by more than that (worse:1%), may be (maybe-worse:1%), differs
    /// (different:1%), or takes more CPU time per packet (cpu-worse:5%); see docs/ci.md
    #[arg(long, value_name = "CONDITION", value_delimiter = ',')]
    pub(crate) fail_on: Vec<Gate>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Results as in the archive github.com/ocochard/netbenches, everything reckoned again from their logs
    Netbenches(ImportArguments),
    /// The lab, configuration sets and sets of pkt-gen of that archive's scripts, as a lab file and experiments
    BenchLab(BenchLabArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// The archive, or any folder of it
    pub(crate) directory: PathBuf,
    /// Where to write: a new folder, or one with an earlier import, which is replaced
    #[arg(long, value_name = "DIR")]
    pub(crate) results: PathBuf,
    /// Print the summary as JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// What verdicts are asked to hold.
#[derive(Debug, Args)]
pub(crate) struct VerdictArguments {
    /// Changes of less than so many percent do not matter
    #[arg(long, value_name = "PERCENT", value_parser = threshold, allow_negative_numbers = true)]
    pub(crate) threshold: Option<f64>,
    /// Confidence of the verdicts, in percent
    #[arg(long, value_name = "PERCENT", value_parser = confidence, allow_negative_numbers = true)]
    pub(crate) confidence: Option<f64>,
}

/// Which results directory is meant.
#[derive(Debug, Args)]
pub(crate) struct NamedArguments {
    /// A results directory, or <experiment>/<label> under --results, or <experiment> for its newest
    pub(crate) directory: String,
    /// Where the results directories are
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct AnalyzeArguments {
    #[command(flatten)]
    pub(crate) named: NamedArguments,
    /// The variant that all others are compared with, instead of the experiment's comparisons
    #[arg(long, value_name = "VARIANT")]
    pub(crate) baseline: Option<String>,
    /// Print what every method makes of the same blocks, too
    #[arg(long)]
    pub(crate) methods: bool,
    #[command(flatten)]
    pub(crate) verdicts: VerdictArguments,
    /// Print the report as JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Files with a number in every line, .csv files, or results directories; the first is the
    /// baseline
    #[arg(required_unless_present = "design", value_name = "FILE|DIR")]
    pub(crate) sources: Vec<PathBuf>,
    /// Compare two sides of several sessions: the directories before this option are the baseline, those after it the
    /// other side
    #[arg(long, value_name = "DIR", num_args = 1.., action = ArgAction::Set, value_hint = ValueHint::DirPath)]
    #[arg(conflicts_with_all = ["design", "paired", "offered"])]
    pub(crate) with: Vec<PathBuf>,
    /// Reruns of one configuration, other than those compared, which show how much sessions differ; for fewer than
    /// 4 sessions a side
    #[arg(long, value_name = "DIR", num_args = 1.., action = ArgAction::Set, value_hint = ValueHint::DirPath)]
    #[arg(conflicts_with_all = ["design", "paired", "offered"])]
    pub(crate) sessions: Vec<PathBuf>,
    /// The files and the factors whose levels they combine: a .csv file with a column `file` and one
    /// for every factor, the baseline in its first row
    #[arg(long, value_name = "FILE", conflicts_with = "sources")]
    pub(crate) design: Option<PathBuf>,
    /// The observations of the same line belong together
    #[arg(long)]
    pub(crate) paired: bool,
    /// What was offered: for every file one with as many numbers, in the same order
    #[arg(long, num_args = 2.., value_name = "FILE")]
    pub(crate) offered: Vec<PathBuf>,
    /// The column of the observations: its number, or its name in a .csv file's first line
    #[arg(long, short = 'C', value_name = "COLUMN", default_value = "1")]
    pub(crate) column: String,
    /// What separates columns: one character that ends each cell, or several of which runs do; default: blanks, in a .csv
    /// file the comma, semicolon or tab of its first line
    #[arg(long, short, value_name = "CHARACTERS")]
    pub(crate) delimiters: Option<String>,
    /// Print ministat's text, too
    #[arg(long)]
    pub(crate) ministat: bool,
    /// Print what every method makes of the same observations, too
    #[arg(long)]
    pub(crate) methods: bool,
    /// Print ministat's text as that FreeBSD's ministat does; default: freebsd-13, which is today's
    #[arg(long, value_name = "NAME", value_parser = dialect())]
    pub(crate) dialect: Option<Dialect>,
    #[command(flatten)]
    pub(crate) verdicts: VerdictArguments,
    /// Print the findings as JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a comment for a pull request instead, in Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) gates: GateArguments,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("form").args(["all", "json", "sarif", "github"]))]
pub(crate) struct LintArguments {
    /// Folders with results directories in them, or results directories; <experiment>/<label> under --results, or
    /// <experiment> for its newest
    #[arg(required_unless_present = "explain", value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
    /// Where the results directories are that are named by experiment and label
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Look for these alone: codes, or how they begin, like L102,L6
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = rule_codes)]
    pub(crate) only: Vec<String>,
    /// Pass over these
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = rule_codes)]
    pub(crate) skip: Vec<String>,
    /// Exit with 1 where something as bad as this is found, or worse
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    pub(crate) fail_on: FailOn,
    /// What --json printed earlier: what is found there already is known, and does not count
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Show every finding with its lines, where several of a kind are else counted
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the findings as a JSON array
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the findings as SARIF 2.1.0, for code hosts and editors
    #[arg(long)]
    pub(crate) sarif: bool,
    /// Print the findings as annotations of GitHub Actions
    #[arg(long)]
    pub(crate) github: bool,
    /// Say what a rule finds, why that matters and what to do, and look at nothing
    #[arg(long, value_name = "CODE", value_parser = rule_codes, conflicts_with = "directories")]
    pub(crate) explain: Option<String>,
}

/// From which severity on findings are a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// What is published is not what was measured
    Error,
    /// What is published may mislead
    Warning,
    /// Anything at all
    Note,
    /// Nothing
    Never,
}

#[derive(Debug, Args)]
pub(crate) struct MinistatArguments {
    /// Print what ministat of that FreeBSD prints; stands before ministat's own options
    #[arg(long, value_name = "NAME", value_parser = dialect(), default_value = "freebsd-13")]
    pub(crate) dialect: Dialect,
    /// Options and files, as ministat takes them: [-Anqs] [-C column] [-c confidence]
    /// [-d delimiters] [-w width] [file ...]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) own: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// The lab file; default: this machine's kernel, as labs/netns.toml has it
    pub(crate) lab: Option<PathBuf>,
    /// Only look at the machine; measure nothing
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where the results directories are; the measurement is kept there, and plans rest on it
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Blocks of the A/A measurement
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(8..=100))]
    pub(crate) blocks: u32,
    /// Print the findings as JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    pub(crate) files: FileArguments,
    /// Where the results directories are, whose earlier runs tell how much this lab scatters
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Seed of the random orders, instead of the file's or a drawn one
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Also show how many blocks or observations each method of judging them would take
    #[arg(long)]
    pub(crate) methods: bool,
    /// Print the plan as JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    pub(crate) named: NamedArguments,
    /// Print every warning in full instead
    #[arg(long, conflicts_with = "json")]
    pub(crate) warnings: bool,
    /// Print the verdicts so far as JSON instead, as `fwdlab report --summary` does
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    #[command(flatten)]
    pub(crate) named: NamedArguments,
    #[command(flatten)]
    pub(crate) form: FormArguments,
    #[command(flatten)]
    pub(crate) gates: GateArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// A lab of hosts: put back what runs of this controller have left on its hosts, and on its DUT what controllers that
    /// are gone have left, by the copies of their journals there. Check first that none of them is at work
    #[arg(value_name = "LAB")]
    pub(crate) lab: Option<PathBuf>,
    /// Only say what is left, and change nothing
    #[arg(long, conflicts_with = "forget")]
    pub(crate) list: bool,
    /// Strike what cannot be put back out of the journal, once it was seen to by hand
    #[arg(long)]
    pub(crate) forget: bool,
    /// Print what is left, or what became of it, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GenArguments {
    /// The interface to send from; the machine may not be reached by it
    pub(crate) interface: String,
    /// The station to send to: the MAC address of the other end, or of the router's port
    #[arg(long, value_name = "MAC", value_parser = MacAddress::of_station)]
    pub(crate) to: MacAddress,
    /// Frames in a second; default: as many as the sender and what is behind it can take
    #[arg(long, value_name = "N", value_parser = frames_a_second)]
    pub(crate) pps: Option<u64>,
    /// Frames sent back to back, after which comes the time of as many
    #[arg(long, value_name = "N", default_value_t = 1, requires = "pps", value_parser = burst)]
    pub(crate) burst: u32,
    /// Stop after this time; default: at Ctrl-C
    #[arg(long, value_name = "SECONDS", value_parser = parse_time)]
    pub(crate) time: Option<Duration>,
    /// The CPU that sends, and does nothing else meanwhile; default: the last
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<u32>,
    /// Several CPUs that send and share the flows
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        conflicts_with = "cpu"
    )]
    pub(crate) cpus: Vec<u32>,
    /// What sends the frames; default: the first of these that works on the interface
    #[arg(long, value_parser = sender())]
    pub(crate) sender: Option<Tester>,
    #[command(flatten)]
    pub(crate) end: EndArguments,
}

/// What a run elsewhere asks to be sampled.
#[derive(Debug, Args)]
pub(crate) struct StacksArguments {
    /// The interface that the load comes in at
    #[arg(long)]
    pub(crate) interface: String,
    /// How many frames there make a load
    #[arg(long)]
    pub(crate) load_frames: u32,
    /// From the load's first frames to the first sample
    #[arg(long)]
    pub(crate) settle_ms: u64,
    /// From the first sample to the last
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub(crate) length_ms: u64,
    /// Samples a second
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) frequency: u32,
}

#[derive(Debug, Args)]
pub(crate) struct SinkArguments {
    /// The interface to count at; it gets no other frames meanwhile. The machine may not be reached by
    /// it
    pub(crate) interface: String,
    /// The station that the frames come from: the MAC address of the generator's interface, or with
    /// --routed of the router's port
    #[arg(long, value_name = "MAC", value_parser = MacAddress::of_station)]
    pub(crate) from: MacAddress,
    /// Expect the frames as a router makes them: with one off the TTL
    #[arg(long)]
    pub(crate) routed: bool,
    /// Stop after this time; default: at Ctrl-C
    #[arg(long, value_name = "SECONDS", value_parser = parse_time)]
    pub(crate) time: Option<Duration>,
    #[command(flatten)]
    pub(crate) end: EndArguments,
}

/// What both ends of a load are asked: how it is shown, and what it is.
#[derive(Debug, Args)]
pub(crate) struct EndArguments {
    /// Print a JSON object a line instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the summary only
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) traffic: TrafficArguments,
}

/// What is sent, in the words of an experiment's `[traffic]`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Traffic, the same at both ends")]
pub(crate) struct TrafficArguments {
    /// The address family
    #[arg(long, default_value = "inet", value_parser = family())]
    pub(crate) family: AddressFamily,
    /// Bytes of a frame, FCS included: 64 to 1518, imix, or sizes with shares like
    /// 64:7,594:4,1518:1
    #[arg(long, value_name = "BYTES", default_value = "64")]
    pub(crate) frame_size: FrameSizes,
    /// Source addresses
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = addresses())]
    pub(crate) sources: u32,
    /// Destination addresses
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = addresses())]
    pub(crate) destinations: u32,
    /// The first source address; default: 198.18.10.1 or 2001:2:0:10::1
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pub(crate) source_address: Option<IpAddr>,
    /// The first destination address; default: 198.19.10.1 or 2001:2:0:8010::1
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pub(crate) destination_address: Option<IpAddr>,
    /// Source ports of UDP: one, or first-last
    #[arg(long, value_name = "PORTS", default_value = "2000")]
    pub(crate) source_ports: PortRange,
    /// Destination ports of UDP: one, or first-last
    #[arg(long, value_name = "PORTS", default_value = "2000")]
    pub(crate) destination_ports: PortRange,
    /// Zipf exponent of the flows, 0.01 to 10; default: every flow in its turn
    #[arg(long, value_name = "EXPONENT", allow_negative_numbers = true)]
    pub(crate) zipf: Option<Zipf>,
    /// Tag every frame with this VLAN, 1 to 4094; a tag is 4 bytes more
    #[arg(long, value_name = "ID", value_parser = vlan, allow_negative_numbers = true)]
    pub(crate) vlan: Option<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_one_group() {
        let command = Arguments::command();
        let mut commands: Vec<&str> = command
            .get_subcommands()
            // What other programs start is not for people to find.
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        commands.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, commands);
    }
}
