//! Values that Vector cannot read: it converts each configuration to the data model of TOML.

use lockstep_shared_validation::FieldPath;
use lockstep_vector_api::option_path;
use serde_yaml::Value;

/// Describes why Vector cannot read a value that the parser of YAML or JSON can read.
pub(crate) fn describe(value: &Value) -> String {
    let is_table = matches!(value, Value::Mapping(_));
    let found = is_table.then(|| find(value, &FieldPath::root())).flatten();
    match found {
        Some((path, detail)) => format!("{path}: {detail}"),
        None => "the configuration must be a mapping with `sources`, `transforms` and `sinks`"
            .to_owned(),
    }
}

/// Returns the first value that Vector cannot read.
fn find(value: &Value, path: &FieldPath) -> Option<(FieldPath, String)> {
    let unreadable = |detail: &str| Some((path.clone(), detail.to_owned()));
    match value {
        Value::Null => unreadable("Vector does not accept null; remove the option"),
        Value::Number(number) if number.as_u64().is_some_and(|n| i64::try_from(n).is_err()) => {
            unreadable("Vector does not accept integers above 9223372036854775807")
        }
        Value::Tagged(tagged) => {
            let detail = format!("Vector does not accept the tag {}; remove it", tagged.tag);
            Some((path.clone(), detail))
        }
        Value::Sequence(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| find(item, &path.index(index)))
        }
        Value::Mapping(fields) => fields.iter().find_map(|(key, value)| match key {
            Value::String(name) => find(value, &option_path::below(path, name)),
            key => {
                let shown = serde_yaml::to_string(key).unwrap_or_default();
                let shown = shown.trim();
                let detail = format!("the key {shown} is not a text; write \"{shown}\"");
                Some((path.clone(), detail))
            }
        }),
        _ => None,
    }
}
