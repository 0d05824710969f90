//! Quantities of the Kubernetes API, such as `10Gi`.

use serde_json::Value;

/// Suffixes of quantities with their factors.
const SUFFIXES: [(&str, f64); 16] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
    ("", 1.0),
];

/// Returns true if both values are quantities of one size: the API server stores `1024Mi` as `1Gi`.
pub(crate) fn are_equal(one: &Value, other: &Value) -> bool {
    let size = size(one);
    size.is_some() && size == self::size(other)
}

/// Returns true if both values are quantities, and the first one is less than the other.
pub(crate) fn is_less(one: &Value, other: &Value) -> bool {
    match (size(one), size(other)) {
        (Some(one), Some(other)) => one < other,
        _ => false,
    }
}

/// Returns a quantity of bytes.
pub(crate) fn bytes(value: &Value) -> Option<u64> {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a quantity that is negative or larger than any memory becomes the nearest number"
    )]
    size(value).map(|size| size as u64)
}

fn size(value: &Value) -> Option<f64> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    // Text such as `inf` is a number for Rust only.
    let is_quantity = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    let (suffix, factor) = SUFFIXES.iter().find(|(suffix, _)| text.ends_with(suffix))?;
    let number: f64 = text.strip_suffix(suffix)?.parse().ok()?;
    is_quantity.then_some(number * factor)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_are_compared_by_size() {
        for (one, other, expected) in [
            (json!("1024Mi"), json!("1Gi"), true),
            (json!("1Gi"), json!("1G"), false),
            (json!(1000), json!("1k"), true),
            (json!("0.5Gi"), json!("512Mi"), true),
            (json!("1e3"), json!("1000"), true),
            (json!("100m"), json!("0.1"), true),
            (json!("data"), json!("data"), false),
            (json!("inf"), json!("infinity"), false),
            (json!("Gi"), json!("Gi"), false),
            (json!(true), json!(true), false),
        ] {
            assert_eq!(are_equal(&one, &other), expected, "{one} {other}");
        }
    }
}
