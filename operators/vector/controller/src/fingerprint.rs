//! Fingerprint of a validated object.

use std::hash::Hasher;

use fnv::FnvHasher;
use serde_json::Value;

/// Returns a fingerprint of everything that the validation result depends on: spec, namespace and name of the object,
/// conflicts with other pipelines, catalogue, policy and release of the rules. It has 64 bits, like the field of the
/// status.
pub(crate) fn compute(object: &Value, others: &Value, policy: &str, catalogue: u64) -> i64 {
    let mut hasher = FnvHasher::default();
    let mut add = |text: &str| {
        hasher.write(text.as_bytes());
        hasher.write_u8(0xff);
    };
    add(&object["spec"].to_string());
    for part in ["namespace", "name"] {
        add(object["metadata"][part].as_str().unwrap_or_default());
    }
    add(&others.to_string());
    add(&catalogue.to_string());
    add(env!("CARGO_PKG_VERSION"));
    add(policy);
    hasher.finish().cast_signed()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_changes_with_everything_that_the_result_depends_on_and_with_nothing_else() {
        let object = |namespace: &str, kind: &str| {
            json!({
                "metadata": {"namespace": namespace, "resourceVersion": "1"},
                "spec": {"sources": {"in": {"type": kind}}},
            })
        };
        let alone = &Value::Null;
        let first = compute(&object("a", "file"), alone, "", 57);
        let mut touched = object("a", "file");
        touched["metadata"]["resourceVersion"] = "2".into();
        assert_eq!(first, compute(&touched, alone, "", 57));
        let mut renamed = object("a", "file");
        renamed["metadata"]["name"] = "another".into();
        for (object, others, policy, catalogue) in [
            (renamed, alone, "", 57),
            (object("b", "file"), alone, "", 57),
            (object("a", "exec"), alone, "", 57),
            (object("a", "file"), &json!(["another"]), "", 57),
            (object("a", "file"), alone, "another policy", 57),
            (object("a", "file"), alone, "", 58),
        ] {
            assert_ne!(first, compute(&object, others, policy, catalogue));
        }
    }
}
