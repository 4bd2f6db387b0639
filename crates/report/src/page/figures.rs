//! Figures and sentences as HTML.

use maud::{Markup, html};

use crate::format;
use crate::report::{Effect, IntervalSection};

/// A figure that shows where in `report.json` it comes from: a JSON pointer (RFC 6901).
pub(super) fn figure(record: &str, shown: &str) -> Markup {
    html! { span data-record=(record) { (shown) } }
}

/// The same, or a dash where there is none.
pub(super) fn figure_or_dash(record: &str, shown: Option<String>) -> Markup {
    shown.map_or_else(|| html! { "–" }, |shown| figure(record, &shown))
}

/// The ends of an effect's interval, with its confidence where it is that of the size; `at` is where the effect stands.
pub(super) fn interval(at: &str, effect: &Effect) -> Markup {
    let shown = effect.shown_interval();
    let decimals = format::effect_decimals(shown.map(IntervalSection::half_width_percent));
    let of = match effect.interval {
        Some(_) => "interval",
        None => "size_interval",
    };
    let end = |key: &str, percent: f64| {
        figure(
            &format!("{at}/{of}/{key}"),
            &format::signed(percent, decimals),
        )
    };
    html! {
        @if let Some(ends) = shown {
            (end("low_percent", ends.low_percent)) " to " (end("high_percent", ends.high_percent))
            @if effect.interval.is_none() { " (" (format::short(ends.confidence_percent, 1)) " %)" }
        } @else { "-∞ to +∞" }
    }
}

/// The class of a column and what the script sorts it by, where there is one.
type Column = (Option<&'static str>, Option<&'static str>);
pub(super) const PLAIN: Column = (None, None);
pub(super) const TEXT: Column = (None, Some("text"));
pub(super) const VERDICT: Column = (Some("verdict"), Some("text"));
pub(super) const FIGURE: Column = (Some("number"), None);
pub(super) const NUMBER: Column = (Some("number"), Some("number"));

/// A table that scrolls sideways where it is too wide; `label` says to those who cannot see it what it is.
pub(super) fn table(label: &str, columns: &[(Column, &str)], rows: Markup) -> Markup {
    let is_sortable = columns.iter().any(|((_, sort), _)| sort.is_some());
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table class=[is_sortable.then_some("sortable")] {
                thead {
                    tr {
                        @for ((class, sort), name) in columns {
                            th class=[*class] scope="col" data-sort=[*sort] { (name) }
                        }
                    }
                }
                tbody { (rows) }
            }
        }
    }
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
