//! Programs outside transforms: in codecs, in client authentication, and in queries.

use lockstep_shared_validation::{FieldPath, LazyPath};
use lockstep_vector_vrl::Purpose;
use serde_json::Value;

use crate::compilation::Compilation;
use crate::component::Component;
use crate::diagnostic::DiagnosticList;
use crate::option_path::lazily_below;

/// Validates every program in the options of a component.
pub(crate) fn validate(
    component: &Component<'_>,
    compilation: &mut Compilation<'_>,
    problems: &mut DiagnosticList,
) {
    let path = FieldPath::new(component.path());
    validate_below(component.value, &path.lazy(), compilation, problems);
}

fn validate_below(
    value: &Value,
    path: &LazyPath<'_>,
    compilation: &mut Compilation<'_>,
    problems: &mut DiagnosticList,
) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                validate_below(item, &path.index(index), compilation, problems);
            }
        }
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str);
            let program = if text("strategy") == Some("custom") {
                text("source").map(|source| ("source", source, Purpose::Condition))
            } else if text("type") == Some("vrl") {
                text("value").map(|source| ("value", source, Purpose::Remap))
            } else {
                None
            };
            if let Some((name, source, purpose)) = program {
                compilation.validate(source, purpose, &path.child(name).to_path(), problems);
            }
            if text("codec") == Some("vrl")
                && let Some(source) = fields.get("vrl").and_then(|vrl| vrl["source"].as_str())
            {
                let path = path.child("vrl").child("source").to_path();
                compilation.validate(source, Purpose::Remap, &path, problems);
            }
            for (name, value) in fields {
                validate_below(value, &lazily_below(path, name), compilation, problems);
            }
        }
        _ => {}
    }
}
