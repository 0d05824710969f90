//! Tags.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::protocol::fault::Fault;

/// Maximum number of tags of a resource.
const MOST: usize = 50;

/// Reads a list of tags.
pub(crate) fn read(list: Option<&Value>) -> Result<BTreeMap<String, String>, Fault> {
    let mut tags = BTreeMap::new();
    for tag in list.and_then(Value::as_array).into_iter().flatten() {
        let key = tag["Key"]
            .as_str()
            .ok_or_else(|| Fault::missing("Tags.Key"))?;
        let value = tag["Value"].as_str().unwrap_or_default();
        check(key, value)?;
        if tags.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(Fault::value(format!("Duplicate tag key: {key}")));
        }
    }
    Ok(tags)
}

fn check(key: &str, value: &str) -> Result<(), Fault> {
    let is_allowed = |c: char| c.is_alphanumeric() || c.is_whitespace() || "_.:/=+-@".contains(c);
    let is_reserved = |text: &str| {
        ["aws:", "rds:"]
            .iter()
            .any(|prefix| text.starts_with(prefix))
    };
    if !(1..=128).contains(&key.chars().count()) || !key.chars().all(is_allowed) || is_reserved(key)
    {
        return Err(Fault::value(format!("Invalid tag key: {key}")));
    }
    if value.chars().count() > 256 || !value.chars().all(is_allowed) || value.starts_with("aws:") {
        return Err(Fault::value(format!(
            "Invalid value of the tag {key}: {value}"
        )));
    }
    Ok(())
}

/// Returns an error if a resource would have too many tags.
pub(crate) fn check_number(tags: &BTreeMap<String, String>) -> Result<(), Fault> {
    if tags.len() > MOST {
        return Err(Fault::value(format!(
            "The number of tags exceeds the limit of {MOST} tags of a resource"
        )));
    }
    Ok(())
}

/// Returns tags as RDS lists them.
pub(crate) fn list(tags: &BTreeMap<String, String>) -> Value {
    let tags = tags.iter();
    tags.map(|(key, value)| serde_json::json!({"Key": key, "Value": value}))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tag_has_allowed_characters_and_no_reserved_prefix() {
        let read = |key: &str, value: &str| read(Some(&json!([{"Key": key, "Value": value}])));
        assert!(read("database.example.com/uid", "a b_c+d=e:f@g").is_ok());
        for (key, value) in [
            ("aws:a", "b"),
            ("rds:a", "b"),
            ("a", "aws:b"),
            ("a*", "b"),
            ("a", "b!"),
            ("", "b"),
        ] {
            assert!(read(key, value).is_err(), "{key}={value}");
        }
        assert!(read(&"k".repeat(129), "v").is_err());
        assert!(read("k", &"v".repeat(257)).is_err());
    }
}
