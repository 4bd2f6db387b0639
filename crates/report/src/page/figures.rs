//! Figures and sentences as HTML.

use maud::{Markup, html};

/// A figure that shows where in `report.json` it comes from: a JSON pointer (RFC 6901).
pub(super) fn figure(record: &str, shown: &str) -> Markup {
    html! { span data-record=(record) { (shown) } }
}

/// The same, or a dash where there is none.
pub(super) fn figure_or_dash(record: &str, shown: Option<String>) -> Markup {
    shown.map_or_else(|| html! { "–" }, |shown| figure(record, &shown))
}

/// A sentence of a report, whose Markdown is code spans alone.
pub(super) fn prose(sentence: &str) -> Markup {
    let mut parts = Vec::new();
    let mut rest = sentence;
    while let Some(start) = rest.find('`') {
        let fence = rest[start..]
            .bytes()
            .take_while(|byte| *byte == b'`')
            .count();
        let inside = &rest[start + fence..];
        let Some(end) = closing(inside, fence) else {
            break;
        };
        parts.push((&rest[..start], code(&inside[..end])));
        rest = &inside[end + fence..];
    }
    html! {
        @for (before, code) in parts { (before) code { (code) } }
        (rest)
    }
}

/// Where a run of exactly so many backticks begins.
fn closing(text: &str, fence: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let length = text[start..]
            .bytes()
            .take_while(|byte| *byte == b'`')
            .count();
        if length == fence {
            return Some(start);
        }
        at = start + length;
    }
    None
}

/// A code span without the space that keeps a backtick off its fence.
fn code(span: &str) -> &str {
    span.strip_prefix(' ')
        .and_then(|span| span.strip_suffix(' '))
        .filter(|inner| !inner.trim().is_empty())
        .unwrap_or(span)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text;

    #[test]
    fn code_spans_become_elements_and_nothing_else_acts() {
        let of = |sentence: &str| prose(sentence).into_string();
        assert_eq!(
            of("30 ns in `nft_do_chain`."),
            "30 ns in <code>nft_do_chain</code>."
        );
        assert_eq!(of("`` a`b `` <b>"), "<code>a`b</code> &lt;b&gt;");
        assert_eq!(of("an open ` stays"), "an open ` stays");
    }

    proptest! {
        #[test]
        fn any_name_in_a_code_span_is_shown_as_it_is(name in "[ -~`]{1,30}") {
            let name = text::one_line(&name);
            prop_assume!(!name.is_empty());
            let span = text::code(&name);
            let element = html! { "in " code { (name) } " itself" }.into_string();
            prop_assert_eq!(prose(&format!("in {span} itself")).into_string(), element);
        }
    }
}
