//! Canonical bytes and fingerprints of JSON values.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Returns a value as JSON. Equal values have the same bytes, because the fields of objects are sorted by name.
pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a JSON value can be written")
}

/// Returns a fingerprint of a value (SHA-256). Equal values have the same one.
#[must_use]
pub fn hash(value: &Value) -> String {
    let digest = Sha256::digest(bytes(value));
    digest.iter().fold(String::new(), |mut hash, byte| {
        hash.push_str(&format!("{byte:02x}"));
        hash
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_values_have_the_same_bytes_whatever_the_order_of_their_fields_is() {
        let text = r#"{"b":{"d":1,"c":2},"a":[2,1]}"#;
        let value: Value = serde_json::from_str(text).expect("it is JSON");
        assert_eq!(bytes(&value), br#"{"a":[2,1],"b":{"c":2,"d":1}}"#);
        assert_eq!(
            hash(&value),
            hash(&json!({"a": [2, 1], "b": {"c": 2, "d": 1}}))
        );
        assert_ne!(
            hash(&value),
            hash(&json!({"a": [1, 2], "b": {"c": 2, "d": 1}}))
        );
    }
}
