//! Several commands of a host as one errand: what takes time is the way there.

use super::ssh::{Connection, quoted};
use crate::mechanism::step::Errand;
use crate::{LabError, program};

impl Connection {
    /// Runs several commands on the host, one after the other, and tells what each printed; none where it failed.
    /// One errand for all of them: what takes time is the way there.
    ///
    /// # Errors
    /// As of [`run`](Self::run), but for commands that fail.
    pub(crate) fn run_all(
        &self,
        commands: &[Vec<String>],
    ) -> Result<Vec<Option<String>>, LabError> {
        let errands = commands.iter().map(|words| Errand {
            words: words.clone(),
            input: String::new(),
        });
        self.run_all_with_input(&errands.collect::<Vec<_>>())
    }

    /// The same of commands that read something.
    ///
    /// # Errors
    /// As of [`run_all`](Self::run_all).
    pub(crate) fn run_all_with_input(
        &self,
        commands: &[Errand],
    ) -> Result<Vec<Option<String>>, LabError> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let mark = mark();
        let mut script = String::new();
        for (number, errand) in commands.iter().enumerate() {
            let command = shell(errand);
            // Which one it is at is said apart, for where one prints or takes too much.
            script += &format!(
                "printf '\n{mark}%d\n' {number} >&2; {command} 2>/dev/null; printf '\n{mark}%d\n' $?\n"
            );
        }
        let printed = self
            .run(&["sh", "-s"], &script)
            .map_err(|error| of_the_one_that_failed(error, &mark, commands))?;
        let outputs = outputs(&printed, &mark);
        if outputs.len() == commands.len() {
            return Ok(outputs);
        }
        Err(self.wrong(format!(
            "of {} commands it answered {}; its shell has to be one that knows POSIX's sh",
            commands.len(),
            outputs.len()
        )))
    }

    /// Runs several commands on the host, one after the other up to the first that fails, by one errand. Where the
    /// connection breaks all of them are run again: doing that has to be the same as doing it once.
    ///
    /// # Errors
    /// As of [`run`](Self::run), of the one that fails.
    pub(crate) fn run_in_order(&self, commands: &[Errand]) -> Result<(), LabError> {
        if commands.is_empty() {
            return Ok(());
        }
        let mark = mark();
        let mut script = String::new();
        for (number, errand) in commands.iter().enumerate() {
            let command = shell(errand);
            script += &format!(
                "{command} >/dev/null || {{ printf '\n{mark}%d %d\n' {number} $? >&2; exit 1; }}\n"
            );
        }
        match self.run(&["sh", "-s"], &script) {
            Ok(_) => Ok(()),
            Err(error) => Err(of_the_one_that_failed(error, &mark, commands)),
        }
    }
}

/// A command as a line of a script for the host's shell, of which it reads nothing.
fn shell(errand: &Errand) -> String {
    let command = quoted(&errand.words);
    if errand.input.is_empty() {
        format!("{command} </dev/null")
    } else {
        format!("{} | {command}", quoted(&["printf", "%s", &errand.input]))
    }
}

/// The error of a script that ran several commands, as that of the one it was at: it has said which behind a mark, and how
/// that ended where it ran to its end.
fn of_the_one_that_failed(error: LabError, mark: &str, commands: &[Errand]) -> LabError {
    let LabError::OnHost {
        host,
        command,
        status,
        stderr,
    } = error
    else {
        return error;
    };
    let (stderr, which) = stderr.rsplit_once(mark).unwrap_or((&stderr, ""));
    let mut numbers = which.split_whitespace();
    let number = numbers.next().and_then(|number| number.parse().ok());
    let failed = number.and_then(|number: usize| commands.get(number));
    let has_ended = numbers.next().map(|code| format!("exit status: {code}"));
    // What the commands before it were is of no interest.
    let stderr = stderr.rsplit_once(mark).map_or(stderr, |(_, behind)| {
        behind.split_once('\n').unwrap_or_default().1
    });
    LabError::OnHost {
        host,
        command: failed.map_or(command, |errand| program::command_line(&errand.words)),
        status: has_ended.unwrap_or(status),
        stderr: stderr.trim().to_owned(),
    }
}

/// A line that no program prints by chance.
fn mark() -> String {
    let now = std::time::SystemTime::now();
    let now = now
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let hash = fwdlab_model::sha256(format!("{now:?} {}", std::process::id()).as_bytes());
    format!("--- {} ", &hash[..32])
}

/// What stands before each mark; none of a command that failed.
fn outputs(printed: &str, mark: &str) -> Vec<Option<String>> {
    let end = format!("\n{mark}");
    let mut outputs = Vec::new();
    let mut rest = printed;
    while let Some((output, behind)) = rest.split_once(&end) {
        let (status, behind) = behind.split_once('\n').unwrap_or((behind, ""));
        outputs.push((status == "0").then(|| output.to_owned()));
        rest = behind;
    }
    outputs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn of_several_commands_the_one_that_failed_is_named() {
        let commands = [Errand::of(&["true"]), Errand::of(&["ip", "link"])];
        let named = |stderr: &str| {
            let error = LabError::OnHost {
                host: "router".into(),
                command: "sh -s".into(),
                status: "exit status: 9".into(),
                stderr: stderr.into(),
            };
            of_the_one_that_failed(error, "--- 7 ", &commands).to_string()
        };
        assert_eq!(
            named("a warning\nno such device\n\n--- 7 1 2\n"),
            "host router: `ip link` failed (exit status: 2): a warning\nno such device"
        );
        // It did not come to an end.
        assert_eq!(
            named("\n--- 7 0\nx\n\n--- 7 1"),
            "host router: `ip link` failed (exit status: 9): x"
        );
        // A shell that did not even begin, and a mark of nobody's.
        for stderr in ["sh: not found\n", "--- 7 9 1\n", "--- 7 ", ""] {
            assert!(named(stderr).contains("sh -s"), "{stderr}");
        }
    }

    #[test]
    fn what_each_command_printed_is_kept_apart() {
        let mark = mark();
        let printed = format!("a\nb\n\n{mark}0\n\n{mark}1\nlast\n{mark}0\n");
        let expected = [Some("a\nb\n"), None, Some("last")];
        let expected = expected.map(|text| text.map(str::to_owned));
        assert_eq!(outputs(&printed, &mark), expected);
    }

    proptest! {
        #[test]
        fn any_text_of_a_host_is_taken_apart(printed in "(a|\n|--- 1 |0|\\PC){0,40}") {
            prop_assert!(outputs(&printed, "--- 1 ").len() <= printed.matches("--- 1 ").count());
        }
    }
}
