//! Assignments of variables as a shell, the boot loader or `sysctl` reads them. Nothing is ever run,
//! sourced or expanded.

/// Whose rules a file is written by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `sh`: `NAME=value`, several of them in a line, quotes over several lines, `: ${NAME:=value}`.
    Shell,
    /// `loader.conf` and `sysctl.conf`: one `name = value` a line, quoted or up to the comment.
    Settings,
}

/// A variable and the value that is assigned to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Where it begins, from 1.
    pub line: usize,
    /// The variable.
    pub name: String,
    /// What becomes of the value the variable had.
    pub operator: Operator,
    /// The value: quotes taken off, lines joined, and `$…` as it stands. Bytes that are no UTF-8 are
    /// replaced.
    pub value: String,
    /// What a shell would have put in place of parts of the value.
    pub expansion: Option<Expansion>,
}

/// What becomes of the value that a variable had before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`: it is replaced.
    Set,
    /// `+=`: the new one is appended.
    Append,
    /// `: ${NAME:="value"}`: it stays, if there is one.
    Default,
}

/// What a value holds that is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expansion {
    /// `$NAME` or `${NAME}`: another variable.
    Variable,
    /// `$(…)` or backquotes: what a command prints, or what is calculated.
    Command,
}

/// Why a line is no assignment.
///
/// No message quotes the line: configuration files hold keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignmentError {
    /// Something else stands there: a command, for instance.
    #[error("line {line}: no plain assignment; give one like NAME=\"value\"")]
    Other {
        /// Where it begins, from 1.
        line: usize,
    },
    /// A quote, a brace or a parenthesis has no end; the rest of the file is not read.
    #[error("line {line}: a value without an end; close its quote, brace or parenthesis")]
    Open {
        /// Where the assignment begins, from 1.
        line: usize,
    },
    /// The value is what a command would print, where only text is taken.
    #[error("line {line}: a command stands in the value, and nothing here is run; give plain text")]
    Command {
        /// Where the assignment begins, from 1.
        line: usize,
    },
}

impl AssignmentError {
    /// The line, from 1.
    #[must_use]
    pub fn line(self) -> usize {
        match self {
            Self::Other { line } | Self::Open { line } | Self::Command { line } => line,
        }
    }
}

/// The assignments of a file, in order; a line that holds something else is an error, after which the
/// next line is read.
///
/// # Examples
/// ```
/// use fwdlab_netbenches::{Assignments, Dialect};
/// let text = b"IMAGE=\"\" CFG=\"1000\" # a comment\nrm -rf /\n";
/// let read: Vec<_> = Assignments::new(text, Dialect::Shell).collect();
/// assert_eq!(read[1].as_ref().map(|read| read.value.as_str()), Ok("1000"));
/// assert!(read[2].is_err());
/// # assert_eq!(read.len(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct Assignments<'a> {
    text: &'a [u8],
    dialect: Dialect,
    /// Where the next byte is.
    at: usize,
    /// The line of that byte, from 1.
    line: usize,
}

impl<'a> Assignments<'a> {
    /// Reads a file.
    #[must_use]
    pub fn new(text: &'a [u8], dialect: Dialect) -> Self {
        Self {
            text,
            dialect,
            at: 0,
            line: 1,
        }
    }

    /// The assignments of a file that holds nothing else and whose values are text.
    ///
    /// # Errors
    /// [`AssignmentError`] of the first line that is different.
    pub fn plain(text: &'a [u8], dialect: Dialect) -> Result<Vec<Assignment>, AssignmentError> {
        let of_text = |assignment: Assignment| match assignment.expansion {
            Some(Expansion::Command) => Err(AssignmentError::Command {
                line: assignment.line,
            }),
            _ => Ok(assignment),
        };
        Self::new(text, dialect)
            .map(|assignment| assignment.and_then(of_text))
            .collect()
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn starts_with(&self, text: &[u8]) -> bool {
        self.text[self.at..].starts_with(text)
    }

    /// Takes a byte.
    fn bump(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        self.line += usize::from(byte == b'\n');
        Some(byte)
    }

    /// Takes what comes next, if it is that.
    fn take(&mut self, text: &[u8]) -> bool {
        let is_there = self.starts_with(text);
        if is_there {
            self.at += text.len();
            self.line += text.iter().filter(|&&byte| byte == b'\n').count();
        }
        is_there
    }

    fn skip_while(&mut self, is_skipped: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&is_skipped) {
            self.bump();
        }
    }

    fn skip_line(&mut self) {
        self.skip_while(|byte| byte != b'\n');
    }

    /// Skips blanks, and newlines that a backslash hides.
    fn skip_blanks(&mut self) {
        loop {
            self.skip_while(is_blank);
            if !self.take_continuation() {
                return;
            }
        }
    }

    fn take_continuation(&mut self) -> bool {
        self.dialect == Dialect::Shell && (self.take(b"\\\n") || self.take(b"\\\r\n"))
    }

    /// To the next assignment, or to what stands in its place.
    fn skip_to_statement(&mut self) {
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'\n') => _ = self.bump(),
                Some(b'#') => self.skip_line(),
                _ => return,
            }
        }
    }

    fn statement(&mut self) -> Result<Assignment, AssignmentError> {
        let line = self.line;
        let other = AssignmentError::Other { line };
        let has_default = self.dialect == Dialect::Shell && self.take(b":");
        let mut is_quoted = false;
        if has_default {
            self.skip_blanks();
            is_quoted = self.take(b"\"");
            if !self.take(b"${") {
                return Err(other);
            }
        }
        let name = self.name().ok_or(other)?;
        if self.dialect == Dialect::Settings {
            self.skip_blanks();
        }
        let operator = if has_default {
            if !(self.take(b":=") || self.take(b"=")) {
                return Err(other);
            }
            Operator::Default
        } else if self.take(b"=") {
            Operator::Set
        } else if self.take(b"+=") {
            Operator::Append
        } else {
            return Err(other);
        };
        let mut value = Value::default();
        match self.dialect {
            Dialect::Shell => self.word(&mut value, has_default),
            Dialect::Settings => self.setting(&mut value),
        }
        .map_err(|wrong| match wrong {
            Wrong::Open => AssignmentError::Open { line },
            Wrong::Other => other,
        })?;
        if has_default && !(self.take(b"}") && (!is_quoted || self.take(b"\""))) {
            return Err(other);
        }
        let is_at_end = match self.peek() {
            None | Some(b'\n') => true,
            // A comment of the shell begins a word.
            Some(b'#') => self.dialect == Dialect::Settings,
            Some(byte) => is_blank(byte),
        };
        if !is_at_end {
            return Err(other);
        }
        Ok(Assignment {
            line,
            name,
            operator,
            value: String::from_utf8(value.text)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            expansion: value.expansion,
        })
    }

    fn name(&mut self) -> Option<String> {
        let begin = self.at;
        match self.dialect {
            Dialect::Shell => self.skip_while(|byte| byte == b'_' || byte.is_ascii_alphanumeric()),
            Dialect::Settings => {
                self.skip_while(|byte| {
                    byte.is_ascii_alphanumeric() || b"_.-%:/{}[]@".contains(&byte)
                });
            }
        }
        let name = std::str::from_utf8(&self.text[begin..self.at]).ok()?;
        let begins_well = |first: u8| match self.dialect {
            Dialect::Shell => !first.is_ascii_digit(),
            Dialect::Settings => first.is_ascii_alphabetic() || first == b'_',
        };
        name.bytes()
            .next()
            .is_some_and(begins_well)
            .then(|| name.to_owned())
    }

    /// A value up to the end of its line, or quoted.
    fn setting(&mut self, value: &mut Value) -> Result<(), Wrong> {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|&byte| byte == b'\n');
        let rest = &rest[..end.unwrap_or(rest.len())];
        if let Some((&quote @ (b'"' | b'\''), quoted)) = rest.split_first() {
            // A quote does not go on in the next line.
            let end = quoted
                .iter()
                .position(|&byte| byte == quote)
                .ok_or(Wrong::Other)?;
            value.push(&quoted[..end]);
            self.at += end + 2;
            self.skip_blanks();
        } else {
            let end = rest.iter().position(|&byte| byte == b'#');
            let text = &rest[..end.unwrap_or(rest.len())];
            value.push(text.trim_ascii());
            self.at += text.len();
        }
        if value.text.contains(&b'$') {
            value.expand(Expansion::Variable);
        }
        Ok(())
    }

    /// A word of the shell; `in_braces` up to the brace that closes them.
    fn word(&mut self, value: &mut Value, in_braces: bool) -> Result<(), Wrong> {
        loop {
            match self.peek() {
                None if in_braces => return Err(Wrong::Open),
                Some(b'}') if in_braces => return Ok(()),
                None => return Ok(()),
                Some(byte) if (is_blank(byte) || byte == b'\n') && !in_braces => return Ok(()),
                Some(b'\'') => {
                    self.bump();
                    loop {
                        match self.bump().ok_or(Wrong::Open)? {
                            b'\'' => break,
                            byte => value.text.push(byte),
                        }
                    }
                }
                Some(b'"') => {
                    self.bump();
                    self.quoted(value)?;
                }
                Some(b'\\') => {
                    if !self.take_continuation() {
                        self.bump();
                        value.text.push(self.bump().ok_or(Wrong::Open)?);
                    }
                }
                Some(b'$' | b'`') => self.expansion(value)?,
                // These end a command, or send what it prints elsewhere.
                Some(b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')') => return Err(Wrong::Other),
                Some(byte) => {
                    self.bump();
                    value.text.push(byte);
                }
            }
        }
    }

    /// What stands between double quotes, the last one included.
    fn quoted(&mut self, value: &mut Value) -> Result<(), Wrong> {
        loop {
            match self.peek().ok_or(Wrong::Open)? {
                b'"' => {
                    self.bump();
                    return Ok(());
                }
                b'\\' if self.take_continuation() => {}
                b'\\' => {
                    self.bump();
                    let next = self.bump().ok_or(Wrong::Open)?;
                    if !b"$`\"\\".contains(&next) {
                        value.text.push(b'\\');
                    }
                    value.text.push(next);
                }
                b'$' | b'`' => self.expansion(value)?,
                byte => {
                    self.bump();
                    value.text.push(byte);
                }
            }
        }
    }

    /// What a shell would replace, taken over as it stands; a `$` that means nothing is text.
    fn expansion(&mut self, value: &mut Value) -> Result<(), Wrong> {
        let begin = self.at;
        let (open, close, kind) = if self.take(b"`") {
            (None, b'`', Expansion::Command)
        } else if self.take(b"$(") {
            (Some(b'('), b')', Expansion::Command)
        } else if self.take(b"${") {
            (Some(b'{'), b'}', Expansion::Variable)
        } else {
            self.bump();
            if self.peek().is_some_and(|byte| {
                byte == b'_' || byte.is_ascii_alphanumeric() || b"@*#?-$!".contains(&byte)
            }) {
                value.expand(Expansion::Variable);
            }
            value.push(b"$");
            return Ok(());
        };
        let mut depth = 1_usize;
        while depth > 0 {
            let byte = self.bump().ok_or(Wrong::Open)?;
            if byte == b'\\' {
                self.bump();
            } else if byte == close {
                depth -= 1;
            } else if Some(byte) == open {
                depth += 1;
            }
        }
        value.expand(kind);
        // `${NAME:-$(command)}` runs one as well.
        let taken = &self.text[begin..self.at];
        if taken.contains(&b'`') || taken.windows(2).any(|pair| pair == b"$(") {
            value.expand(Expansion::Command);
        }
        value.push(taken);
        Ok(())
    }
}

impl Iterator for Assignments<'_> {
    type Item = Result<Assignment, AssignmentError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_to_statement();
        self.peek()?;
        let statement = self.statement();
        match statement {
            Ok(_) => {}
            // As a shell does, which finds the same and reads nothing more.
            Err(AssignmentError::Open { .. }) => self.at = self.text.len(),
            Err(_) => self.skip_line(),
        }
        Some(statement)
    }
}

/// A value so far.
#[derive(Default)]
struct Value {
    text: Vec<u8>,
    expansion: Option<Expansion>,
}

impl Value {
    fn push(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
    }

    fn expand(&mut self, expansion: Expansion) {
        self.expansion = self.expansion.max(Some(expansion));
    }
}

/// What is wrong with a value.
enum Wrong {
    Open,
    Other,
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Each assignment as `line name operator value`, with a mark for what would be expanded.
    fn read(text: &str, dialect: Dialect) -> Vec<String> {
        let shown = Assignments::new(text.as_bytes(), dialect).map(|read| match read {
            Ok(read) => {
                let operator = match read.operator {
                    Operator::Set => "=",
                    Operator::Append => "+=",
                    Operator::Default => ":=",
                };
                let mark = match read.expansion {
                    None => "",
                    Some(Expansion::Variable) => " $",
                    Some(Expansion::Command) => " $()",
                };
                format!("{} {}{operator}{}{mark}", read.line, read.name, read.value)
            }
            Err(error) => error
                .to_string()
                .split(';')
                .next()
                .unwrap_or_default()
                .to_owned(),
        });
        shown.collect()
    }

    fn shell(text: &str) -> Vec<String> {
        read(text, Dialect::Shell)
    }

    #[test]
    fn assignments_stand_in_lines_or_beside_each_other() {
        assert_eq!(
            shell("#!/bin/sh\nIMAGE=\"\"\nCFG=\"a b\" PKTGEN=9800\t# more\r\n\n UNAME='x \"y\"'"),
            ["2 IMAGE=", "3 CFG=a b", "3 PKTGEN=9800", "5 UNAME=x \"y\""]
        );
    }

    #[test]
    fn values_are_put_together_as_a_shell_does() {
        for (text, expected) in [
            ("A=a'b c'\"d e\"f", "1 A=ab cd ef"),
            ("A=\"x \\\ny\"", "1 A=x y"),
            ("A=\\\"x\\ y", "1 A=\"x y"),
            ("A=\"\\\"[::1]\\\" \\n\"", "1 A=\"[::1]\" \\n"),
            ("A=\"x\ny\"", "1 A=x\ny"),
            ("A=a#b", "1 A=a#b"),
            ("A=", "1 A="),
            ("A+=b", "1 A+=b"),
            (": ${AF:=\"4\"}", "1 AF:=4"),
            (": \"${AF:=a b}\"", "1 AF:=a b"),
            (": ${AF=4} # four", "1 AF:=4"),
            ("A=\"a|b;c>d\"", "1 A=a|b;c>d"),
            ("A=$", "1 A=$"),
        ] {
            assert_eq!(shell(text), [expected], "{text}");
        }
    }

    #[test]
    fn what_would_be_expanded_is_kept_and_marked() {
        for (text, expected) in [
            ("A=${B}x", "1 A=${B}x $"),
            ("A=\"$B x\"", "1 A=$B x $"),
            ("A='$B'", "1 A=$B"),
            ("A=\"\\$B\"", "1 A=$B"),
            ("A=\"$(echo \"a b\")c\"", "1 A=$(echo \"a b\")c $()"),
            ("A=`id`", "1 A=`id` $()"),
            ("A=${B:-$(id)}", "1 A=${B:-$(id)} $()"),
            ("A=$((1 + 2))", "1 A=$((1 + 2)) $()"),
        ] {
            assert_eq!(shell(text), [expected], "{text}");
        }
        let plain = |text: &str| Assignments::plain(text.as_bytes(), Dialect::Shell);
        assert_eq!(plain("A=$B").unwrap().len(), 1);
        assert_eq!(
            plain("A=1\nB=\"`id`\"").unwrap_err().to_string(),
            "line 2: a command stands in the value, and nothing here is run; give plain text"
        );
    }

    #[test]
    fn whatever_is_no_assignment_is_refused_and_the_next_line_read() {
        for text in [
            "rm -rf /",
            "A=1; B=2",
            "A=1;",
            "A=1 id",
            "A = 1",
            "A=x>y",
            "A=(1 2)",
            "1A=2",
            ": ${A}",
            "export A=1",
            ". /etc/rc",
            "A=1&",
            "if true",
            "=1",
            ": ${A:=1",
            "A\"=1",
            "é=1",
        ] {
            let read = shell(&format!("{text}\nB=2"));
            let refused = read
                .iter()
                .any(|read| read == "line 1: no plain assignment");
            let open = read == ["line 1: a value without an end"];
            assert!(
                refused && read.last().is_some_and(|read| read == "2 B=2") || open,
                "{read:?}"
            );
        }
    }

    #[test]
    fn a_value_without_an_end_ends_the_file() {
        for text in ["A=\"x", "A='x", "A=$(x", "A=\"${x\"", "A=`x", "A=x\\"] {
            assert_eq!(
                shell(&format!("{text}\nB=2").replace("\\\nB=2", "\\")),
                ["line 1: a value without an end"],
                "{text}"
            );
        }
    }

    #[test]
    fn settings_may_have_blanks_and_go_to_the_end_of_their_line() {
        assert_eq!(
            read(
                "# none\nhw.ix.rx_process_limit=\"-1\"\t# all\nkern.a = b c # d\ndev.ix.0.%x=1\nx='y'#z\n\
                 net.fibs=\"16\nonly\na b=1\nkld_list+=\"x\"\nx=\"$y\"\r\ny=",
                Dialect::Settings
            ),
            [
                "2 hw.ix.rx_process_limit=-1",
                "3 kern.a=b c",
                "4 dev.ix.0.%x=1",
                "5 x=y",
                "line 6: no plain assignment",
                "line 7: no plain assignment",
                "line 8: no plain assignment",
                "9 kld_list+=x",
                "10 x=$y $",
                "11 y=",
            ]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            for dialect in [Dialect::Shell, Dialect::Settings] {
                let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() + 1;
                for read in Assignments::new(&bytes, dialect) {
                    let line = read.map_or_else(AssignmentError::line, |read| read.line);
                    prop_assert!((1..=lines).contains(&line));
                }
            }
        }

        #[test]
        fn anything_that_looks_like_a_shell_is_read_or_refused(text in "[A-C=+\"'$(){}`;:# \\\\\n]{0,60}") {
            for dialect in [Dialect::Shell, Dialect::Settings] {
                let read: Vec<_> = Assignments::new(text.as_bytes(), dialect).collect();
                let open = read.iter().filter(|read| matches!(read, Err(AssignmentError::Open { .. })));
                prop_assert!(open.count() <= 1);
            }
        }

        #[test]
        fn written_values_are_read_back(values in prop::collection::vec(("[A-Za-z_][A-Za-z0-9_]{0,8}", any::<String>()), 0..8)) {
            let mut text = String::new();
            for (name, value) in &values {
                let quoted = value.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$").replace('`', "\\`");
                text += &format!("{name}=\"{quoted}\"\n{name}='{}'\n", value.replace('\'', "'\\''"));
            }
            let read = Assignments::plain(text.as_bytes(), Dialect::Shell).unwrap();
            let read: Vec<_> = read.iter().map(|read| (&read.name, &read.value)).collect();
            let written: Vec<_> = values.iter().flat_map(|(name, value)| [(name, value); 2]).collect();
            prop_assert_eq!(read, written);
        }
    }
}
