//! Conversions that differ from those of the `cel` crate. Rules are redirected to these functions, or their
//! arguments are converted first. No rule can use the internal names.

use ::cel::common::types::{
    CelDouble, CelDuration, CelInt, CelString, CelTimestamp, DYN_TYPE, Kind,
};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};
use serde_json::Number;

use crate::cel::library::arguments::{argument, failed};
use crate::format::go_fmt;
use crate::format::time;

/// `timestamp` with the parser of Go.
pub(in crate::cel) const TIMESTAMP: &str = "@timestamp";
/// `duration` with the parser of Go.
pub(in crate::cel) const DURATION: &str = "@duration";
/// Argument of `string`, already formatted if Go formats its type differently from the crate.
pub(in crate::cel) const PRINTED: &str = "@printed";
/// Argument of `int`, already converted if its type is a duration, which the crate does not convert.
pub(in crate::cel) const COUNTED: &str = "@counted";
/// Timestamp in UTC, for getters that are called without a time zone.
pub(in crate::cel) const IN_UTC: &str = "@in_utc";

type Outcome<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(PRINTED, "printed", vec![DYN_TYPE], printed)?;
    env.add_overload(COUNTED, "counted", vec![DYN_TYPE], counted)?;
    env.add_overload(IN_UTC, "in_utc", vec![DYN_TYPE], in_utc)?;
    cel::add_overload!(env, fn duration: (CelString) -> Result<CelDuration>, name = DURATION)?;
    cel::add_overload!(env, fn same_duration: (CelDuration) -> CelDuration, name = DURATION)?;
    cel::add_overload!(env, fn timestamp: (CelString) -> Result<CelTimestamp>, name = TIMESTAMP)?;
    cel::add_overload!(env, fn same_timestamp: (CelTimestamp) -> CelTimestamp, name = TIMESTAMP)?;
    cel::add_overload!(env, fn timestamp_of_seconds: (CelInt) -> Result<CelTimestamp>, name = TIMESTAMP)
}

/// Returns the argument, converted if `change` supports its type.
fn changed<'b, 'v, V: Val + 'v>(
    mut arguments: Vec<CowVal<'b, 'v>>,
    change: impl Fn(&dyn Val) -> Option<V>,
) -> Outcome<'b, 'v> {
    match change(argument(&arguments, 0, "conversion")?.as_ref()) {
        Some(value) => Ok(CowVal::owned(value)),
        None => Ok(arguments.remove(0)),
    }
}

fn printed<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    changed(arguments, |value| {
        let text = match value.get_type().kind() {
            Kind::Double => float(*value.downcast_ref::<CelDouble>()?.inner()),
            Kind::Timestamp => moment(value.downcast_ref::<CelTimestamp>()?),
            Kind::Duration => seconds(value.downcast_ref::<CelDuration>()?),
            _ => return None,
        };
        Some(CelString::from(text))
    })
}

fn float(value: f64) -> String {
    match Number::from_f64(value) {
        Some(number) => go_fmt::plain_number(&number),
        None if value.is_nan() => "NaN".to_owned(),
        None if value < 0.0 => "-Inf".to_owned(),
        None => "+Inf".to_owned(),
    }
}

/// Formats a timestamp in its original time zone, without trailing zeros in the fraction.
fn moment(value: &CelTimestamp) -> String {
    let moment = value.inner();
    let fraction = moment.format("%.9f").to_string();
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    let zone = match moment.offset().local_minus_utc() {
        0 => "Z".to_owned(),
        _ => moment.format("%:z").to_string(),
    };
    format!("{}{fraction}{zone}", moment.format("%Y-%m-%dT%H:%M:%S"))
}

#[expect(clippy::cast_precision_loss, reason = "as Go converts")]
pub(super) fn seconds(value: &CelDuration) -> String {
    let duration = value.inner();
    let fraction = f64::from(duration.subsec_nanos()) / 1e9;
    format!("{}s", duration.num_seconds() as f64 + fraction)
}

fn counted<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    changed(arguments, |value| {
        let duration = (value.get_type().kind() == Kind::Duration)
            .then(|| value.downcast_ref::<CelDuration>())??;
        duration.inner().num_nanoseconds().map(CelInt::from)
    })
}

fn in_utc<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Outcome<'b, 'v> {
    changed(arguments, |value| {
        let moment = (value.get_type().kind() == Kind::Timestamp)
            .then(|| value.downcast_ref::<CelTimestamp>())??;
        Some(CelTimestamp::from(moment.inner().to_utc().fixed_offset()))
    })
}

fn duration(text: &CelString<'_>) -> Result<CelDuration, ExecutionError> {
    let nanos = time::go_duration(text.inner());
    nanos
        .map(|nanos| CelDuration::from(chrono::Duration::nanoseconds(nanos)))
        .ok_or_else(|| failed("duration", text.inner()))
}

fn same_duration(duration: &CelDuration) -> CelDuration {
    *duration
}

fn timestamp(text: &CelString<'_>) -> Result<CelTimestamp, ExecutionError> {
    let problem = || failed("timestamp", text.inner());
    time::rfc3339(text.inner(), false)
        .map(CelTimestamp::from)
        .ok_or_else(problem)
}

fn same_timestamp(moment: &CelTimestamp) -> CelTimestamp {
    moment.clone()
}

fn timestamp_of_seconds(seconds: &CelInt) -> Result<CelTimestamp, ExecutionError> {
    let moment = chrono::DateTime::from_timestamp(*seconds.inner(), 0);
    let within = moment.filter(|moment| (1..=9999).contains(&chrono::Datelike::year(moment)));
    let problem = || failed("timestamp", "timestamp overflow");
    within
        .map(|moment| CelTimestamp::from(moment.fixed_offset()))
        .ok_or_else(problem)
}
