//! What a single line of a call graph is.

use super::Frame;

/// A line of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// It closes a tree.
    Empty,
    /// It opens a section.
    Header {
        /// The event that was sampled.
        event: &'a str,
        /// Samples of the section.
        samples: u32,
    },
    /// A function, one deeper than the one it called.
    Frame(Frame<'a>),
}

/// Why a text is no line of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault<'a> {
    /// It ends where something has to follow: the beginning of a line, with the frame if its symbol
    /// or a part of it is there.
    Incomplete(&'static str, Option<Frame<'a>>),
    /// Something else stands where this was expected.
    Expected(&'static str),
}

impl<'a> Line<'a> {
    /// What a text without its line end is.
    pub(super) fn of(text: &'a str) -> Result<Self, Fault<'a>> {
        match text.as_bytes().first() {
            None => Ok(Self::Empty),
            Some(b'@') => header(text),
            Some(_) => frame(text).map(Self::Frame),
        }
    }
}

/// `@ EVENT [N samples]`
fn header(text: &str) -> Result<Line<'_>, Fault<'_>> {
    const END: &str = " samples]";
    let mut rest = Rest::of(text);
    rest.skip("@ ", "a section")?;
    if !rest.text.bytes().all(is_printed) {
        return Err(Fault::Expected("an event"));
    }
    let Some((event, count)) = rest.text.rsplit_once(" [") else {
        return Err(Fault::Incomplete("an event and its samples", None));
    };
    if event.is_empty() {
        return Err(Fault::Expected("an event"));
    }
    let mut rest = Rest::of(count);
    let samples = rest.number("the section's samples")?;
    rest.skip(END, "\"samples]\"")?;
    rest.end()?;
    Ok(Line::Header { event, samples })
}

/// `  70.59%  [12]        SYMBOL @ OBJECT`, the object only where it is another than the line's before.
fn frame(text: &str) -> Result<Frame<'_>, Fault<'_>> {
    let mut rest = Rest::of(text);
    let depth = rest.spaces();
    let percent_hundredths = percentage(&mut rest)?;
    rest.skip("%  [", "a percentage, two spaces and samples in brackets")?;
    let samples = rest.number("samples")?;
    rest.skip("]", "samples in brackets")?;
    // They fill a column up, but there is always one.
    if rest.spaces() == 0 {
        return Err(rest.fault("a space and a symbol"));
    }
    let symbol = rest.word();
    if symbol.is_empty() {
        return Err(rest.fault("a symbol"));
    }
    let mut frame = Frame {
        depth,
        percent_hundredths,
        samples,
        symbol,
        object: None,
    };
    if rest.text.is_empty() {
        return Ok(frame);
    }
    let object = rest
        .skip(" @ ", "\" @ \" and an object")
        .map(|()| rest.text);
    match object {
        Ok("") => Err(Fault::Incomplete("an object", Some(frame))),
        Ok(object) if object.bytes().all(is_printed) => {
            frame.object = Some(object);
            Ok(frame)
        }
        Ok(_) => Err(Fault::Expected("an object")),
        Err(Fault::Incomplete(expected, _)) => Err(Fault::Incomplete(expected, Some(frame))),
        Err(fault) => Err(fault),
    }
}

/// Printed as `%05.2f`, but 100 as `100.0`.
fn percentage(rest: &mut Rest<'_>) -> Result<u16, Fault<'static>> {
    const EXPECTED: &str = "a percentage";
    let whole = rest.digits();
    let text = rest.text;
    if whole.is_empty() || text.is_empty() {
        return Err(rest.fault(EXPECTED));
    }
    rest.skip(".", EXPECTED)?;
    let decimals = rest.digits();
    if decimals.is_empty() || rest.text.is_empty() {
        return Err(rest.fault(EXPECTED));
    }
    let hundredths = match (whole.as_bytes(), decimals.as_bytes()) {
        (b"100", b"0" | b"00") => 10_000,
        ([tens, ones], [tenths, hundredths]) => [tens, ones, tenths, hundredths]
            .into_iter()
            .fold(0, |value, digit| value * 10 + u16::from(digit - b'0')),
        _ => return Err(Fault::Expected(EXPECTED)),
    };
    Ok(hundredths)
}

fn is_printed(byte: u8) -> bool {
    byte >= b' ' && byte != 0x7f
}

/// What is still to be read of a line.
struct Rest<'a> {
    text: &'a str,
}

impl<'a> Rest<'a> {
    fn of(text: &'a str) -> Self {
        Self { text }
    }

    /// What is wrong where something is missing.
    fn fault<'b>(&self, expected: &'static str) -> Fault<'b> {
        if self.text.is_empty() {
            Fault::Incomplete(expected, None)
        } else {
            Fault::Expected(expected)
        }
    }

    /// The first bytes that are all of a kind.
    fn take(&mut self, is_of_kind: impl Fn(u8) -> bool) -> &'a str {
        let text = self.text;
        let length = text
            .bytes()
            .position(|byte| !is_of_kind(byte))
            .unwrap_or(text.len());
        let (taken, rest) = text.split_at(length);
        self.text = rest;
        taken
    }

    fn spaces(&mut self) -> usize {
        self.take(|byte| byte == b' ').len()
    }

    fn digits(&mut self) -> &'a str {
        self.take(|byte| byte.is_ascii_digit())
    }

    fn word(&mut self) -> &'a str {
        self.take(|byte| is_printed(byte) && byte != b' ')
    }

    fn number(&mut self, expected: &'static str) -> Result<u32, Fault<'static>> {
        let digits = self.digits();
        if digits.is_empty() {
            return Err(self.fault(expected));
        }
        digits.parse().map_err(|_| Fault::Expected(expected))
    }

    fn skip(&mut self, what: &str, expected: &'static str) -> Result<(), Fault<'static>> {
        match self.text.strip_prefix(what) {
            Some(rest) => {
                self.text = rest;
                Ok(())
            }
            None if what.starts_with(self.text) => Err(Fault::Incomplete(expected, None)),
            None => Err(Fault::Expected(expected)),
        }
    }

    fn end(&self) -> Result<(), Fault<'static>> {
        if self.text.is_empty() {
            Ok(())
        } else {
            Err(Fault::Expected("the end of the line"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_what_pmcstat_prints() {
        assert_eq!(Line::of(""), Ok(Line::Empty));
        assert_eq!(
            Line::of("@ cpu_clk_unhalted.core_p [2546 samples]"),
            Ok(Line::Header {
                event: "cpu_clk_unhalted.core_p",
                samples: 2546,
            })
        );
        let frame = Frame {
            depth: 0,
            percent_hundredths: 939,
            samples: 239,
            symbol: "iflib_encap",
            object: Some("/boot/kernel/kernel"),
        };
        assert_eq!(
            Line::of("09.39%  [239]      iflib_encap @ /boot/kernel/kernel"),
            Ok(Line::Frame(frame))
        );
        assert_eq!(
            Line::of("  100.0%  [4294967295]   _Z;.$b\u{b7}"),
            Ok(Line::Frame(Frame {
                depth: 2,
                percent_hundredths: 10_000,
                samples: u32::MAX,
                symbol: "_Z;.$b\u{b7}",
                object: None,
            }))
        );
        // All but one of a million: not all, and rounded the same.
        let nearly_all = Line::of(" 100.00%  [999999]   a @ /a folder/b @ c");
        assert_eq!(
            nearly_all,
            Ok(Line::Frame(Frame {
                depth: 1,
                percent_hundredths: 10_000,
                samples: 999_999,
                symbol: "a",
                object: Some("/a folder/b @ c"),
            }))
        );
    }

    #[test]
    fn every_beginning_of_a_line_is_told_from_what_is_no_line() {
        for whole in [
            "@ cpu_clk_unhalted.core_p [2546 samples]",
            "  09.39%  [239]      iflib_encap @ /boot/kernel/kernel",
            " 100.0%  [1]   a",
        ] {
            assert!(Line::of(whole).is_ok(), "{whole}");
            for length in 1..whole.len() {
                let part = &whole[..length];
                // Within the symbol and the object a part looks whole.
                let symbol_at = whole.rfind(']').map_or(0, |at| at + 1);
                match Line::of(part) {
                    Err(Fault::Incomplete(_, frame)) => {
                        assert_eq!(frame.is_some(), part.contains("encap "), "{part}");
                    }
                    Ok(Line::Frame(_)) => assert!(length > symbol_at, "{part}"),
                    other => panic!("{part}: {other:?}"),
                }
            }
        }
        for (text, expected) in [
            ("CMD: pkt-gen -f rx", "a percentage"),
            ("\u{7f}ELF", "a percentage"),
            ("@cpu [1 samples]", "a section"),
            ("@  [1 samples]", "an event"),
            ("@ a\tb [1 samples]", "an event"),
            ("@ a [x samples]", "the section's samples"),
            ("@ a [4294967296 samples]", "the section's samples"),
            ("@ a [1 sample]", "\"samples]\""),
            ("@ a [1 samples] ", "the end of the line"),
            ("9.39%  [1]  a", "a percentage"),
            ("100.1%  [1]  a", "a percentage"),
            ("101.00%  [1]  a", "a percentage"),
            ("09.3%  [1]  a", "a percentage"),
            ("nan%  [1]  a", "a percentage"),
            (
                "09.39% [1]  a",
                "a percentage, two spaces and samples in brackets",
            ),
            ("09.39%  [-1]  a", "samples"),
            ("09.39%  [4294967296]  a", "samples"),
            ("09.39%  [1}  a", "samples in brackets"),
            ("09.39%  [1]a", "a space and a symbol"),
            ("09.39%  [1] \ta", "a symbol"),
            ("09.39%  [1] a\tb", "\" @ \" and an object"),
            ("09.39%  [1] a b", "\" @ \" and an object"),
            ("09.39%  [1] a @ b\tc", "an object"),
        ] {
            assert_eq!(Line::of(text), Err(Fault::Expected(expected)), "{text}");
        }
    }
}
