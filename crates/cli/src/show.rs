//! `fwdlab show`: how a run stands, finished or not.

use fwdlab_archive::holder;
use fwdlab_report::{CompareSettings, Frame, Reader, Report, RunState, render};

use crate::args::ShowArguments;
use crate::exit::Code;
use crate::live::Seen;
use crate::output;
use crate::report;
use crate::results::{self, Directory};

pub(crate) fn show(arguments: &ShowArguments) -> anyhow::Result<Code> {
    let directory = match results::find(&arguments.named)? {
        Directory::OfRun(directory) => directory,
        Directory::Imported(directory) => {
            let imported = report::read_imported(&directory, CompareSettings::default())?;
            return report::print_imported(&imported, arguments.json);
        }
    };
    results::warn_of_changes(&directory);
    let held_by = holder(&directory);
    let seen = Seen::read(&directory)?;
    let state = seen.state(held_by);
    if state == RunState::Running {
        seen.stay_off_the_load_cpu();
    }
    if arguments.json {
        let report = Report::build(&seen.loaded)?;
        return output::print(&render::summary(&report, &[])?);
    }
    if arguments.warnings {
        let report = Report::build(&seen.loaded)?;
        let (width, colour) = (output::terminal_columns(), output::stdout_takes_colour());
        return output::print(&render::warnings(&report, width, colour));
    }
    let frame = Frame {
        width: output::terminal_columns(),
        rows_max: None,
        colour: output::stdout_takes_colour(),
        reader: Reader::Show(directory.display().to_string()),
    };
    let lines = seen.view.lines(&seen.moment(state), &frame);
    output::print(&(lines.join("\n") + "\n"))
}
