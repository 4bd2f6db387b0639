//! Number to text, as C's `printf` does it for `%g`.

use std::fmt;

/// A number as C's `%.*g` prints it: [`general`].
#[derive(Clone, Copy, Debug)]
pub struct General {
    number: f64,
    significant_digits: usize,
}

/// `number` with so many significant digits at most, as `%g` prints it: no
/// trailing zeros, an exponent where it is below -4 or not below the digits.
///
/// `%13.8g` is `{:>13}` of `general(number, 8)`; `%g` is 6 digits. Not-a-number
/// is `nan` whatever its sign, as on FreeBSD.
pub fn general(number: f64, significant_digits: usize) -> General {
    General {
        number,
        significant_digits: significant_digits.max(1),
    }
}

impl fmt::Display for General {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text())
    }
}

impl General {
    fn text(self) -> String {
        if self.number.is_nan() {
            return "nan".to_owned();
        }
        if self.number.is_infinite() {
            return if self.number < 0.0 { "-inf" } else { "inf" }.to_owned();
        }
        // The exponent that counts is the one after rounding.
        let scientific = format!("{:.*e}", self.significant_digits - 1, self.number);
        let (significand, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        match usize::try_from(exponent + 4) {
            Ok(above_lowest) if above_lowest < self.significant_digits + 4 => {
                let decimals = self.significant_digits + 3 - above_lowest;
                without_trailing_zeros(&format!("{:.decimals$}", self.number)).to_owned()
            }
            _ => {
                let sign = if exponent < 0 { '-' } else { '+' };
                let significand = without_trailing_zeros(significand);
                format!("{significand}e{sign}{:02}", exponent.unsigned_abs())
            }
        }
    }
}

fn without_trailing_zeros(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exponents_appear_where_c_has_them() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (0.000099999951, "0.0001"),
            (999999.4, "999999"),
            (999999.5, "1e+06"),
            (-1.34948e6, "-1.34948e+06"),
            (1e100, "1e+100"),
            (0.5, "0.5"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
            (-f64::NAN, "nan"),
        ] {
            assert_eq!(general(number, 6).to_string(), expected);
        }
    }

    #[test]
    fn width_pads_on_the_left() {
        assert_eq!(format!("{:>13}", general(5489556.5, 8)), "    5489556.5");
        assert_eq!(format!("{:>3}", general(1234567.0, 8)), "1234567");
    }

    #[test]
    fn ties_go_to_the_even_digit() {
        assert_eq!(general(12345678.5, 8).to_string(), "12345678");
        assert_eq!(general(12345679.5, 8).to_string(), "12345680");
        assert_eq!(general(2.5, 1).to_string(), "2");
        assert_eq!(general(0.000125, 2).to_string(), "0.00013");
    }

    proptest! {
        #[test]
        fn seventeen_digits_bring_every_number_back(number in proptest::num::f64::ANY) {
            let text = general(number, 17).to_string();
            let back: f64 = text.parse().unwrap();
            if number.is_nan() {
                prop_assert!(back.is_nan());
            } else {
                prop_assert_eq!(back.to_bits(), number.to_bits());
            }
        }
    }
}
