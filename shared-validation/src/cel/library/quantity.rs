//! Quantities such as `500m` and `1.5Gi`:
//! <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>.

use ::cel::common::types::{CelBool, CelDouble, CelInt, CelString};
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::cel::library::failed;
use crate::cel::library::opaque::opaque;

const NANOS: i128 = 1_000_000_000;
/// Larger ones are cut down to this.
const MAX: i128 = i64::MAX as i128 * NANOS;

const FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// An exact number of billionths; nothing finer is kept.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Quantity {
    nanos: i128,
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
    cel::add_member_overload!(env, fn add: (Quantity, Quantity) -> Quantity)?;
    cel::add_member_overload!(env, fn add_integer: (Quantity, CelInt) -> Quantity, name = "add")?;
    cel::add_member_overload!(env, fn sub: (Quantity, Quantity) -> Quantity)?;
    cel::add_member_overload!(env, fn sub_integer: (Quantity, CelInt) -> Quantity, name = "sub")
}

impl Quantity {
    fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.as_bytes().first()? {
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
        // A suffix alone is a zero, unless it is so large that Go takes another way.
        let large = matches!(factor, Factor::Binary(50..));
        if large && whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let magnitude = factor.times(whole, fraction).min(MAX);
        let nanos = if negative { -magnitude } else { magnitude };
        Some(Self { nanos })
    }

    fn integer(self) -> Option<i64> {
        (self.nanos % NANOS == 0).then(|| i64::try_from(self.nanos / NANOS).ok())?
    }
}

/// What a suffix multiplies by.
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
                Self::Decimal(plain.then(|| digits.parse().ok())??)
            }
        })
    }

    /// The number times this, in billionths, rounded up.
    fn times(&self, whole: &str, fraction: &str) -> i128 {
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() {
            return 0;
        }
        // Places of the last digit, in powers of ten of a billionth.
        let behind = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
        let (shift, exponent) = match self {
            Self::Decimal(exponent) => (9 + i64::from(*exponent) - behind, 0),
            Self::Binary(bits) => (9 - behind, *bits),
        };
        // More digits than any quantity holds.
        if i64::try_from(digits.len())
            .unwrap_or(i64::MAX)
            .saturating_add(shift)
            > 30
        {
            return MAX;
        }
        let scaled = |value: i128| {
            value
                .checked_shl(exponent)
                .filter(|scaled| scaled >> exponent == value)
        };
        if shift >= 0 {
            let power = 10_i128.pow(u32::try_from(shift).unwrap_or(30).min(30));
            let value = digits
                .parse::<i128>()
                .ok()
                .and_then(|value| value.checked_mul(power));
            return value.and_then(scaled).unwrap_or(MAX);
        }
        let cut = usize::try_from(-shift).unwrap_or(usize::MAX);
        if exponent == 0 {
            let (kept, dropped) = digits.split_at(digits.len().saturating_sub(cut));
            let value: i128 = kept.parse().unwrap_or(0);
            return value
                + i128::from(dropped.bytes().any(|digit| digit != b'0') || cut > digits.len());
        }
        // Twenty digits are more than a quantity holds; what is cut here is below a billionth.
        let kept = &digits[..digits.len().min(20)];
        let cut = cut.saturating_sub(digits.len() - kept.len()).min(37);
        let Some(value) = kept.parse::<i128>().ok().and_then(scaled) else {
            return MAX;
        };
        let cut = u32::try_from(cut).unwrap_or(37);
        let power = 10_i128.pow(cut);
        value / power + i128::from(value % power != 0)
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
    i64::try_from(quantity.nanos.signum())
        .unwrap_or_default()
        .into()
}

fn is_greater_than(a: &Quantity, b: &Quantity) -> CelBool {
    (a > b).into()
}

fn is_less_than(a: &Quantity, b: &Quantity) -> CelBool {
    (a < b).into()
}

fn compare_to(a: &Quantity, b: &Quantity) -> CelInt {
    (a.nanos.cmp(&b.nanos) as i64).into()
}

#[expect(clippy::cast_precision_loss, reason = "approximate by its name")]
fn as_approximate_float(quantity: &Quantity) -> CelDouble {
    (quantity.nanos as f64 / NANOS as f64).into()
}

fn as_integer(quantity: &Quantity) -> Result<CelInt, ExecutionError> {
    let problem = || failed("asInteger", "cannot convert value to integer");
    quantity.integer().map(CelInt::from).ok_or_else(problem)
}

fn is_integer(quantity: &Quantity) -> CelBool {
    quantity.integer().is_some().into()
}

fn add(a: &Quantity, b: &Quantity) -> Quantity {
    Quantity {
        nanos: a.nanos.saturating_add(b.nanos),
    }
}

fn add_integer(a: &Quantity, b: &CelInt) -> Quantity {
    add(a, &whole(b))
}

fn sub(a: &Quantity, b: &Quantity) -> Quantity {
    Quantity {
        nanos: a.nanos.saturating_sub(b.nanos),
    }
}

fn sub_integer(a: &Quantity, b: &CelInt) -> Quantity {
    sub(a, &whole(b))
}

fn whole(value: &CelInt) -> Quantity {
    Quantity {
        nanos: i128::from(*value.inner()) * NANOS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str) -> Option<i128> {
        Quantity::parse(text).map(|quantity| quantity.nanos)
    }

    #[test]
    fn quantities_are_exact_to_the_billionth() {
        assert_eq!(nanos("1"), Some(NANOS));
        assert_eq!(nanos("-500m"), Some(-NANOS / 2));
        assert_eq!(nanos("1.5Gi"), Some(1_610_612_736 * NANOS));
        assert_eq!(nanos("1e3"), nanos("1k"));
        assert_eq!(nanos("1E-3"), nanos("1m"));
        assert_eq!(nanos(".5"), nanos("0.5"));
        assert_eq!(nanos("1."), nanos("1"));
        assert_eq!(nanos("-"), Some(0));
        assert_eq!(nanos("Gi"), Some(0));
        assert_eq!(nanos("0.1n"), Some(1));
        assert_eq!(nanos("9999999999999999999999999E"), Some(MAX));
        for bad in ["", "1.2.3", "1ki", "Ei", "1e", "1 ", "1e1.5"] {
            assert_eq!(nanos(bad), None, "{bad}");
        }
    }
}
