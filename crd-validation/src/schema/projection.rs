//! Projection of an object to the parts that its CRD validates. The fast path copies only these parts.

use serde_json::{Map, Value};

use crate::json::raw::Tree;
use crate::schema::{ListType, Schema};

/// Projection of objects, compiled once.
pub(crate) struct Projection {
    closed: Vec<Closed>,
}

/// Field of an object that is validated only in part or not at all.
struct Closed {
    name: &'static str,
    /// Names of the fields within it that are validated.
    open: Vec<String>,
    /// If true, defaulting may remove nulls within it.
    drops_nulls: bool,
}

impl Projection {
    /// Builds the projection for the object that is written.
    pub(crate) fn of_object(schema: &Schema, has_own_status: bool) -> Self {
        Self::new(schema, has_own_status, |node| {
            // Lists with item identities and embedded objects are validated everywhere, even in the status.
            node.has_identities || node.has_embedded
        })
    }

    /// Builds the projection for the object that is replaced. Less of it is validated.
    pub(crate) fn of_replaced(schema: &Schema, has_own_status: bool) -> Self {
        Self::new(schema, has_own_status, |_| false)
    }

    fn new(
        schema: &Schema,
        has_own_status: bool,
        is_validated: impl Fn(&Schema) -> bool + Copy,
    ) -> Self {
        let mut closed = Vec::new();
        if !schema.restricts_fields_only() {
            return Self { closed };
        }
        let metadata = schema.properties.get("metadata");
        if metadata.is_none_or(Schema::restricts_nothing) {
            closed.push(Closed {
                name: "metadata",
                open: Vec::new(),
                drops_nulls: false,
            });
        }
        let status = schema.properties.get("status");
        if has_own_status
            && status.is_none_or(|status| {
                status.list_type == ListType::Atomic
                    && !status.embedded
                    && !status.additional().is_some_and(is_validated)
            })
        {
            let fields = status
                .into_iter()
                .flat_map(|status| status.properties.iter());
            let open = fields.filter(|(_, node)| is_validated(node));
            closed.push(Closed {
                name: "status",
                open: open.map(|(name, _)| name.clone()).collect(),
                drops_nulls: true,
            });
        }
        Self { closed }
    }

    /// Returns a copy of an object without the parts that are not validated, or `None` if such a part contains
    /// a null that defaulting may have to remove.
    pub(crate) fn copy(&self, object: &Tree<'_>) -> Option<Value> {
        let Tree::Object(fields) = object else {
            return Some(object.to_value());
        };
        let mut copied = Map::new();
        for (name, value) in fields {
            let closed = self.closed.iter().find(|closed| closed.name == name);
            let value = match (closed, value) {
                (Some(closed), value) if closed.drops_nulls && has_nulls(value) => return None,
                (Some(closed), Tree::Object(fields)) => {
                    let fields = fields.iter();
                    fields
                        .filter(|(name, _)| closed.open.iter().any(|open| open == name))
                        .map(|(name, value)| (name.as_ref(), value.to_value()))
                        .collect()
                }
                (_, value) => value.to_value(),
            };
            copied.insert(name.as_ref().to_owned(), value);
        }
        Some(Value::Object(copied))
    }
}

fn has_nulls(tree: &Tree<'_>) -> bool {
    match tree {
        Tree::Null => true,
        Tree::List(items) => items.iter().any(has_nulls),
        Tree::Object(fields) => fields.iter().any(|(_, value)| has_nulls(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::raw::RawObject;

    #[test]
    fn only_the_validated_parts_of_a_field_are_copied() {
        let closed = ["spec", "more"].map(|name| Closed {
            name,
            open: vec!["b".to_owned()],
            drops_nulls: name == "spec",
        });
        let brief = Projection {
            closed: closed.into(),
        };
        let copy = |text: &str| {
            let written: RawObject<'_> = serde_json::from_str(text).expect("JSON");
            brief.copy(written.tree())
        };
        assert_eq!(
            copy(r#"{"spec": {"a": 1, "b": [2]}, "more": {"a": null}, "other": {"a": null}}"#),
            Some(json!({"spec": {"b": [2]}, "more": {}, "other": {"a": null}}))
        );
        assert_eq!(copy(r#"{"spec": {"a": [{"b": null}]}}"#), None);
        for text in ["null", "[1]", r#""a""#] {
            let plain: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(copy(text), Some(plain));
        }
    }
}
