//! Other versions of a kind: the same fields under other names.
//!
//! One version is judged; the others are what clients may speak besides. What one of them cannot say of an
//! object is kept in an annotation, so that there and back is where one has begun.

mod schema;

use serde_json::{Map, Value};

use crate::pointer;

/// A version of a kind beside the one that is judged.
#[derive(Clone, Copy, Debug)]
pub struct VersionMapping {
    /// The version, such as `v1beta1`.
    pub name: &'static str,
    /// Where fields of the judged version stand in this one, as dotted names.
    pub moves: &'static [(&'static str, &'static str)],
    /// What the judged version has and this one has not, once fields have moved.
    pub only_in_storage: &'static [&'static str],
    /// What this version has and the judged one has not, with what it is.
    pub only_in_version: &'static [(&'static str, &'static str)],
}

/// Why an object cannot be had in a version.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// The object is of a version that nobody knows here.
    #[error("`apiVersion` is `{given}`: {kind} has the versions {known}")]
    From {
        /// What the object says.
        given: String,
        /// The kind.
        kind: String,
        /// What there is.
        known: String,
    },
    /// A version is asked for that nobody knows here.
    #[error("`desiredAPIVersion` is `{given}`: {kind} has the versions {known}")]
    To {
        /// What is asked for.
        given: String,
        /// The kind.
        kind: String,
        /// What there is.
        known: String,
    },
}

impl VersionMapping {
    /// An object of the judged version as one of this version.
    fn from_storage(&self, object: &Value, judged: &str) -> Value {
        let there = restored(
            self.moved_there(object),
            self.name,
            |original| self.moved_back(original),
            object,
        );
        remembering(there, object, judged, |there| self.moved_back(there))
    }

    /// An object of this version as one of the judged version.
    fn to_storage(&self, object: &Value, judged: &str) -> Value {
        let back = restored(
            self.moved_back(object),
            judged,
            |original| self.moved_there(original),
            object,
        );
        remembering(back, object, self.name, |back| self.moved_there(back))
    }

    fn moved_there(&self, object: &Value) -> Value {
        let mut object = object.clone();
        for (judged, here) in self.moves {
            relocate(&mut object, judged, here);
        }
        for name in self.only_in_storage {
            pointer::remove(&mut object, name);
        }
        object
    }

    fn moved_back(&self, object: &Value) -> Value {
        let mut object = object.clone();
        for (judged, here) in self.moves {
            relocate(&mut object, here, judged);
        }
        for (name, _) in self.only_in_version {
            pointer::remove(&mut object, name);
        }
        object
    }

    /// Adds this version to a CRD that has the judged one alone. It is not served: a webhook that converts
    /// has no failure policy, and whoever lists through it waits for the gate.
    pub fn add_to(&self, crd: &mut Value) {
        schema::add(self, crd);
    }
}

/// One of the versions of a kind.
enum Version<'a> {
    Storage,
    Other(&'a VersionMapping),
}

/// The versions of one kind.
pub(crate) struct Versions<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) storage_version: &'a str,
    pub(crate) others: Vec<VersionMapping>,
}

impl Versions<'_> {
    /// An object in another version, named as in `apiVersion`.
    pub(crate) fn convert(&self, object: &Value, to: &str) -> Result<Value, ConversionError> {
        let from = object["apiVersion"].as_str().unwrap_or_default();
        let source = self.find(from).ok_or_else(|| ConversionError::From {
            given: from.to_owned(),
            kind: self.kind.to_owned(),
            known: self.known(),
        })?;
        let target = self.find(to).ok_or_else(|| ConversionError::To {
            given: to.to_owned(),
            kind: self.kind.to_owned(),
            known: self.known(),
        })?;
        if from == to {
            return Ok(object.clone());
        }
        let judged = match source {
            Version::Storage => object.clone(),
            Version::Other(source) => source.to_storage(object, self.storage_version),
        };
        let mut converted = match target {
            Version::Storage => judged,
            Version::Other(target) => target.from_storage(&judged, self.storage_version),
        };
        converted["apiVersion"] = to.into();
        Ok(converted)
    }

    fn find(&self, api_version: &str) -> Option<Version<'_>> {
        let (group, version) = api_version.split_once('/')?;
        if group != self.group {
            return None;
        }
        if version == self.storage_version {
            return Some(Version::Storage);
        }
        self.others
            .iter()
            .find(|other| other.name == version)
            .map(Version::Other)
    }

    fn known(&self) -> String {
        let others = self.others.iter().map(|other| other.name);
        let all = std::iter::once(self.storage_version).chain(others);
        let all: Vec<_> = all.map(|name| format!("`{}/{name}`", self.group)).collect();
        all.join(", ")
    }
}

/// Where an object of one version keeps what it was in another.
fn annotation(version: &str) -> String {
    format!("conversion.lockstep.dev/{version}")
}

/// Moves a field, unless something that is no object stands in the way.
fn relocate(object: &mut Value, from: &str, to: &str) {
    let (parent, field) = from.rsplit_once('.').unwrap_or(("", from));
    let mut parent = parent.split('.').filter(|name| !name.is_empty());
    let place = parent.try_fold(&mut *object, |place, name| place.get_mut(name));
    let Some(fields) = place.and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(value) = fields.remove(field) {
        place_at(object, to, value);
    }
}

/// As [`pointer::set`], which takes a null on the way for nothing.
fn place_at(object: &mut Value, name: &str, value: Value) {
    let (parent, field) = name.rsplit_once('.').unwrap_or(("", name));
    let mut place = object;
    for name in parent.split('.').filter(|name| !name.is_empty()) {
        let Some(fields) = place.as_object_mut() else {
            return;
        };
        place = fields
            .entry(name)
            .or_insert_with(|| Value::Object(Map::new()));
    }
    if let Some(fields) = place.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

/// The object with the spec that it had in this version, if its present one still says the same.
fn restored(
    mut object: Value,
    version: &str,
    moved: impl Fn(&Value) -> Value,
    source: &Value,
) -> Value {
    let Some(kept) = take_annotation(&mut object, &annotation(version)) else {
        return object;
    };
    let Ok(spec) = serde_json::from_str::<Value>(&kept) else {
        return object;
    };
    let mut original = object.clone();
    original["spec"] = spec;
    if moved(&original)["spec"] == source["spec"] {
        original
    } else {
        object
    }
}

/// The object, with what its source was if that could not be told from the object alone.
fn remembering(
    mut object: Value,
    source: &Value,
    version: &str,
    moved: impl Fn(&Value) -> Value,
) -> Value {
    if moved(&object)["spec"] != source["spec"]
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        let annotations = metadata
            .entry("annotations")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(annotation(version), source["spec"].to_string().into());
        }
    }
    object
}

fn take_annotation(object: &mut Value, name: &str) -> Option<String> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let value = annotations.remove(name)?;
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    Some(value.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const BETA: VersionMapping = VersionMapping {
        name: "v1beta1",
        moves: &[
            ("spec.instanceClass", "spec.class"),
            ("spec.login.secret", "spec.login.ref.name"),
            ("spec.login.keys.user", "spec.login.ref.userKey"),
        ],
        only_in_storage: &["spec.login.keys"],
        only_in_version: &[("spec.login.ref", "Where the password is.")],
    };

    fn versions() -> Versions<'static> {
        Versions {
            group: "example.com",
            kind: "Database",
            storage_version: "v1",
            others: vec![BETA],
        }
    }

    fn there(object: &Value) -> Value {
        let there = versions().convert(object, "example.com/v1beta1");
        there.expect("it is known")
    }

    fn back(object: &Value) -> Value {
        let back = versions().convert(object, "example.com/v1");
        back.expect("it is known")
    }

    #[test]
    fn fields_move_and_nothing_is_annotated_that_can_be_told() {
        let judged = json!({
            "apiVersion": "example.com/v1",
            "metadata": {"name": "a"},
            "spec": {"instanceClass": "m", "login": {"secret": "s", "keys": {"user": "u"}}},
        });
        let other = json!({
            "apiVersion": "example.com/v1beta1",
            "metadata": {"name": "a"},
            "spec": {"class": "m", "login": {"ref": {"name": "s", "userKey": "u"}}},
        });
        assert_eq!(there(&judged), other);
        assert_eq!(back(&other), judged);
    }

    #[test]
    fn what_a_version_cannot_say_is_kept_until_somebody_changes_the_object() {
        let judged = json!({
            "apiVersion": "example.com/v1",
            "metadata": {"name": "a"},
            "spec": {"login": {"keys": {}}},
        });
        let mut other = there(&judged);
        assert_eq!(other["spec"], json!({"login": {}}));
        assert_eq!(back(&other), judged);
        other["spec"]["class"] = json!("m");
        assert_eq!(
            back(&other)["spec"],
            json!({"instanceClass": "m", "login": {}})
        );
        assert_eq!(back(&other)["metadata"], judged["metadata"]);
    }

    #[test]
    fn a_version_that_nobody_knows_is_named() {
        let object = json!({"apiVersion": "example.com/v2", "metadata": {}});
        let error = versions().convert(&object, "example.com/v1");
        let known = "Database has the versions `example.com/v1`, `example.com/v1beta1`";
        let said = error.expect_err("unknown").to_string();
        assert_eq!(said, format!("`apiVersion` is `example.com/v2`: {known}"));
        let object = json!({"apiVersion": "example.com/v1", "metadata": {}});
        let error = versions().convert(&object, "v1beta1");
        let said = error.expect_err("unknown").to_string();
        assert_eq!(said, format!("`desiredAPIVersion` is `v1beta1`: {known}"));
    }

    /// Any JSON, often under the names that move.
    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z]{0,3}".prop_map(Value::from),
        ];
        let name = prop_oneof![
            "instanceClass|class|login|secret|ref|name|keys|user|userKey",
            "[a-z]{1,2}"
        ];
        leaf.prop_recursive(4, 32, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map(name.clone(), inner, 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn there_and_back_is_where_one_has_begun(spec in any_value(), noted in any::<bool>()) {
            let mut metadata = json!({"name": "a"});
            if noted {
                metadata["annotations"] = json!({"team": "shop"});
            }
            let mut object = json!({"apiVersion": "example.com/v1", "metadata": metadata, "spec": spec});
            prop_assert_eq!(&back(&there(&object)), &object);
            object["apiVersion"] = json!("example.com/v1beta1");
            prop_assert_eq!(&there(&back(&object)), &object);
        }
    }
}
