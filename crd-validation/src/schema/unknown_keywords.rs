//! Keywords of a CRD's schema that the API server does not know. It drops them when it stores the CRD.

use serde_json::Value;

use crate::schema::compile::is_known;

/// Returns the keywords in the schemas of a CRD that the API server would drop, each with its path: it validates without them, and
/// so does this crate. One of them may be a misspelt one.
///
/// # Examples
///
/// ```
/// use serde_json::json;
///
/// let list = json!({"type": "array", "items": {"type": "string", "readOnly": true}});
/// let schema = json!({"type": "object", "properties": {"list": list}});
/// let crd = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
/// let unknown = crd_validation::unknown_keywords(&crd);
/// assert_eq!(unknown, ["v1: list[]: readOnly"]);
/// ```
#[must_use]
pub fn unknown_keywords(crd: &Value) -> Vec<String> {
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    let mut unknown = Vec::new();
    for version in versions.into_iter().flatten() {
        let name = version["name"].as_str().unwrap_or_default();
        let mut found = |at: &str, keyword: &str| {
            let at = if at.is_empty() { "the root" } else { at };
            unknown.push(format!("{name}: {at}: {keyword}"));
        };
        walk(&version["schema"]["openAPIV3Schema"], "", &mut found);
    }
    unknown
}

fn walk(node: &Value, at: &str, found: &mut impl FnMut(&str, &str)) {
    for (keyword, value) in node.as_object().into_iter().flatten() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    walk(property, &super::join(at, name), found);
                }
            }
            ("items", item) => walk(item, &format!("{at}[]"), found),
            ("additionalProperties", entry) => walk(entry, &format!("{at}[*]"), found),
            ("not", alternative) => walk(alternative, at, found),
            ("allOf" | "anyOf" | "oneOf", Value::Array(alternatives)) => {
                for alternative in alternatives {
                    walk(alternative, at, found);
                }
            }
            (keyword, _) if !is_known(keyword) => found(at, keyword),
            _ => {}
        }
    }
}
