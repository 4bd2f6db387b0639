//! Dates as numbers, for an axis.

const DAY_S: i64 = 86_400;

/// The middle of what a date says (`2016`, `2016-08`, `2016-08-03`, or with the time of day), in seconds
/// since 1970, UTC; none for another text.
pub(super) fn middle_s(date: &str) -> Option<f64> {
    let number = |from: usize, to: usize| date.get(from..to)?.parse::<i64>().ok();
    let year = number(0, 4)?;
    if date.len() == 4 {
        return Some(between(start_s(year, 1), start_s(year + 1, 1)));
    }
    let month = number(5, 7).filter(|month| (1..=12).contains(month))?;
    if date.len() == 7 {
        return Some(between(start_s(year, month), start_s(year, month + 1)));
    }
    let day = number(8, 10).filter(|day| (1..=31).contains(day))?;
    let midnight_s = start_s(year, month) + (day - 1) * DAY_S;
    if date.len() == 10 {
        return Some(between(midnight_s, midnight_s + DAY_S));
    }
    let time_s = number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?;
    Some((midnight_s + time_s) as f64)
}

fn between(one: i64, other: i64) -> f64 {
    f64::midpoint(one as f64, other as f64)
}

/// The first second of a month; months beyond December are those of the next years.
fn start_s(year: i64, month: i64) -> i64 {
    let (year, month) = (
        year + (month - 1).div_euclid(12),
        (month - 1).rem_euclid(12) + 1,
    );
    // Howard Hinnant's days_from_civil: years begin in March, so that the leap day is the last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era - 719_468) * DAY_S
}

/// Year, month and day of a second since 1970.
fn civil(second: i64) -> (i64, i64, i64) {
    let days = second.div_euclid(DAY_S) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The day of a second since 1970, `2016-08-03`.
pub(super) fn day(second: f64) -> String {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "four-digit years are within an i64"
    )]
    let (year, month, day) = civil(second.floor() as i64);
    format!("{year:04}-{month:02}-{day:02}")
}

/// How far apart the marks of an axis are.
#[derive(Clone, Copy)]
enum Step {
    Seconds(i64),
    Months(i64),
}

const STEPS: &[Step] = &[
    Step::Seconds(60),
    Step::Seconds(300),
    Step::Seconds(900),
    Step::Seconds(3600),
    Step::Seconds(3 * 3600),
    Step::Seconds(6 * 3600),
    Step::Seconds(12 * 3600),
    Step::Seconds(DAY_S),
    Step::Seconds(2 * DAY_S),
    Step::Seconds(7 * DAY_S),
    Step::Months(1),
    Step::Months(3),
    Step::Months(6),
    Step::Months(12),
    Step::Months(24),
    Step::Months(60),
    Step::Months(120),
    Step::Months(600),
    Step::Months(2400),
    Step::Months(12_000),
    Step::Months(60_000),
];

/// Round moments from `low_s` to `high_s`, at most `count_max` of them, and what to write beside each.
pub(super) fn marks(low_s: f64, high_s: f64, count_max: usize) -> Vec<(f64, String)> {
    let all = STEPS
        .iter()
        .map(|step| marks_of(*step, low_s, high_s, count_max));
    all.flatten().next().unwrap_or_default()
}

/// None where there are more of that step.
fn marks_of(step: Step, low_s: f64, high_s: f64, count_max: usize) -> Option<Vec<(f64, String)>> {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "four-digit years are within an i64"
    )]
    let first = low_s.ceil() as i64;
    let mut index = match step {
        Step::Seconds(step) => first.div_euclid(step),
        Step::Months(step) => {
            let (year, month, _) = civil(first);
            (year * 12 + month - 1).div_euclid(step)
        }
    };
    let mut marks = Vec::new();
    loop {
        let second = match step {
            Step::Seconds(step) => index * step,
            Step::Months(step) => start_s(
                (index * step).div_euclid(12),
                (index * step).rem_euclid(12) + 1,
            ),
        };
        if second as f64 > high_s {
            return Some(marks);
        }
        if second >= first {
            if marks.len() == count_max {
                return None;
            }
            let (year, month, day) = civil(second);
            let of_day = second.rem_euclid(DAY_S);
            let text = match step {
                Step::Months(step) if step >= 12 => format!("{year:04}"),
                Step::Months(_) => format!("{year:04}-{month:02}"),
                Step::Seconds(step) if step >= DAY_S => format!("{year:04}-{month:02}-{day:02}"),
                Step::Seconds(_) => {
                    let (hour, minute) = (of_day / 3600, of_day / 60 % 60);
                    format!("{month:02}-{day:02} {hour:02}:{minute:02}")
                }
            };
            marks.push((second as f64, text));
        }
        index += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_date_is_the_middle_of_what_it_says() {
        for (date, second) in [
            ("1970-01-01T00:00:00Z", Some(0.0)),
            ("2026-11-21T08:42:53Z", Some(1_795_250_573.0)),
            ("2000-02-29", Some(951_782_400.0 + 43_200.0)),
            ("1970-01", Some(15.5 * 86_400.0)),
            ("1970", Some(182.5 * 86_400.0)),
            ("yesterday", None),
            ("2016-13", None),
            ("20é6", None),
            ("2016-08-03T", None),
        ] {
            assert_eq!(middle_s(date), second, "{date}");
        }
    }

    #[test]
    fn marks_are_round_and_few() {
        let texts = |low: &str, high: &str| -> Vec<String> {
            let (low, high) = (middle_s(low).unwrap(), middle_s(high).unwrap());
            marks(low, high, 6)
                .into_iter()
                .map(|(_, text)| text)
                .collect()
        };
        assert_eq!(
            texts("2015-03-01", "2026-11-21"),
            ["2016", "2018", "2020", "2022", "2024", "2026"]
        );
        assert_eq!(
            texts("2026-08-02", "2026-11-21"),
            ["2026-09", "2026-10", "2026-11"]
        );
        assert_eq!(
            texts("2026-11-21T08:10:00Z", "2026-11-21T10:10:00Z"),
            ["11-21 09:00", "11-21 10:00"]
        );
    }

    proptest! {
        #[test]
        fn marks_lie_inside_and_days_are_themselves(low in -6e10..2.5e11_f64, span in 1.0..1e11_f64) {
            let found = marks(low, low + span, 7);
            prop_assert!(found.len() <= 7);
            for (second, _) in found {
                prop_assert!((low..=low + span).contains(&second));
            }
            #[allow(clippy::cast_possible_truncation, reason = "small")]
            let midnight = (low as i64).div_euclid(DAY_S) * DAY_S;
            let (year, month, day) = civil(midnight);
            prop_assert_eq!(start_s(year, month) + (day - 1) * DAY_S, midnight);
        }

        #[test]
        fn any_text_is_a_date_or_none(text: String) {
            let _ = middle_s(&text);
        }
    }
}
