//! Numbers as `strtol` and `strtod` read them: from the beginning of a text, whatever follows.

/// Result of `strtol`, converted to 32 bits as librdkafka does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Integer {
    /// The text does not begin with a number.
    None,
    /// Binary notation, which only some C libraries read.
    Ambiguous,
    Value(i32),
}

/// Reads an integer, which may be decimal, octal or hexadecimal. Numbers beyond 64 bits are cut to the nearest one
/// within, and the upper half of the result is dropped.
pub(crate) fn integer(text: &str) -> Integer {
    let (is_negative, digits) = signed(text);
    let lower = digits.get(..2).map(str::to_ascii_lowercase);
    let follows = |radix| {
        let third = digits.chars().nth(2);
        third.is_some_and(|digit| digit.is_digit(radix))
    };
    let (radix, digits) = match lower.as_deref() {
        Some("0x") if follows(16) => (16, &digits[2..]),
        Some("0b") if follows(2) => return Integer::Ambiguous,
        _ if digits.starts_with('0') => (8, digits),
        _ => (10, digits),
    };
    let mut magnitude: Option<i128> = None;
    for digit in digits.chars().map_while(|digit| digit.to_digit(radix)) {
        let so_far = magnitude.unwrap_or_default();
        let longer = so_far.saturating_mul(radix.into());
        magnitude = Some(longer.saturating_add(digit.into()));
    }
    let Some(magnitude) = magnitude else {
        return Integer::None;
    };
    let number = if is_negative { -magnitude } else { magnitude };
    let within = number.clamp(i64::MIN.into(), i64::MAX.into());
    #[expect(
        clippy::cast_possible_truncation,
        reason = "librdkafka drops the upper half, too"
    )]
    let value = within as i32;
    Integer::Value(value)
}

/// Reads a number. A hexadecimal one is NaN, which is outside no range: its value is not determined here.
pub(crate) fn number(text: &str) -> Option<f64> {
    let (is_negative, unsigned) = signed(text);
    let lower = unsigned.to_ascii_lowercase();
    let magnitude = if lower.starts_with("inf") {
        f64::INFINITY
    } else if lower.starts_with("nan") || lower.starts_with("0x") {
        f64::NAN
    } else {
        decimal(&lower)?
    };
    Some(if is_negative { -magnitude } else { magnitude })
}

/// Reads the longest decimal number at the beginning of a text.
fn decimal(text: &str) -> Option<f64> {
    let digits = |from: usize| {
        let rest = &text.as_bytes()[from..];
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let whole = digits(0);
    let mut end = whole;
    let mut has_digits = whole > 0;
    if text[end..].starts_with('.') {
        let fraction = digits(end + 1);
        has_digits |= fraction > 0;
        end += 1 + fraction;
    }
    if !has_digits {
        return None;
    }
    if text[end..].starts_with('e') {
        let signs = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + signs);
        if exponent > 0 {
            end += 1 + signs + exponent;
        }
    }
    text[..end].parse().ok()
}

/// Returns whether a number is negative, and the text after its sign.
fn signed(text: &str) -> (bool, &str) {
    let text = trim_start(text);
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Removes the white space at the beginning that `isspace` knows.
pub(crate) fn trim_start(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_by_strtol() {
        for (text, expected) in [
            ("5", Integer::Value(5)),
            (" +5ms", Integer::Value(5)),
            ("-1", Integer::Value(-1)),
            ("0x10", Integer::Value(16)),
            ("0xg", Integer::Value(0)),
            ("010", Integer::Value(8)),
            ("09", Integer::Value(0)),
            ("4294967306", Integer::Value(10)),
            ("99999999999999999999", Integer::Value(-1)),
            ("-99999999999999999999", Integer::Value(0)),
            ("0b1", Integer::Ambiguous),
            ("", Integer::None),
            ("abc", Integer::None),
            ("- 1", Integer::None),
            ("ä", Integer::None),
        ] {
            assert_eq!(integer(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_are_read_as_by_strtod() {
        for (text, expected) in [
            ("5ms", Some(5.0)),
            (" -.5e1x", Some(-5.0)),
            ("1.", Some(1.0)),
            ("1e", Some(1.0)),
            ("1e+", Some(1.0)),
            ("2E3", Some(2000.0)),
            ("infinity", Some(f64::INFINITY)),
            (".", None),
            ("e1", None),
            ("abc", None),
            ("", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
        assert!(number("0x10").is_some_and(f64::is_nan));
        assert!(number("nan").is_some_and(f64::is_nan));
    }
}
