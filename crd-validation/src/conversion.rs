//! Conversion between the versions of a kind: the same fields under other names.
//!
//! One version is validated; clients can also use the others. Fields that the target version does not have are
//! stored in an annotation, so that converting back returns the original object.

mod schema;

use serde_json::{Map, Value};

use crate::json::pointer;

/// Version of a kind other than the validated one.
///
/// ```
/// use crd_validation::conversion::{VersionMapping, Versions};
/// use serde_json::json;
///
/// let versions = Versions {
///     group: "example.com",
///     kind: "Lamp",
///     storage_version: "v1",
///     others: vec![
///         VersionMapping::new("v1beta1")
///             .moves(&[("spec.watts", "spec.power")])
///             .only_in_storage(&["spec.note"]),
///     ],
/// };
/// let lamp = json!({"apiVersion": "example.com/v1", "metadata": {}, "spec": {"watts": 5, "note": "on"}});
/// let earlier = versions.convert(&lamp, "example.com/v1beta1")?;
/// assert_eq!(earlier["spec"], json!({"power": 5}));
/// assert_eq!(versions.convert(&earlier, "example.com/v1")?, lamp);
/// # Ok::<(), crd_validation::conversion::ConversionError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct VersionMapping {
    /// The version, such as `v1beta1`.
    pub name: &'static str,
    /// If true, the API server serves the version.
    pub is_served: bool,
    /// Pairs of dotted field paths: the path in the validated version and the path in this version.
    pub moves: &'static [(&'static str, &'static str)],
    /// Fields that exist only in the validated version, after fields have moved.
    pub only_in_storage: &'static [&'static str],
    /// Fields that exist only in this version, with their descriptions.
    pub only_in_version: &'static [(&'static str, &'static str)],
}

impl VersionMapping {
    /// Returns the mapping of a version that has the fields of the validated one, and is not served.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            is_served: false,
            moves: &[],
            only_in_storage: &[],
            only_in_version: &[],
        }
    }

    /// Sets the fields that have another path in this version: pairs of the dotted path in the validated version and the one
    /// in this version.
    #[must_use]
    pub const fn moves(self, moves: &'static [(&'static str, &'static str)]) -> Self {
        Self { moves, ..self }
    }

    /// Sets the dotted paths of the fields that exist only in the validated version, after fields have moved: also those of
    /// objects whose fields have all moved.
    #[must_use]
    pub const fn only_in_storage(self, fields: &'static [&'static str]) -> Self {
        Self {
            only_in_storage: fields,
            ..self
        }
    }

    /// Sets the dotted paths of the fields that exist only in this version, with their descriptions.
    #[must_use]
    pub const fn only_in_version(self, fields: &'static [(&'static str, &'static str)]) -> Self {
        Self {
            only_in_version: fields,
            ..self
        }
    }

    /// Lets the API server serve the version. Unlike admission, conversion has no failure policy: each client that reads or
    /// writes objects in this version depends on the webhook.
    #[must_use]
    pub const fn served(self) -> Self {
        Self {
            is_served: true,
            ..self
        }
    }
}

/// Reason why an object cannot be converted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConversionError {
    /// The object has an unknown version.
    #[error("unknown `apiVersion` `{given}`; the versions of {kind} are {known}")]
    From {
        /// The `apiVersion` of the object.
        given: String,
        /// The kind.
        kind: String,
        /// The known versions.
        known: String,
    },
    /// The requested version is unknown.
    #[error("unknown `desiredAPIVersion` `{given}`; the versions of {kind} are {known}")]
    To {
        /// The requested version.
        given: String,
        /// The kind.
        kind: String,
        /// The known versions.
        known: String,
    },
}

impl VersionMapping {
    /// Converts an object of the validated version to this version.
    fn convert_from_storage(&self, object: &Value, validated: &str) -> Value {
        let there = restored(
            self.moved_there(object),
            self.name,
            |original| self.moved_back(original),
            |object| self.moved_there(object),
            object,
        );
        remembering(there, object, validated, |there| self.moved_back(there))
    }

    /// Converts an object of this version to the validated version.
    fn convert_to_storage(&self, object: &Value, validated: &str) -> Value {
        let back = restored(
            self.moved_back(object),
            validated,
            |original| self.moved_there(original),
            |object| self.moved_back(object),
            object,
        );
        remembering(back, object, self.name, |back| self.moved_there(back))
    }

    fn moved_there(&self, object: &Value) -> Value {
        let mut object = object.clone();
        for (validated, here) in self.moves {
            relocate(&mut object, validated, here);
        }
        for name in self.only_in_storage {
            pointer::remove(&mut object, name);
        }
        object
    }

    fn moved_back(&self, object: &Value) -> Value {
        let mut object = object.clone();
        for (validated, here) in self.moves {
            relocate(&mut object, here, validated);
        }
        for (name, _) in self.only_in_version {
            pointer::remove(&mut object, name);
        }
        object
    }
}

/// Version of a kind.
enum Version<'a> {
    Storage,
    Other(&'a VersionMapping),
}

/// Versions of one kind.
pub struct Versions<'a> {
    /// API group.
    pub group: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Version that is validated and stored.
    pub storage_version: &'a str,
    /// All other versions.
    pub others: Vec<VersionMapping>,
}

impl Versions<'_> {
    /// Converts an object to another version, given as in `apiVersion`.
    ///
    /// # Errors
    ///
    /// If the object has, or is to be converted to, an unknown version.
    pub fn convert(&self, object: &Value, to: &str) -> Result<Value, ConversionError> {
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
        let validated = match source {
            Version::Storage => object.clone(),
            Version::Other(source) => source.convert_to_storage(object, self.storage_version),
        };
        let mut converted = match target {
            Version::Storage => validated,
            Version::Other(target) => target.convert_from_storage(&validated, self.storage_version),
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

/// Beginning of the names of the annotations that store the spec in another version, as JSON.
pub const STORED_SPEC_PREFIX: &str = "conversion.lockstep.dev/";

/// Returns the name of the annotation that stores the spec in another version.
fn annotation(version: &str) -> String {
    format!("{STORED_SPEC_PREFIX}{version}")
}

/// Moves a field. Does nothing if a parent of the target exists and is not an object.
fn relocate(object: &mut Value, from: &str, to: &str) {
    let (parent, field) = from.rsplit_once('.').unwrap_or(("", from));
    let mut parent = parent.split('.').filter(|name| !name.is_empty());
    let node = parent.try_fold(&mut *object, |node, name| node.get_mut(name));
    let Some(fields) = node.and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(value) = fields.remove(field) {
        insert_at(object, to, value);
    }
}

/// Sets a value like [`pointer::set`], but does not replace a null parent.
fn insert_at(object: &mut Value, name: &str, value: Value) {
    let (parent, field) = name.rsplit_once('.').unwrap_or(("", name));
    let mut target = object;
    for name in parent.split('.').filter(|name| !name.is_empty()) {
        let Some(fields) = target.as_object_mut() else {
            return;
        };
        target = fields
            .entry(name)
            .or_insert_with(|| Value::Object(Map::new()));
    }
    if let Some(fields) = target.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

/// Restores what the source version cannot express, from the stored spec of this version: all of it, or, if a client has changed
/// the source since then, the fields that a conversion to the source version and back loses.
fn restored(
    mut object: Value,
    version: &str,
    to_source: impl Fn(&Value) -> Value,
    from_source: impl Fn(&Value) -> Value,
    source: &Value,
) -> Value {
    let Some(stored) = take_annotation(&mut object, &annotation(version)) else {
        return object;
    };
    let Ok(spec) = serde_json::from_str::<Value>(&stored) else {
        return object;
    };
    let mut original = object.clone();
    original["spec"] = spec;
    let converted = to_source(&original);
    if converted["spec"] == source["spec"] {
        return original;
    }
    let without = from_source(&converted);
    restore_lost(&mut object["spec"], &without["spec"], &original["spec"]);
    object
}

/// Adds the fields to an object that the original has and a conversion back and forth has lost. What a client has set since
/// then stays, and so does the absence of an object that it has removed.
fn restore_lost(object: &mut Value, converted: &Value, original: &Value) {
    let (Value::Object(fields), Value::Object(original)) = (object, original) else {
        return;
    };
    for (name, value) in original {
        match (converted.get(name), fields.get_mut(name)) {
            (None, None) => drop(fields.insert(name.clone(), value.clone())),
            (Some(converted), Some(field)) => restore_lost(field, converted, value),
            (None, Some(_)) | (Some(_), None) => {}
        }
    }
}

/// Stores the spec of the source in an annotation if it cannot be derived from the converted object.
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

    const BETA: VersionMapping = VersionMapping::new("v1beta1")
        .moves(&[
            ("spec.instanceClass", "spec.class"),
            ("spec.login.secret", "spec.login.ref.name"),
            ("spec.login.keys.user", "spec.login.ref.userKey"),
        ])
        .only_in_storage(&["spec.login.keys"])
        .only_in_version(&[("spec.login.ref", "The Secret that contains the password.")]);

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
        there.expect("the version is known")
    }

    fn back(object: &Value) -> Value {
        let back = versions().convert(object, "example.com/v1");
        back.expect("the version is known")
    }

    #[test]
    fn fields_move_and_no_annotation_is_set_if_the_source_can_be_derived() {
        let validated = json!({
            "apiVersion": "example.com/v1",
            "metadata": {"name": "a"},
            "spec": {"instanceClass": "m", "login": {"secret": "s", "keys": {"user": "u"}}},
        });
        let other = json!({
            "apiVersion": "example.com/v1beta1",
            "metadata": {"name": "a"},
            "spec": {"class": "m", "login": {"ref": {"name": "s", "userKey": "u"}}},
        });
        assert_eq!(there(&validated), other);
        assert_eq!(back(&other), validated);
    }

    #[test]
    fn fields_that_a_version_lacks_are_stored_while_others_are_changed() {
        let validated = json!({
            "apiVersion": "example.com/v1",
            "metadata": {"name": "a"},
            "spec": {"login": {"keys": {}}},
        });
        let mut other = there(&validated);
        assert_eq!(other["spec"], json!({"login": {}}));
        assert_eq!(back(&other), validated);
        other["spec"]["class"] = json!("m");
        let changed = json!({"instanceClass": "m", "login": {"keys": {}}});
        assert_eq!(back(&other)["spec"], changed);
        assert_eq!(back(&other)["metadata"], validated["metadata"]);
        other["spec"]["login"]["ref"] = json!({"userKey": "u"});
        let changed = json!({"instanceClass": "m", "login": {"keys": {"user": "u"}}});
        assert_eq!(back(&other)["spec"], changed, "the client has set it");
        other["spec"] = json!({"class": "m"});
        let changed = json!({"instanceClass": "m"});
        assert_eq!(
            back(&other)["spec"],
            changed,
            "the client has removed the object around it"
        );
    }

    #[test]
    fn an_unknown_version_is_reported_by_name() {
        let object = json!({"apiVersion": "example.com/v2", "metadata": {}});
        let error = versions().convert(&object, "example.com/v1");
        let known = "the versions of Database are `example.com/v1`, `example.com/v1beta1`";
        let message = error.expect_err("unknown").to_string();
        assert_eq!(
            message,
            format!("unknown `apiVersion` `example.com/v2`; {known}")
        );
        let object = json!({"apiVersion": "example.com/v1", "metadata": {}});
        let error = versions().convert(&object, "v1beta1");
        let message = error.expect_err("unknown").to_string();
        assert_eq!(
            message,
            format!("unknown `desiredAPIVersion` `v1beta1`; {known}")
        );
    }

    /// Generates arbitrary JSON, often with the field names that move.
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
        fn a_round_trip_returns_the_original_object(spec in any_value(), noted in any::<bool>()) {
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
