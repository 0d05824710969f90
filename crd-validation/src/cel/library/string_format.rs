//! The `format` function for numbers, which cel-go formats in English and differently from the `cel` crate.

use ::cel::common::ast::{Expr, IdedExpr, LiteralValue};
use ::cel::common::types::{CelDouble, CelInt, CelString, DYN_TYPE, INT_TYPE, Kind};
use ::cel::common::value::CowVal;
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::cel::ast;
use crate::cel::library::arguments::{argument, failed};
use crate::cel::library::conversions::PRINTED;

const FIXED: &str = "@fixed";
const SCIENTIFIC: &str = "@scientific";
/// Default number of decimal places.
const DIGITS: i64 = 6;

type Outcome<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

pub(crate) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let two = || vec![DYN_TYPE, INT_TYPE];
    env.add_overload(FIXED, "fixed", two(), fixed)?;
    env.add_overload(SCIENTIFIC, "scientific", two(), scientific)
}

/// Replaces the number clauses of a literal format string by `%s`, and the arguments by their formatted text.
pub(in crate::cel) fn prepare(target: &mut IdedExpr, arguments: &mut IdedExpr) {
    let (Expr::Literal(LiteralValue::String(text)), Expr::List(list)) =
        (&mut target.expr, &mut arguments.expr)
    else {
        return;
    };
    let mut prepared = String::new();
    let mut rest = text.inner();
    let mut elements = list.elements.iter_mut();
    while let Some(at) = rest.find('%') {
        let (before, clause) = rest.split_at(at);
        prepared.push_str(before);
        let verb_at = clause[1..]
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .map_or(clause.len(), |at| at + 1);
        let verb = clause[verb_at..].chars().next();
        let end = verb_at + verb.map_or(0, char::len_utf8);
        let digits = clause[1..verb_at]
            .strip_prefix('.')
            .map_or(Some(DIGITS), |digits| digits.parse().ok());
        let function = match verb {
            Some('%') => None,
            Some('f') => elements.next().zip(Some(FIXED)),
            Some('e') => elements.next().zip(Some(SCIENTIFIC)),
            Some('s') => elements.next().zip(Some(PRINTED)),
            _ => {
                elements.next();
                None
            }
        };
        match (function, digits) {
            (Some((element, function)), Some(digits)) => {
                wrap(element, function, digits);
                prepared.push_str("%s");
            }
            _ => prepared.push_str(&clause[..end]),
        }
        rest = &clause[end..];
    }
    prepared.push_str(rest);
    *text = CelString::from(prepared);
}

fn wrap(element: &mut IdedExpr, function: &str, digits: i64) {
    ast::replace(element, |inner| {
        let digits = IdedExpr {
            id: inner.id,
            expr: Expr::Literal(LiteralValue::Int(CelInt::from(digits))),
        };
        let mut args = vec![inner];
        args.extend((function != PRINTED).then_some(digits));
        ast::call(function, args)
    });
}

fn fixed<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    printed(&arguments, |value, digits| {
        let text = format!("{:.digits$}", value.abs());
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) => (whole, format!(".{fraction}")),
            None => (text.as_str(), String::new()),
        };
        let mut grouped = String::new();
        for (position, digit) in whole.chars().enumerate() {
            if position > 0 && (whole.len() - position) % 3 == 0 {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        grouped + &fraction
    })
}

fn scientific<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    printed(&arguments, |value, width| {
        let text = format!("{:.6e}", value.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ("⁻", exponent),
            None => ("", exponent),
        };
        let raised: String = format!("{exponent:0>2}")
            .chars()
            .filter_map(|digit| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit.to_digit(10)? as usize))
            .collect();
        // cel-go interprets the precision as a width.
        format!("{:>width$}", format!("{mantissa}×10{sign}{raised}"))
    })
}

/// Formats a number with a function for its magnitude. Signs, infinities and NaN are the same for all.
fn printed<'b, 'v>(
    arguments: &[CowVal<'b, 'v>],
    print: impl Fn(f64, usize) -> String,
) -> Outcome<'b, 'v> {
    let value = argument(arguments, 0, "format")?;
    let digits = argument(arguments, 1, "format")?.downcast_ref::<CelInt>();
    let digits = digits.and_then(|digits| usize::try_from(*digits.inner()).ok());
    let digits = digits
        .filter(|digits| *digits <= 1000)
        .ok_or_else(|| failed("format", "the precision is too large"))?;
    let number = match value.get_type().kind() {
        Kind::Double => value
            .downcast_ref::<CelDouble>()
            .map(|value| *value.inner()),
        Kind::String => value
            .downcast_ref::<CelString>()
            .and_then(|text| match text.inner() {
                "NaN" => Some(f64::NAN),
                "Infinity" => Some(f64::INFINITY),
                "-Infinity" => Some(f64::NEG_INFINITY),
                _ => None,
            }),
        _ => None,
    };
    let number = number.ok_or_else(|| {
        let actual = value.get_type().name();
        failed(
            "format",
            format!("this clause can only be used on doubles, was given {actual}"),
        )
    })?;
    let text = if number.is_nan() {
        "NaN".to_owned()
    } else {
        let sign = if number.is_sign_negative() { "-" } else { "" };
        let magnitude = if number.is_infinite() {
            "∞".to_owned()
        } else {
            print(number, digits)
        };
        format!("{sign}{magnitude}")
    };
    Ok(CowVal::owned(CelString::from(text)))
}
