//! Pages of a list.

use serde_json::{Map, Value};

use crate::fields::Fields;
use crate::protocol::fault::Fault;

/// Numbers of records that a page can have.
const SIZES: std::ops::RangeInclusive<i64> = 20..=100;

/// Returns the page of a list that the parameters `MaxRecords` and `Marker` request. The entries have keys by which they
/// are ordered: the marker of a page is the last key of the page before.
pub(crate) fn page(
    name: &str,
    entries: Vec<(String, Value)>,
    parameters: &Fields,
) -> Result<Value, Fault> {
    page_of(name, entries, parameters, |value| value)
}

/// Returns the same page of entries that are converted only if they are on it.
pub(crate) fn page_of<T>(
    name: &str,
    mut entries: Vec<(String, T)>,
    parameters: &Fields,
    convert: impl Fn(T) -> Value,
) -> Result<Value, Fault> {
    let size = parameters.number("MaxRecords").unwrap_or(*SIZES.end());
    if !SIZES.contains(&size) {
        return Err(Fault::value(format!(
            "Invalid value {size} for MaxRecords. Must be between 20 and 100"
        )));
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    let marker = parameters.given_text("Marker");
    if let Some(marker) = marker.filter(|marker| !marker.is_empty()) {
        let after = decode(marker)
            .ok_or_else(|| Fault::value(format!("Invalid value for parameter Marker: {marker}")))?;
        entries.retain(|(key, _)| *key > after);
    }
    let size = usize::try_from(size).expect("a number in the range");
    let rest = entries.split_off(size.min(entries.len()));
    let mut page = Map::new();
    if let Some((last, _)) = entries.last().filter(|_| !rest.is_empty()) {
        page.insert("Marker".to_owned(), encode(last).into());
    }
    let entries = entries.into_iter().map(|(_, entry)| convert(entry));
    page.insert(name.to_owned(), entries.collect());
    Ok(page.into())
}

/// Returns a marker for a key: hexadecimal, so that no client takes it for an identifier.
fn encode(key: &str) -> String {
    let bytes = key.bytes().map(|byte| format!("{byte:02x}"));
    bytes.collect::<Vec<_>>().concat()
}

fn decode(marker: &str) -> Option<String> {
    let pairs = marker.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    String::from_utf8(bytes.collect::<Option<_>>()?).ok()
}
