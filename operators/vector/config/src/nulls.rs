//! Nulls. From 0.58 on, Vector takes a null in place of an optional value as if the option was left out.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::catalogue::Catalogue;
use crate::component::{ComponentKind, components};
use crate::vector_version::VectorVersion;

/// Returns a configuration without the nulls that a version of Vector takes for options that are left out.
pub(crate) fn without_optional<'a>(
    catalogue: &Catalogue,
    config: &'a Map<String, Value>,
) -> Cow<'a, Map<String, Value>> {
    if catalogue.number() < VectorVersion::V0_58 || !config.values().any(has_null) {
        return Cow::Borrowed(config);
    }
    let is_block = |name: &String| {
        ComponentKind::ALL
            .iter()
            .any(|family| family.block() == name)
    };
    let fields = config
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()));
    let (mut blocks, globals): (Map<_, _>, Map<_, _>) =
        fields.partition(|(name, _)| is_block(name));
    for component in components(config) {
        let kind = component.kind();
        if let Some(entry) = kind.and_then(|kind| catalogue.entry(component.family, kind)) {
            let options = catalogue.options(entry);
            blocks[component.block][component.id] =
                options.without_nulls(component.value, entry.aliases());
        }
    }
    let globals = catalogue
        .globals()
        .without_nulls(&globals.into(), &BTreeMap::new());
    if let Value::Object(globals) = globals {
        blocks.extend(globals);
    }
    Cow::Owned(blocks)
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nulls_in_place_of_optional_values_are_left_out_from_0_58_on() {
        let config = json!({
            "api": {"address": null},
            "sources": {"in": {"type": "host_metrics", "cgroups": {"base": null}, "collectors": null}},
            "sinks": {
                "a": {"type": "socket", "acknowledgements": {"enabled": null}, "mode": null},
                "b": {"type": "amqp", "exchange": null, "unknown": null},
            },
        });
        let config = config.as_object().expect("an object");
        let shipped = Catalogue::shipped();
        assert_eq!(*without_optional(shipped, config), *config);
        let next = Catalogue::of_version(VectorVersion::V0_58).expect("a catalogue");
        let left = without_optional(next, config).into_owned();
        assert_eq!(
            Value::from(left),
            json!({
                "api": {},
                "sources": {"in": {"type": "host_metrics", "cgroups": {}}},
                "sinks": {
                    "a": {"type": "socket", "acknowledgements": {"enabled": null}, "mode": null},
                    "b": {"type": "amqp", "exchange": null},
                },
            })
        );
    }
}
