//! What the cluster would store, beside what is written.

use serde_json::Value;
use similar::TextDiff;

/// The difference between an object as written and as it would be stored, both as YAML with their
/// fields in order.
pub(crate) fn difference(written: &Value, stored: &Value) -> String {
    let (written, stored) = (yaml(written), yaml(stored));
    if written == stored {
        return "stored as written\n".to_owned();
    }
    TextDiff::from_lines(&written, &stored)
        .unified_diff()
        .context_radius(2)
        .header("as written", "as stored")
        .to_string()
}

fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|error| format!("# {error}\n"))
}
