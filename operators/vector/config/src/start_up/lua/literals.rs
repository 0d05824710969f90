//! Strings and numbers, which the parser reads less strictly than Lua.

use full_moon::tokenizer::{StringLiteralQuoteType, Token, TokenType};

use crate::start_up::lua::mistake::Mistake;

/// Escape sequences of one letter.
const ESCAPES: &str = "abfnrtv\\'\"\n\r";

/// Highest code point that an escape sequence may have: Lua encodes more than Unicode.
const HIGHEST_CODE_POINT: u32 = 0x7FFF_FFFF;

/// Returns the first literal that Lua does not read.
pub(crate) fn mistake(text: &str, tokens: &[Token]) -> Option<Mistake> {
    tokens.iter().find_map(|token| {
        let message = match token.token_type() {
            TokenType::StringLiteral {
                literal,
                quote_type: StringLiteralQuoteType::Double | StringLiteralQuoteType::Single,
                ..
            } => string(literal.as_str())?,
            TokenType::Number { .. } => number(text.get(token.start_position().bytes()..)?)?,
            _ => return None,
        };
        Some(Mistake::at(token.start_position(), message))
    })
}

/// Validates the text between the quotation marks of a string.
fn string(text: &str) -> Option<String> {
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '\n', '\r']) {
        let Some(after) = rest[at..].strip_prefix('\\') else {
            return Some("a string ends with its line".to_owned());
        };
        rest = match escape(after) {
            Ok(rest) => rest,
            Err(message) => return Some(message),
        };
    }
    None
}

/// Reads an escape sequence behind its backslash, and returns what follows it.
fn escape(after: &str) -> Result<&str, String> {
    let Some(kind) = after.chars().next() else {
        return Ok(after);
    };
    let rest = &after[kind.len_utf8()..];
    match kind {
        'z' => Ok(rest.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r'])),
        'x' => {
            let digits = rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count();
            if digits < 2 {
                return Err("the escape sequence `\\x` needs two hexadecimal digits".to_owned());
            }
            Ok(&rest[2..])
        }
        'u' => {
            let code = rest
                .strip_prefix('{')
                .and_then(|rest| rest.split_once('}'))
                .filter(|(digits, _)| is_code_point(digits));
            code.map(|(_, rest)| rest).ok_or_else(|| {
                "the escape sequence `\\u` needs a code point, such as `\\u{48}`".to_owned()
            })
        }
        '0'..='9' => {
            let digits = after.bytes().take(3).take_while(u8::is_ascii_digit).count();
            let (code, rest) = after.split_at(digits);
            match code.parse::<u8>() {
                Ok(_) => Ok(rest),
                Err(_) => Err(format!("the escape sequence `\\{code}` is more than 255")),
            }
        }
        '\r' => Ok(rest.strip_prefix('\n').unwrap_or(rest)),
        '\n' => Ok(rest.strip_prefix('\r').unwrap_or(rest)),
        kind if ESCAPES.contains(kind) => Ok(rest),
        kind => Err(format!("the escape sequence `\\{kind}` is invalid")),
    }
}

fn is_code_point(digits: &str) -> bool {
    let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let significant = digits.trim_start_matches('0');
    let code = match significant {
        "" => Ok(0),
        digits => u32::from_str_radix(digits, 16),
    };
    !digits.is_empty() && is_hexadecimal && code.is_ok_and(|code| code <= HIGHEST_CODE_POINT)
}

/// Validates the number at the beginning of a text. It includes everything that looks like a part of it.
fn number(text: &str) -> Option<String> {
    let is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let exponents = if is_hexadecimal {
        ['p', 'P']
    } else {
        ['e', 'E']
    };
    let mut end = if is_hexadecimal { 2 } else { 0 };
    while let Some(next) = text[end..].chars().next() {
        if exponents.contains(&next) {
            end += 1;
            end += usize::from(text[end..].starts_with(['+', '-']));
        } else if next.is_ascii_hexdigit() || next == '.' {
            end += 1;
        } else {
            break;
        }
    }
    let is_followed = text[end..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let digits = &text[..end];
    let is_number = if is_hexadecimal {
        is_numeral(&digits[2..], exponents, |digit| digit.is_ascii_hexdigit())
    } else {
        is_numeral(digits, exponents, |digit| digit.is_ascii_digit())
    };
    (is_followed || !is_number).then(|| format!("the number near `{digits}` is malformed"))
}

/// Returns true if a text is a number with an optional fraction and an optional exponent.
fn is_numeral(text: &str, exponents: [char; 2], is_digit: impl Fn(&char) -> bool) -> bool {
    let (mantissa, exponent) = match text.split_once(exponents) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let are_digits = |text: &str| text.chars().all(|digit| is_digit(&digit));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    let is_exponent = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
    });
    has_digits && are_digits(whole) && are_digits(fraction) && is_exponent
}

#[cfg(test)]
mod tests {
    use super::{number, string};

    #[test]
    fn strings_have_the_escape_sequences_of_lua() {
        for valid in [
            r"\a\b\f\n\r\t\v\\\'\x41\u{48}\u{7FFFFFFF}\0\255\z  x",
            "a\\\nb",
            "a\\\r\nb",
            "\\z\n\n  x",
            "\\z",
            r"\u{0000000000041}",
        ] {
            assert_eq!(string(valid), None, "{valid}");
        }
        for invalid in [
            r"\q",
            r"\d",
            r"\x4",
            r"\xg1",
            r"\u41",
            r"\u{}",
            r"\u{g}",
            r"\u{80000000}",
            r"\u{41",
            r"\256",
            r"\ä",
            "\\n\n",
            "a\nb",
        ] {
            assert!(string(invalid).is_some(), "{invalid}");
        }
    }

    #[test]
    fn numbers_end_where_lua_ends_them() {
        for valid in [
            "3", "3.", ".5", "3.0e-2)", "0x1p4", "0xA.8", "1 .. 2", "3;", "08", "1e308",
        ] {
            assert_eq!(number(valid), None, "{valid}");
        }
        for invalid in [
            "3x", "3y = 1", "3do", "3..2", "0x", "0xg", "1e", "1e+", "1.2.3", "3_0", "0x1p",
        ] {
            assert!(number(invalid).is_some(), "{invalid}");
        }
    }
}
