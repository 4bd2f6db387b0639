//! Every rule that lint has.

use fwdlab_archive::lint::Rule;

/// Every rule of lint, in the order of the codes.
#[must_use]
pub fn rules() -> Vec<&'static Rule> {
    let mut rules = [fwdlab_archive::lint::RULES, fwdlab_netbenches::lint::RULES].concat();
    rules.sort_by_key(|rule| rule.code);
    rules
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_distinct_and_of_the_documented_ranges() {
        for pair in rules().windows(2) {
            assert!(pair[0].code < pair[1].code, "{}", pair[1].code);
        }
        let names: BTreeSet<&str> = rules().iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), rules().len());
        for rule in rules() {
            let (letter, digits) = rule.code.split_at(1);
            assert!(letter == "L" && digits.len() == 3, "{}", rule.code);
            assert!("1234569".contains(&digits[..1]), "{}", rule.code);
        }
    }

    #[test]
    fn each_table_is_in_the_order_of_the_codes() {
        for table in [fwdlab_archive::lint::RULES, fwdlab_netbenches::lint::RULES] {
            assert!(table.is_sorted_by_key(|rule| rule.code));
        }
    }

    /// The page has a row for each rule, word for word, and no other row.
    #[test]
    fn the_page_says_what_the_rules_say() {
        let page = include_str!("../../../../docs/lint.md");
        let is_row = |line: &&str| line.starts_with("| L") && line.as_bytes()[3].is_ascii_digit();
        let rows: Vec<&str> = page.lines().filter(is_row).collect();
        let expected: Vec<String> = rules()
            .iter()
            .map(|rule| {
                format!(
                    "| {} | `{}` | {} | {} | {} | {} |",
                    rule.code,
                    rule.name,
                    rule.severity.as_str(),
                    rule.finds,
                    rule.matters,
                    rule.help
                )
            })
            .collect();
        assert!(
            rows == expected,
            "docs/lint.md should have:\n{}",
            expected.join("\n")
        );
    }
}
