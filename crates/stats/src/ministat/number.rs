//! Text to number, as C's `strtod` does it.

/// The number that the whole of `text` spells to C's `strtod`.
///
/// Decimal and hexadecimal floating point, `inf`, `infinity` and `nan` in any
/// case, with a sign and leading white space; nothing may follow. The nearest
/// number is returned, ties to even; what is too large is infinite, as in C.
pub fn parse_number(text: &[u8]) -> Option<f64> {
    let start = text.iter().position(|byte| !is_c_space(*byte))?;
    let text = &text[start..];
    short_decimal(text).or_else(|| any_number(text))
}

/// What C's `isspace` says in the C locale.
pub(super) fn is_c_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// The most characters of digits and point that are read at once; the number
/// without its point always fits 64 bits.
const SHORT_DECIMAL_MAX: usize = 19;

/// Powers of ten that are exact as `f64`.
#[rustfmt::skip]
const EXACT_POWERS_OF_TEN: [f64; SHORT_DECIMAL_MAX] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
    1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
];

/// `[+-]digits[.digits]` and no more, where it is short.
fn short_decimal(text: &[u8]) -> Option<f64> {
    leading_decimal(text).and_then(|(number, length)| (length == text.len()).then_some(number))
}

/// The `[+-]digits[.digits]` that `text` begins with, and its length; of one
/// that is not short, only the beginning.
pub(super) fn leading_decimal(text: &[u8]) -> Option<(f64, usize)> {
    let (negative, unsigned) = signed(text);
    let short = &unsigned[..unsigned.len().min(SHORT_DECIMAL_MAX)];
    let (whole, whole_digits) = leading_digits(short, 0);
    let (significand, decimals, length) = match &short[whole_digits..] {
        [b'.', fraction @ ..] => {
            let (significand, decimals) = leading_digits(fraction, whole);
            (significand, decimals, whole_digits + 1 + decimals)
        }
        _ => (whole, 0, whole_digits),
    };
    if whole_digits + decimals == 0 {
        return None;
    }
    // The quotient of two exact numbers is correctly rounded.
    let magnitude = if significand <= 1 << f64::MANTISSA_DIGITS {
        significand as f64 / EXACT_POWERS_OF_TEN[decimals]
    } else {
        quotient(significand, DIVISORS[decimals])
    };
    let number = if negative { -magnitude } else { magnitude };
    Some((number, text.len() - unsigned.len() + length))
}

/// The number of `prefix` followed by the digits that `text` begins with, and
/// how many those are.
fn leading_digits(text: &[u8], prefix: u64) -> (u64, usize) {
    let mut number = prefix;
    let mut rest = text;
    while let Some((eight, after)) = rest.split_first_chunk()
        && let Some(value) = eight_digits(*eight)
    {
        number = number * 100_000_000 + value;
        rest = after;
    }
    while let [digit @ b'0'..=b'9', after @ ..] = rest {
        number = number * 10 + u64::from(digit - b'0');
        rest = after;
    }
    (number, text.len() - rest.len())
}

/// The number of eight digits, if they are digits, all at once: pairs are added
/// up to numbers below 100, those to numbers below 10 000, and those to one.
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    let bytes = u64::from_le_bytes(text);
    let digits = bytes.wrapping_sub(0x3030_3030_3030_3030);
    let above_nine = bytes.wrapping_add(0x4646_4646_4646_4646);
    if (digits | above_nine) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    Some(fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff)
}

/// Powers of ten, shifted until their highest bit is set.
const DIVISORS: [(u64, u32); SHORT_DECIMAL_MAX] = {
    let mut divisors = [(0, 0); SHORT_DECIMAL_MAX];
    let mut power = 1_u64;
    let mut index = 0;
    while index < SHORT_DECIMAL_MAX {
        divisors[index] = (power << power.leading_zeros(), power.leading_zeros());
        power *= 10;
        index += 1;
    }
    divisors
};

/// `dividend` divided by a divisor shifted so many bits, rounded once.
fn quotient(dividend: u64, (divisor, divisor_shift): (u64, u32)) -> f64 {
    let dividend_shift = dividend.leading_zeros();
    let dividend = u128::from(dividend << dividend_shift) << 62;
    let divisor = u128::from(divisor);
    let whole = dividend / divisor;
    // At least 61 bits: the lowest may stand for the remainder.
    let significand = whole | u128::from(whole * divisor != dividend);
    let exponent = i64::from(divisor_shift) - i64::from(dividend_shift) - 62;
    u64::try_from(significand).map_or(f64::INFINITY, |significand| rounded(significand, exponent))
}

fn any_number(text: &[u8]) -> Option<f64> {
    let (negative, unsigned) = signed(text);
    if let [b'0', b'x' | b'X', digits @ ..] = unsigned {
        let magnitude = hexadecimal(digits)?;
        return Some(if negative { -magnitude } else { magnitude });
    }
    if is_nan_with_payload(unsigned) {
        return Some(f64::NAN);
    }
    str::from_utf8(text).ok()?.parse().ok()
}

fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

/// `nan(…)`, which C allows; what stands between the brackets is ignored.
fn is_nan_with_payload(text: &[u8]) -> bool {
    let [name @ .., b')'] = text else {
        return false;
    };
    name.len() >= 4
        && name[..4].eq_ignore_ascii_case(b"nan(")
        && name[4..]
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// What follows `0x`: `digits[.digits][p[+-]exponent]`.
fn hexadecimal(text: &[u8]) -> Option<f64> {
    let mut parts = text.splitn(2, |byte| byte.eq_ignore_ascii_case(&b'p'));
    let digits = parts.next()?;
    let written_exponent = parts.next().map_or(Some(0), exponent)?;

    let mut significand = 0_u64;
    let mut exponent = 0_i64;
    let mut has_digit = false;
    let mut after_point = false;
    let mut lost_bits = false;
    for byte in digits {
        if *byte == b'.' && !after_point {
            after_point = true;
            continue;
        }
        let digit = char::from(*byte).to_digit(16)?;
        has_digit = true;
        if significand >> 60 == 0 {
            significand = significand << 4 | u64::from(digit);
            exponent -= if after_point { 4 } else { 0 };
        } else {
            lost_bits |= digit != 0;
            exponent += if after_point { 0 } else { 4 };
        }
    }
    // A significand that lost bits has at least 61, so its lowest one is far
    // below the rounding position and may stand for all that were lost.
    let significand = significand | u64::from(lost_bits);
    has_digit.then(|| rounded(significand, exponent.saturating_add(written_exponent)))
}

/// A decimal exponent; one too long to hold is as good as the largest.
fn exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = signed(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude = digits.iter().fold(0_i64, |value, digit| {
        value
            .saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    Some(if negative { -magnitude } else { magnitude })
}

/// `significand * 2^exponent`, rounded once, ties to even.
fn rounded(significand: u64, exponent: i64) -> f64 {
    const DIGITS: i64 = f64::MANTISSA_DIGITS as i64;
    const LOWEST_EXPONENT: i64 = f64::MIN_EXP as i64 - DIGITS;

    if significand == 0 {
        return 0.0;
    }
    let length = i64::from(u64::BITS - significand.leading_zeros());
    let magnitude = exponent.saturating_add(length);
    if magnitude > i64::from(f64::MAX_EXP) {
        return f64::INFINITY;
    }
    // The exponent of the last bit that is kept.
    let kept_exponent = magnitude.saturating_sub(DIGITS).max(LOWEST_EXPONENT);
    let kept = match kept_exponent.saturating_sub(exponent) {
        missing @ ..=0 => significand << -missing,
        dropped @ 1..=64 => {
            let floor = significand >> 1 >> (dropped - 1);
            let fraction = significand << (64 - dropped);
            let half = 1 << 63;
            floor + u64::from(fraction > half || (fraction == half && floor & 1 == 1))
        }
        _ => 0,
    };
    // Added, not joined: the significand's highest bit is a one of the exponent,
    // as is the carry of one rounded up to the next power of two.
    let exponent_field = (kept_exponent - LOWEST_EXPONENT).unsigned_abs();
    f64::from_bits(kept + (exponent_field << (DIGITS - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spellings_that_are_no_number() {
        for text in [
            "", " ", "+", "-", ".", "-.", "e5", "1e", "1e+", "1 ", "1,2", "1.2.3", "0x", "0x.",
            "0x1p", "0x1p+", "0x1g", "infi", "nan(", "nan(-)", "nan()x", "+-5", "--5", "1_000",
            "0x-1", "١",
        ] {
            assert_eq!(parse_number(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse_number(b"1\xff"), None);
    }

    #[test]
    fn spellings_of_the_same_number() {
        for text in [
            "1",
            "+1",
            " \t\n\x0b\x0c\r1",
            "1.",
            "1.0",
            "10e-1",
            "0x1",
            "0X.8p1",
            "0x10p-4",
            "001",
        ] {
            assert_eq!(parse_number(text.as_bytes()), Some(1.0), "{text:?}");
        }
        for text in [
            "inf",
            "INFINITY",
            "+Inf",
            "1e400",
            "0x1p1024",
            "0x1p99999999999999999999",
        ] {
            assert_eq!(
                parse_number(text.as_bytes()),
                Some(f64::INFINITY),
                "{text:?}"
            );
        }
        for text in ["nan", "-NaN", "nan()", "NAN(0x12_z)"] {
            assert!(
                parse_number(text.as_bytes()).is_some_and(f64::is_nan),
                "{text:?}"
            );
        }
        assert_eq!(
            parse_number(b"-0").map(f64::to_bits),
            Some((-0.0_f64).to_bits())
        );
    }

    #[test]
    fn hexadecimal_is_rounded_once() {
        for (text, expected) in [
            ("0x1.fffffffffffff7p0", 2.0 - f64::EPSILON),
            ("0x1.fffffffffffff8p0", 2.0),
            ("0x1.00000000000008p0", 1.0),
            (
                "0x1.00000000000008000000000000000000001p0",
                1.0 + f64::EPSILON,
            ),
            ("0x1.fffffffffffffp1023", f64::MAX),
            ("0x1.fffffffffffff8p1023", f64::INFINITY),
            ("0x1p-1074", f64::from_bits(1)),
            ("0x1p-1075", 0.0),
            ("0x1.8p-1075", f64::from_bits(1)),
            ("0x3p-1075", f64::from_bits(2)),
            ("0x1p-99999999999999999999", 0.0),
            ("0x0.fffffffffffff8p-1022", f64::MIN_POSITIVE),
        ] {
            assert_eq!(
                parse_number(text.as_bytes()).map(f64::to_bits),
                Some(expected.to_bits()),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn eight_digits_are_told_from_other_bytes(text in prop_oneof![
            any::<[u8; 8]>(),
            prop::array::uniform8(b'0'..=b'9'),
            prop::array::uniform8(b'/'..=b':'),
        ]) {
            let expected = text.iter().try_fold(0, |number, byte| {
                char::from(*byte).to_digit(10).map(|digit| number * 10 + u64::from(digit))
            });
            prop_assert_eq!(eight_digits(text), expected);
        }

        #[test]
        fn any_bytes_are_read_or_refused(text: Vec<u8>) {
            let _ = parse_number(&text);
        }

        #[test]
        fn number_like_bytes_are_read_as_rust_reads_them(text in "[+-]?[0-9]{0,20}\\.?[0-9]{0,20}(e-?[0-9]{1,3})?") {
            let expected: Option<f64> = text.parse().ok();
            prop_assert_eq!(parse_number(text.as_bytes()).map(f64::to_bits), expected.map(f64::to_bits));
        }

        #[test]
        fn every_number_comes_back_from_its_hexadecimal(bits: u64) {
            let number = f64::from_bits(bits & !(1 << 63));
            prop_assume!(number.is_finite());
            let fraction = number.to_bits() & ((1 << 52) - 1);
            let text = match number.to_bits() >> 52 {
                0 => format!("0x0.{fraction:013x}p-1022"),
                biased => format!("0x1.{fraction:013x}p{}", biased as i64 - 1023),
            };
            prop_assert_eq!(parse_number(text.as_bytes()).map(f64::to_bits), Some(number.to_bits()));
        }
    }
}
