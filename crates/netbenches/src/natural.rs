//! Names in the order in which people number them.

use std::cmp::Ordering;

/// Compares texts with numbers inside by the numbers: `6.9` stands before `6.18`, `fbsd11` before
/// `fbsd100`.
pub(crate) fn compare(one: &str, other: &str) -> Ordering {
    let (mut one_rest, mut other_rest) = (one, other);
    loop {
        let (Some(a), Some(b)) = (one_rest.chars().next(), other_rest.chars().next()) else {
            // `1` and `01` are the same number and yet two texts.
            return one_rest
                .len()
                .cmp(&other_rest.len())
                .then_with(|| one.cmp(other));
        };
        let order = if a.is_ascii_digit() && b.is_ascii_digit() {
            let (a, b) = (number(&mut one_rest), number(&mut other_rest));
            a.len().cmp(&b.len()).then_with(|| a.cmp(b))
        } else {
            one_rest = &one_rest[a.len_utf8()..];
            other_rest = &other_rest[b.len_utf8()..];
            a.cmp(&b)
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Takes the digits from the front of a text; they come without leading zeros.
fn number<'a>(text: &mut &'a str) -> &'a str {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    *text = rest;
    digits.trim_start_matches('0')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn revisions_stand_in_the_order_of_their_numbers() {
        let mut names = [
            "6.18.44",
            "fbsd11",
            "6.9",
            "6.18.5",
            "fbsd100-r3",
            "6.18",
            "6.09",
            "fbsd100-r20",
        ];
        names.sort_by(|a, b| compare(a, b));
        assert_eq!(
            names,
            [
                "6.09",
                "6.9",
                "6.18",
                "6.18.5",
                "6.18.44",
                "fbsd11",
                "fbsd100-r3",
                "fbsd100-r20"
            ]
        );
    }

    proptest! {
        #[test]
        fn it_is_an_order(mut texts in prop::collection::vec("[a0-2.é]{0,6}", 3)) {
            texts.sort_by(|a, b| compare(a, b));
            prop_assert_ne!(compare(&texts[0], &texts[1]), Ordering::Greater);
            prop_assert_ne!(compare(&texts[1], &texts[2]), Ordering::Greater);
            prop_assert_ne!(compare(&texts[0], &texts[2]), Ordering::Greater);
            prop_assert_eq!(compare(&texts[0], &texts[1]).is_eq(), texts[0] == texts[1]);
            prop_assert_eq!(compare(&texts[1], &texts[0]), compare(&texts[0], &texts[1]).reverse());
        }
    }
}
