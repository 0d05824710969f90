//! String functions that differ from those of the `cel` crate in their results or in their limits. Rules are
//! redirected to these functions. No rule can use the internal names.

use ::cel::common::types::{
    CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelList, CelString, CelTimestamp, CelUInt,
    Kind, LIST_TYPE, STRING_TYPE,
};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::cel::cost;
use crate::cel::equality::reject_unrepresentable;
use crate::cel::library::arguments::{argument, failed, items};
use crate::cel::library::conversions;
use crate::format::go_fmt;

/// `replace` that charges for its result, which could be larger than all arguments together.
pub(in crate::cel) const BOUNDED_REPLACE: &str = "@replace";
/// `join` that charges for its result.
pub(in crate::cel) const BOUNDED_JOIN: &str = "@join";
/// Arguments of `format`, with lists and maps formatted as in cel-go.
pub(in crate::cel) const SPELLED: &str = "@spelled";

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(SPELLED, "spelled", vec![LIST_TYPE], spelled)?;
    env.add_member_overload(BOUNDED_JOIN, "joined", LIST_TYPE, vec![], join)?;
    env.add_member_overload(
        BOUNDED_JOIN,
        "joined_by",
        LIST_TYPE,
        vec![STRING_TYPE],
        join,
    )?;
    cel::add_member_overload!(env, fn replace: (CelString, CelString, CelString) -> Result<CelString>, name = BOUNDED_REPLACE)?;
    cel::add_member_overload!(env, fn replace_some: (CelString, CelString, CelString, CelInt) -> Result<CelString>, name = BOUNDED_REPLACE)
}

fn replace(
    text: &CelString<'_>,
    old: &CelString<'_>,
    new: &CelString<'_>,
) -> Result<CelString<'static>, ExecutionError> {
    replace_some(text, old, new, &CelInt::from(-1))
}

fn replace_some(
    text: &CelString<'_>,
    old: &CelString<'_>,
    new: &CelString<'_>,
    most: &CelInt,
) -> Result<CelString<'static>, ExecutionError> {
    let most = usize::try_from(*most.inner()).unwrap_or(usize::MAX);
    let (text, old, new) = (text.inner(), old.inner(), new.inner());
    let times = text.matches(old).count().min(most);
    let length = text.len().saturating_add(times.saturating_mul(new.len()));
    afford(length, "replace")?;
    Ok(text.replacen(old, new, most).into())
}

/// Joins the items, with an optional separator.
fn join<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let text = |value: &dyn Val| {
        reject_unrepresentable(value)?;
        let text = value.downcast_ref::<CelString>();
        text.map(|text| text.inner().to_owned())
            .ok_or_else(|| failed("join", "no such overload"))
    };
    let list = argument(&arguments, 0, "join")?;
    let between = match arguments.get(1) {
        Some(between) => text(between.as_ref())?,
        None => String::new(),
    };
    let items = items(list.as_ref(), "join")?;
    let lengths = items
        .iter()
        .filter_map(|item| item.downcast_ref::<CelString>())
        .map(|item| item.inner().len().saturating_add(between.len()));
    afford(lengths.fold(0, usize::saturating_add), "join")?;
    let items: Result<Vec<_>, _> = items.into_iter().map(text).collect();
    Ok(CowVal::owned(CelString::from(items?.join(&between))))
}

/// Charges for a string before it is built.
fn afford(length: usize, function: &str) -> Result<(), ExecutionError> {
    if cost::take(length / cost::BYTES_PER_UNIT) {
        Ok(())
    } else {
        Err(failed(function, "the result is too long"))
    }
}

fn spelled<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let list = argument(&arguments, 0, SPELLED)?;
    let mut out: Vec<Box<dyn Val + 'v>> = Vec::new();
    for item in items(list.as_ref(), SPELLED)? {
        if let Some(text) = item.downcast_ref::<CelString>() {
            afford(text.inner().len(), "format")?;
        }
        out.push(match item.get_type().kind() {
            Kind::List | Kind::Map => Box::new(CelString::from(spell(item)?)),
            _ => item.clone_as_boxed(),
        });
    }
    Ok(CowVal::owned(CelList::from(out)))
}

/// Formats a value within a list or map.
fn spell(value: &dyn Val) -> Result<String, ExecutionError> {
    let unknown = || {
        failed(
            "format",
            format!("no formatting function for {}", value.get_type().name()),
        )
    };
    Ok(match value.get_type().kind() {
        Kind::List => {
            let spelled: Result<Vec<_>, _> =
                items(value, "format")?.into_iter().map(spell).collect();
            format!("[{}]", spelled?.join(", "))
        }
        Kind::Map => {
            let indexer = value.as_indexer().ok_or_else(unknown)?;
            let mut pairs = Vec::new();
            for key in items(value, "format")? {
                pairs.push((spell(key)?, spell(indexer.get(key)?.as_ref())?));
            }
            pairs.sort();
            let pairs: Vec<_> = pairs
                .into_iter()
                .map(|(key, value)| format!("{key}:{value}"))
                .collect();
            format!("{{{}}}", pairs.join(", "))
        }
        Kind::NullType => "null".to_owned(),
        _ => scalar(value).ok_or_else(unknown)?,
    })
}

fn scalar(value: &dyn Val) -> Option<String> {
    if let Some(text) = value.downcast_ref::<CelString>() {
        return Some(go_fmt::quote(text.inner()));
    }
    if let Some(number) = value.downcast_ref::<CelInt>() {
        return Some(number.inner().to_string());
    }
    if let Some(number) = value.downcast_ref::<CelUInt>() {
        return Some(number.inner().to_string());
    }
    if let Some(number) = value.downcast_ref::<CelDouble>() {
        return Some(format!("{:.6}", number.inner()));
    }
    if let Some(flag) = value.downcast_ref::<CelBool>() {
        return Some(flag.inner().to_string());
    }
    if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        return Some(format!(
            "b{}",
            go_fmt::quote(&String::from_utf8_lossy(bytes.inner()))
        ));
    }
    if let Some(moment) = value.downcast_ref::<CelTimestamp>() {
        let text = moment
            .inner()
            .to_utc()
            .to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true);
        return Some(format!("timestamp({})", go_fmt::quote(&text)));
    }
    let seconds = conversions::seconds(value.downcast_ref::<CelDuration>()?);
    Some(format!("duration({})", go_fmt::quote(&seconds)))
}
