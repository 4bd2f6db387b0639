//! Times as `date` prints them.

use jiff::civil;
use jiff::tz::Offset;

/// A time as it is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedTime {
    /// As it stands.
    pub text: String,
    /// The time zone, as it stands: `CEST`, `+0200`.
    pub zone: Option<String>,
    /// Seconds since 1970; `None` where the form or the time zone is not known.
    pub epoch_s: Option<i64>,
}

/// Hours east of Greenwich of the zones whose letters mean only one thing to `date` (in America those of
/// RFC 5322).
const ZONES: &[(&str, i8)] = &[
    ("UTC", 0),
    ("GMT", 0),
    ("WET", 0),
    ("WEST", 1),
    ("CET", 1),
    ("CEST", 2),
    ("EET", 2),
    ("EEST", 3),
    ("EST", -5),
    ("EDT", -4),
    ("CST", -6),
    ("CDT", -5),
    ("MST", -7),
    ("MDT", -6),
    ("PST", -8),
    ("PDT", -7),
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

impl PrintedTime {
    /// Reads a time; `None` where nothing is printed.
    ///
    /// Shape: `Thu Sep 10 00:48:04 CEST 2015` or `January 29, 2016 at 08:25:47 PM CET`; whatever else is
    /// kept without seconds.
    ///
    /// # Examples
    /// ```
    /// use fwdlab_netbenches::PrintedTime;
    /// let time = PrintedTime::parse("Thu Sep 10 00:48:04 CEST 2015");
    /// assert_eq!(time.and_then(|time| time.epoch_s), Some(1_441_838_884));
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let words: Vec<&str> = text
            .split([' ', ','])
            .filter(|word| !word.is_empty())
            .collect();
        let (date, clock, half, zone) = match *words {
            [_, month, day, clock, zone, year] => ([month, day, year], clock, None, Some(zone)),
            [_, month, day, clock, year] => ([month, day, year], clock, None, None),
            [month, day, year, "at", clock, half, zone] => {
                ([month, day, year], clock, Some(half), Some(zone))
            }
            _ => ([""; 3], "", None, None),
        };
        let time = date_time(date, clock, half);
        let epoch_s = time.and_then(|time| {
            let timestamp = offset(zone?)?.to_timestamp(time).ok()?;
            Some(timestamp.as_second())
        });
        (!text.is_empty()).then(|| Self {
            text: text.to_owned(),
            zone: zone.filter(|_| time.is_some()).map(str::to_owned),
            epoch_s,
        })
    }
}

fn date_time(
    [month, day, year]: [&str; 3],
    clock: &str,
    half: Option<&str>,
) -> Option<civil::DateTime> {
    let is_month = |name: &&str| month.len() >= 3 && name.starts_with(month);
    let month = MONTHS.iter().position(is_month)? + 1;
    let mut parts = clock.split(':').map(|part| part.parse::<i8>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let hour = match half {
        None => hour,
        Some("AM") if (1..=12).contains(&hour) => hour % 12,
        Some("PM") if (1..=12).contains(&hour) => hour % 12 + 12,
        Some(_) => return None,
    };
    let month = i8::try_from(month).ok()?;
    let (day, year) = (day.parse().ok()?, year.parse().ok()?);
    let time = civil::DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    parts.next().is_none().then_some(time)
}

fn offset(zone: &str) -> Option<Offset> {
    if let Some((_, hours)) = ZONES.iter().find(|(name, _)| *name == zone) {
        return Offset::from_hours(*hours).ok();
    }
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = digits.split_at_checked(2).filter(|_| digits.len() == 4)?;
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = i32::from(hours) * 3600 + i32::from(minutes) * 60;
    Offset::from_seconds(sign * seconds).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_in_both_forms() {
        // From `date -u -d @…` of GNU coreutils.
        for (text, zone, epoch_s) in [
            (
                "Thu Sep 10 00:48:04 CEST 2015",
                Some("CEST"),
                Some(1_441_838_884),
            ),
            (
                "Tue Dec  8 02:25:58 CET 2015",
                Some("CET"),
                Some(1_449_537_958),
            ),
            (
                "January 29, 2016 at 08:25:47 PM CET",
                Some("CET"),
                Some(1_454_095_547),
            ),
            (
                "March 1, 2016 at 12:00:00 AM UTC",
                Some("UTC"),
                Some(1_456_790_400),
            ),
            (
                "March 1, 2016 at 12:00:00 PM +0130",
                Some("+0130"),
                Some(1_456_828_200),
            ),
            ("Tue Dec  8 02:25:58 XYZ 2015", Some("XYZ"), None),
            ("Tue Dec  8 02:25:58 2015", None, None),
            ("Tue Feb 30 02:25:58 CET 2015", None, None),
            ("March 1, 2016 at 13:00:00 PM CET", None, None),
            ("yesterday", None, None),
        ] {
            let time = PrintedTime::parse(text).unwrap();
            assert_eq!(
                (time.zone.as_deref(), time.epoch_s),
                (zone, epoch_s),
                "{text}"
            );
        }
        assert_eq!(PrintedTime::parse("  "), None);
    }

    proptest! {
        #[test]
        fn any_text_is_kept(text: String, zone in "[+-].{0,5}") {
            let _ = offset(&zone);
            if let Some(time) = PrintedTime::parse(&text) {
                prop_assert_eq!(time.text, text.trim());
            }
        }

        #[test]
        fn written_times_are_read_back(epoch_s in 0_i64..4_000_000_000, west: bool) {
            let (zone, offset) = if west { ("EST", -5) } else { ("CEST", 2) };
            let time = jiff::Timestamp::from_second(epoch_s).unwrap();
            let time = Offset::from_hours(offset).unwrap().to_datetime(time);
            for form in ["%a %b %e %T ZONE %Y", "%B %d, %Y at %I:%M:%S %p ZONE"] {
                let text = time.strftime(form).to_string().replace("ZONE", zone);
                let read = PrintedTime::parse(&text).unwrap();
                prop_assert_eq!(read.epoch_s, Some(epoch_s), "{}", text);
            }
        }
    }
}
