//! Quantities such as `500m` and `1.5Gi`:
//! <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>.

use std::cmp::Ordering;

use ::cel::common::types::{CelBool, CelDouble, CelInt, CelString};
use ::cel::{DeclarationError, Env, ExecutionError};
use num_bigint::{BigInt, Sign};

use crate::cel::library::arguments::failed;
use crate::cel::opaque::opaque;

const FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Maximum number of digits for computations. The API server has no limit, and hangs on larger numbers.
const MAX_DIGITS: u64 = 10_000;
/// Number of digits that always fit into 64 bits.
const SAFE_DIGITS: usize = 18;
/// Smallest power of ten. Finer values are rounded up.
const NANO: i32 = -9;

/// Quantity as the API server represents it. Only the small form can be an integer, so the notation decides
/// whether a quantity is one: `1Gi` and `1024Mi` are integers, `1.5Gi` is not.
#[derive(Clone, Debug)]
enum Quantity {
    /// `value` times ten to the power of `scale`.
    Small { value: i64, scale: i32 },
    /// Number of billionths.
    Large { nanos: BigInt },
}

opaque!(Quantity, "kubernetes.Quantity");

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_overload!(env, fn is_quantity: (CelString) -> CelBool)?;
    cel::add_overload!(env, fn quantity: (CelString) -> Result<Quantity>)?;
    cel::add_overload!(env, fn sign: (Quantity) -> CelInt)?;
    cel::add_member_overload!(env, fn sign: (Quantity) -> CelInt)?;
    cel::add_member_overload!(env, fn is_greater_than: (Quantity, Quantity) -> CelBool)?;
    cel::add_member_overload!(env, fn is_less_than: (Quantity, Quantity) -> CelBool)?;
    cel::add_member_overload!(env, fn compare_to: (Quantity, Quantity) -> CelInt)?;
    cel::add_member_overload!(env, fn as_approximate_float: (Quantity) -> CelDouble)?;
    cel::add_member_overload!(env, fn as_integer: (Quantity) -> Result<CelInt>)?;
    cel::add_member_overload!(env, fn is_integer: (Quantity) -> CelBool)?;
    cel::add_member_overload!(env, fn add: (Quantity, Quantity) -> Result<Quantity>)?;
    cel::add_member_overload!(env, fn add_integer: (Quantity, CelInt) -> Result<Quantity>, name = "add")?;
    cel::add_member_overload!(env, fn sub: (Quantity, Quantity) -> Result<Quantity>)?;
    cel::add_member_overload!(env, fn sub_integer: (Quantity, CelInt) -> Result<Quantity>, name = "sub")
}

impl Quantity {
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let (negative, unsigned) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(unsigned.len());
        let (figure, suffix) = unsigned.split_at(end);
        let (whole, fraction) = figure.split_once('.').unwrap_or((figure, ""));
        if fraction.contains('.') {
            return None;
        }
        let factor = Factor::of(suffix)?;
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            whole => whole,
        };
        let small = factor
            .takes_small(whole.len(), fraction.len())
            .then(|| Self::small(whole, fraction, &factor, negative))
            .flatten();
        small.or_else(|| {
            // A quantity without digits cannot need the large form.
            (!figure.is_empty() || suffix.is_empty())
                .then(|| Self::large(whole, fraction, &factor, negative))?
        })
    }

    fn small(whole: &str, fraction: &str, factor: &Factor, negative: bool) -> Option<Self> {
        let (multiplier, exponent) = match factor {
            Factor::Decimal(exponent) => (1, *exponent),
            Factor::Binary(bits) => (1_i64 << bits, 0),
        };
        let scale = i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
        let scale = i32::try_from(scale).ok().filter(|scale| *scale >= NANO)?;
        let value: i64 = format!("{whole}{fraction}").parse().ok()?;
        let value = value.checked_mul(multiplier)?;
        Some(Self::Small {
            value: if negative { -value } else { value },
            scale,
        })
    }

    /// Creates the large form in billionths, rounded up. Values with a binary suffix are limited to 64 bits.
    fn large(whole: &str, fraction: &str, factor: &Factor, negative: bool) -> Option<Self> {
        let digits = format!("{whole}{fraction}");
        let (multiplier, exponent) = match factor {
            Factor::Decimal(exponent) => (BigInt::from(1), i64::from(*exponent)),
            Factor::Binary(bits) => (BigInt::from(1) << bits, 0),
        };
        let shift = exponent - i64::try_from(fraction.len()).ok()? - i64::from(NANO);
        if u64::try_from(digits.len()).ok()? > MAX_DIGITS {
            return None;
        }
        let figure = digits.parse::<BigInt>().ok()? * multiplier;
        let power = |shift: u64| {
            (shift <= MAX_DIGITS).then(|| BigInt::from(10).pow(u32::try_from(shift).unwrap_or(0)))
        };
        let zero = BigInt::from(0);
        let nanos = match (shift >= 0, power(shift.unsigned_abs())) {
            (true, power) => figure * power?,
            (false, Some(power)) => {
                let rest = &figure % &power;
                figure / power + i32::from(rest != zero)
            }
            (false, None) => BigInt::from(i32::from(figure != zero)),
        };
        let most = BigInt::from(i64::MAX) * BigInt::from(1_000_000_000);
        let nanos = match factor {
            Factor::Binary(_) => nanos.min(most),
            Factor::Decimal(_) => nanos,
        };
        Some(Self::Large {
            nanos: if negative { -nanos } else { nanos },
        })
    }

    fn integer(&self) -> Option<i64> {
        match self {
            Self::Small { value, scale } => at_scale(*value, u32::try_from(*scale).ok()?),
            Self::Large { .. } => None,
        }
    }

    /// Returns the sign, the digits without trailing zeros, and the power of ten of the last digit.
    fn parts(&self) -> (Sign, String, i64) {
        let (number, power) = match self {
            Self::Small { value, scale } => (BigInt::from(*value), i64::from(*scale)),
            Self::Large { nanos } => (nanos.clone(), i64::from(NANO)),
        };
        let digits = number.magnitude().to_string();
        let significant = digits.trim_end_matches('0');
        let power = power + i64::try_from(digits.len() - significant.len()).unwrap_or(0);
        (number.sign(), significant.to_owned(), power)
    }

    fn compare(&self, other: &Self) -> Ordering {
        let ((sign, digits, power), (other_sign, other_digits, other_power)) =
            (self.parts(), other.parts());
        let size = |digits: &str, power: i64| power + i64::try_from(digits.len()).unwrap_or(0);
        let magnitudes = || {
            size(&digits, power)
                .cmp(&size(&other_digits, other_power))
                .then_with(|| digits.cmp(&other_digits))
        };
        sign.cmp(&other_sign).then_with(|| match sign {
            Sign::NoSign => Ordering::Equal,
            Sign::Plus => magnitudes(),
            Sign::Minus => magnitudes().reverse(),
        })
    }

    fn nanos(&self) -> Option<BigInt> {
        match self {
            Self::Small { value, scale } => {
                let power = u32::try_from(scale.checked_sub(NANO)?).ok()?;
                let power =
                    (u64::from(power) <= MAX_DIGITS).then(|| BigInt::from(10).pow(power))?;
                Some(BigInt::from(*value) * power)
            }
            Self::Large { nanos } => Some(nanos.clone()),
        }
    }

    fn plus(&self, other: &Self) -> Option<Self> {
        let small = match (self, other) {
            (_, Self::Small { value: 0, .. }) if matches!(self, Self::Small { .. }) => {
                Some(self.clone())
            }
            (Self::Small { value: 0, .. }, Self::Small { .. }) => Some(other.clone()),
            (
                Self::Small {
                    value: a,
                    scale: a_scale,
                },
                Self::Small {
                    value: b,
                    scale: b_scale,
                },
            ) => {
                let scale = *a_scale.min(b_scale);
                let rescale = |value: i64, from: i32| {
                    at_scale(value, u32::try_from(from.checked_sub(scale)?).ok()?)
                };
                rescale(*a, *a_scale)
                    .zip(rescale(*b, *b_scale))
                    .and_then(|(a, b)| a.checked_add(b))
                    .map(|value| Self::Small { value, scale })
            }
            _ => None,
        };
        small.or_else(|| {
            Some(Self::Large {
                nanos: self.nanos()? + other.nanos()?,
            })
        })
    }

    fn negated(&self) -> Self {
        match self {
            Self::Small { value, scale } if *value != i64::MIN => Self::Small {
                value: -value,
                scale: *scale,
            },
            other => Self::Large {
                nanos: -other.nanos().unwrap_or_default(),
            },
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other).is_eq()
    }
}

/// Multiplies the value by a power of ten.
fn at_scale(value: i64, scale: u32) -> Option<i64> {
    if value == 0 {
        return Some(0);
    }
    10_i64.checked_pow(scale)?.checked_mul(value)
}

/// Factor of a suffix.
enum Factor {
    Decimal(i32),
    Binary(u32),
}

impl Factor {
    fn of(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            exponent => {
                let digits = exponent.strip_prefix(['e', 'E'])?;
                let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
                let plain = !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit());
                #[expect(clippy::cast_possible_truncation, reason = "as Go converts")]
                Self::Decimal(plain.then(|| digits.parse::<i64>().ok())?? as i32)
            }
        })
    }

    /// Returns true if a number with so many digits before and after the decimal point is first parsed in the
    /// small form.
    fn takes_small(&self, whole: usize, fraction: usize) -> bool {
        match self {
            Self::Decimal(_) => whole + fraction <= SAFE_DIGITS,
            Self::Binary(bits) => {
                let bits = usize::try_from(*bits).unwrap_or(usize::MAX);
                fraction == 0 && whole + bits * 3 / 10 < 15
            }
        }
    }
}

fn is_quantity(text: &CelString<'_>) -> CelBool {
    Quantity::parse(text.inner()).is_some().into()
}

fn quantity(text: &CelString<'_>) -> Result<Quantity, ExecutionError> {
    let problem = || failed("quantity", FORMAT);
    Quantity::parse(text.inner()).ok_or_else(problem)
}

fn sign(quantity: &Quantity) -> CelInt {
    match quantity.parts().0 {
        Sign::Minus => -1,
        Sign::NoSign => 0,
        Sign::Plus => 1,
    }
    .into()
}

fn is_greater_than(a: &Quantity, b: &Quantity) -> CelBool {
    a.compare(b).is_gt().into()
}

fn is_less_than(a: &Quantity, b: &Quantity) -> CelBool {
    a.compare(b).is_lt().into()
}

fn compare_to(a: &Quantity, b: &Quantity) -> CelInt {
    (a.compare(b) as i64).into()
}

fn as_approximate_float(quantity: &Quantity) -> CelDouble {
    let (number, power) = match quantity {
        Quantity::Small { value, scale } => (value.to_string(), *scale),
        Quantity::Large { nanos } => (nanos.to_string(), NANO),
    };
    let float = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    (float(&number) * float(&format!("1e{power}"))).into()
}

fn as_integer(quantity: &Quantity) -> Result<CelInt, ExecutionError> {
    let problem = || failed("asInteger", "cannot convert value to integer");
    quantity.integer().map(CelInt::from).ok_or_else(problem)
}

fn is_integer(quantity: &Quantity) -> CelBool {
    quantity.integer().is_some().into()
}

fn add(a: &Quantity, b: &Quantity) -> Result<Quantity, ExecutionError> {
    a.plus(b)
        .ok_or_else(|| failed("add", "the quantity is too large"))
}

fn add_integer(a: &Quantity, b: &CelInt) -> Result<Quantity, ExecutionError> {
    add(a, &whole(b))
}

fn sub(a: &Quantity, b: &Quantity) -> Result<Quantity, ExecutionError> {
    add(a, &b.negated())
}

fn sub_integer(a: &Quantity, b: &CelInt) -> Result<Quantity, ExecutionError> {
    sub(a, &whole(b))
}

fn whole(value: &CelInt) -> Quantity {
    Quantity::Small {
        value: *value.inner(),
        scale: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Quantity {
        Quantity::parse(text).expect(text)
    }

    #[test]
    fn quantities_are_exact_to_one_billionth() {
        for (a, b) in [
            ("1.5Gi", "1610612736"),
            ("1e3", "1k"),
            ("1E-3", "1m"),
            (".5", "0.5"),
            ("1.", "1"),
            ("-", "0"),
            ("Gi", "0"),
            ("0.1n", "1n"),
            ("100E", "1e20"),
            ("-0", "0"),
            ("9999999Ei", "9223372036854775807"),
            ("1e400", "10e399"),
        ] {
            assert_eq!(read(a), read(b), "{a} and {b}");
        }
        for (a, b) in [
            ("-500m", "0"),
            ("1e18", "1e400"),
            ("-1e400", "-1"),
            ("1Ei", "9E"),
        ] {
            assert!(read(a).compare(&read(b)).is_lt(), "{a} and {b}");
        }
        for bad in ["", "1.2.3", "1ki", "Ei", "1e", "1 ", "1e1.5"] {
            assert!(Quantity::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn the_notation_decides_whether_a_quantity_is_an_integer() {
        for integer in ["0", "1", "1Gi", "-3k", "1e18", "5Ti", "123456789012345678"] {
            assert!(read(integer).integer().is_some(), "{integer}");
        }
        for other in [
            "1.5Gi",
            ".5Gi",
            "2000m",
            "1Ei",
            "1e21",
            "100E",
            "1e400",
            "9223372036854775807",
        ] {
            assert!(read(other).integer().is_none(), "{other}");
        }
        let sum = read("1").plus(&read("1.5Gi")).expect("a sum");
        assert!(sum.integer().is_none());
    }
}
