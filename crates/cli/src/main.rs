//! The `fwdlab` command: arguments, the run loop, progress and exit codes.
#![forbid(unsafe_code)]

mod ab;
mod analyze;
mod args;
mod audit;
mod bench_lab;
mod catalogue;
mod compare;
mod completions;
mod dataset;
mod design;
mod disk;
mod doctor;
mod exit;
mod experiment;
mod export;
mod flame;
mod gate;
mod generate;
mod import;
mod lint;
mod live;
mod ls;
mod ministat;
mod new_lab;
mod output;
mod plan;
mod progress;
mod query;
mod report;
mod restore;
mod results;
mod run;
mod schema;
mod screen;
mod serve;
mod session;
mod show;
mod sides;
mod sink;
mod traffic;
mod values;
mod watch;

use std::process::ExitCode;

use crate::args::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version go to standard output with code 0, complaints to standard error.
            let _ = error.print();
            return if error.use_stderr() {
                exit::USER_ERROR
            } else {
                exit::DONE
            }
            .into();
        }
    };
    let result = match arguments.command {
        Command::Ab(arguments) => ab::ab(arguments),
        Command::Run(arguments) => run::run(&arguments).outcome,
        Command::Restore(arguments) => restore::restore(&arguments),
        Command::Plan(arguments) => plan::plan(&arguments),
        Command::Show(arguments) => show::show(&arguments),
        Command::Watch(arguments) => watch::watch(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::Analyze(arguments) => analyze::analyze(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Import(command) => import::import(&command),
        Command::Audit(arguments) => audit::audit(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Lab(command) => new_lab::lab(&command),
        Command::Lint(arguments) => lint::lint(&arguments),
        Command::Ministat(arguments) => ministat::ministat(&arguments),
        Command::Ls(arguments) => ls::ls(&arguments),
        Command::Query(arguments) => query::query(&arguments),
        Command::Export(command) => export::export(&command),
        Command::Flame(command) => flame::flame(&command),
        Command::Gen(arguments) => generate::generate(&arguments),
        Command::Sink(arguments) => sink::sink(&arguments),
        Command::Agent => serve::agent(),
        Command::Stacks(arguments) => serve::stacks(&arguments),
        Command::Schema { file } => schema::schema(file),
        Command::Completions { shell } => completions::completions(shell),
    };
    match result {
        Ok(code) => code.into(),
        Err(error) => exit::explain(&error).into(),
    }
}
