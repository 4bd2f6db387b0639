//! Words and white space that do not belong into a committed file.

/// Marks of unfinished work. In halves, so that this file does not find itself.
const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("db", "g!"),
];

/// Where machines build; a path below one of these means nothing to anybody else.
const BUILD_PLACES: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/tmp/tar", "get"),
    concat!("/ro", "ot/"),
];

/// Unfinished work in any text but a picture's, and in TOML and Markdown also tabs and white space at a line's end.
///
/// In Rust the formatter finds those, which knows what is a string.
pub(super) fn problems(path: &str, content: &str) -> Vec<String> {
    let is_plain = path.ends_with(".toml") || path.ends_with(".md");
    let mut fence = Fence::default();
    let mut problems = Vec::new();
    for (index, line) in content.split_terminator('\n').enumerate() {
        let mut problem = |what: &str| problems.push(format!("{path}:{}: {what}", index + 1));
        // What a program printed stands in a document as it was printed.
        let is_quoted = path.ends_with(".md") && fence.holds(line);
        if is_plain && !is_quoted {
            if line.contains('\t') {
                problem("a tab");
            }
            if line.ends_with(char::is_whitespace) {
                problem("white space at the end");
            }
        }
        // A picture is drawn by a program, and may hold the scripts of a library.
        for mark in UNFINISHED.iter().filter(|_| !path.ends_with(".svg")) {
            if holds_word(line, mark) {
                problem(mark);
            }
        }
    }
    problems
}

/// Paths of build machines, in text or not: compilers leave them in what they make.
pub(super) fn place_problems(path: &str, content: &[u8]) -> Vec<String> {
    let stands_at = |place: &[u8], at: usize| {
        content[at..].starts_with(place)
            // Within a longer path it is a folder of that name.
            && !at.checked_sub(1).is_some_and(|before| is_path_byte(content[before]))
    };
    BUILD_PLACES
        .iter()
        .filter(|place| (0..content.len()).any(|at| stands_at(place.as_bytes(), at)))
        .map(|place| format!("{path}: names {place}, a path of the machine it was made on"))
        .collect()
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.~/}".contains(&byte)
}

fn holds_word(line: &str, word: &str) -> bool {
    let is_part =
        |other: Option<char>| other.is_some_and(|other| other.is_alphanumeric() || other == '_');
    line.match_indices(word).any(|(at, _)| {
        !is_part(line[..at].chars().next_back()) && !is_part(line[at + word.len()..].chars().next())
    })
}

/// Follows the code fences of a Markdown file.
#[derive(Default)]
pub(super) struct Fence {
    open: Option<String>,
}

impl Fence {
    /// Whether the next line is inside a fence; the lines that open and close it are not.
    pub(super) fn holds(&mut self, line: &str) -> bool {
        let trimmed = line.trim();
        let mark: String = trimmed.chars().take_while(|&char| char == '`').collect();
        match &self.open {
            Some(open) if trimmed.len() == mark.len() && mark.len() >= open.len() => {
                self.open = None;
                false
            }
            Some(_) => true,
            None => {
                self.open = (mark.len() >= 3).then_some(mark);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [&str; 0] = [];

    #[test]
    fn white_space_is_found_in_toml_and_markdown() {
        assert_eq!(
            problems("a.toml", "[a]\n\tb = 1  \n"),
            ["a.toml:2: a tab", "a.toml:2: white space at the end"]
        );
        assert_eq!(problems("a.bpf.c", "int a;\t/* b */ \n"), NONE);
        assert_eq!(
            problems("a.rs", "const PRINTED: &str = \"a\tb \n\";\n"),
            NONE
        );
        assert_eq!(
            problems("a.md", "a\r\n"),
            ["a.md:1: white space at the end"]
        );
    }

    #[test]
    fn output_in_a_document_stands_as_it_was_printed() {
        assert_eq!(problems("a.md", "```console\nx\t1 \n```\n"), NONE);
        assert_eq!(
            problems("a.md", "````\n```\nx\t1\n```\n````\nx\t1\n"),
            ["a.md:6: a tab"]
        );
    }

    #[test]
    fn unfinished_work_is_found_as_a_word() {
        for mark in UNFINISHED {
            assert_eq!(
                problems("a.c", &format!("a\n// {mark}: b\n")),
                [format!("a.c:2: {mark}")]
            );
            assert_eq!(
                problems("a.c", &format!("a{mark}b, {mark}S, _{mark}")),
                NONE
            );
        }
    }

    #[test]
    fn places_are_found_in_bytes_but_not_within_paths() {
        for place in BUILD_PLACES {
            let object = [b"\x7fELF\0\xff", place.as_bytes(), b"x.bpf.c\0"].concat();
            assert_eq!(place_problems("x.bpf.o", &object).len(), 1, "{place}");
            assert_eq!(
                place_problems("a.md", format!("tests{place}x.rs").as_bytes()),
                NONE
            );
        }
    }
}
