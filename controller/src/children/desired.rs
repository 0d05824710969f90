//! Desired children: as an operator author returns them, and as they are sent.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fnv::FnvHasher;
use serde_json::{Map, Value, json};
use std::hash::Hasher;

use crate::api::error::ReconcileError;
use crate::cache::object_key::ObjectKey;
use crate::children::key::ChildKey;
use crate::children::{APPLIED_ANNOTATION, CONTROLLER_LABEL, OWNER_LABEL, OwnedType, Owner};

/// One desired child.
#[derive(Debug)]
pub(crate) struct Desired {
    /// The object that is sent.
    pub(crate) body: Value,
    /// Fingerprint of what the author returned, without secret values.
    pub(crate) fingerprint: String,
    /// The secret values. They are compared directly, and no fingerprint of them is published.
    pub(crate) secrets: Option<Map<String, Value>>,
    /// If true, only the name is given: the child is left unchanged.
    pub(crate) is_minimal: bool,
}

/// Metadata fields that only the API server sets.
const NOT_TO_BE_DESIRED: &[&str] = &[
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];

/// Returns the object to send for each child.
///
/// # Guarantees
///
/// All of them can be children of the owner, as far as their content shows; otherwise the result is an error and
/// none of them is sent.
pub(crate) fn desired(
    owner: &Owner<'_>,
    types: &[OwnedType],
    children: &[Value],
) -> Result<BTreeMap<ChildKey, Desired>, ReconcileError> {
    let mut all = BTreeMap::new();
    for child in children {
        let mut child = child.clone();
        remove_nulls(&mut child);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let what = ChildRef {
            api_version: text(&child["apiVersion"]),
            kind: text(&child["kind"]),
            name: text(&child["metadata"]["name"]),
        };
        if [&what.api_version, &what.kind, &what.name].contains(&&String::new()) {
            return Err(what.permanent_error(
                "ChildUnnamed",
                "needs `apiVersion`, `kind` and `metadata.name`",
            ));
        }
        let at = types
            .iter()
            .position(|type_| type_.is(&what.api_version, &what.kind))
            .ok_or_else(|| {
                what.permanent_error(
                    "ChildTypeUndeclared",
                    "is of a type that the operator does not declare; add an `OwnedType` for it",
                )
            })?;
        let namespace = namespace(owner, &types[at], &child, &what)?;
        check(&child, &what)?;
        let is_minimal = is_minimal(&child);
        let mut secrets = None;
        if what.api_version == "v1" && what.kind == "Secret" {
            encode(&mut child, &what)?;
            secrets = child.get("data").and_then(Value::as_object).cloned();
        }
        let fingerprint = fingerprint(owner, &child, secrets.is_some());
        if let (Some(namespace), Some(metadata)) = (&namespace, metadata(&mut child)) {
            metadata.insert("namespace".to_owned(), json!(namespace));
        }
        let key = ChildKey {
            type_index: at,
            object: ObjectKey::new(namespace.as_deref().unwrap_or_default(), &what.name),
        };
        let desired = Desired {
            body: with_owner(owner, &types[at], child, &fingerprint),
            fingerprint,
            secrets,
            is_minimal,
        };
        if all.insert(key, desired).is_some() {
            return Err(what.permanent_error("DuplicateChild", "is desired twice"));
        }
    }
    Ok(all)
}

/// A child, as error messages name it.
pub(crate) struct ChildRef {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
}

impl ChildRef {
    /// Returns an error that needs a change first.
    pub(crate) fn permanent_error(&self, reason: &'static str, why: &str) -> ReconcileError {
        let message = self.message(why);
        ReconcileError::Permanent { reason, message }
    }

    /// Returns an error that may disappear without a change.
    pub(crate) fn transient_error(&self, reason: &'static str, why: &str) -> ReconcileError {
        let message = self.message(why);
        ReconcileError::Transient { reason, message }
    }

    fn message(&self, why: &str) -> String {
        let Self {
            api_version,
            kind,
            name,
        } = self;
        format!("the child {kind} '{name}' ({api_version}) {why}")
    }
}

fn namespace(
    owner: &Owner<'_>,
    type_: &OwnedType,
    child: &Value,
    what: &ChildRef,
) -> Result<Option<String>, ReconcileError> {
    const REASON: &str = "ChildInOtherNamespace";
    let namespace = child["metadata"]["namespace"].as_str();
    match (type_.is_namespaced, owner.namespace, namespace) {
        (false, _, None) => Ok(None),
        (false, _, Some(namespace)) => {
            let why = format!(
                "names the namespace '{namespace}', but its type is cluster-scoped; leave the namespace out"
            );
            Err(what.permanent_error(REASON, &why))
        }
        (true, Some(own), Some(namespace)) if own != namespace => {
            let why = format!(
                "is in the namespace '{namespace}', but its owner is in '{own}': the children of a namespaced object must be in its namespace"
            );
            Err(what.permanent_error(REASON, &why))
        }
        (true, Some(own), _) => Ok(Some(own.to_owned())),
        (true, None, Some(namespace)) => Ok(Some(namespace.to_owned())),
        (true, None, None) => Err(what.permanent_error(
            REASON,
            "needs `metadata.namespace`, since its owner is cluster-scoped",
        )),
    }
}

fn check(child: &Value, what: &ChildRef) -> Result<(), ReconcileError> {
    if child.get("status").is_some() {
        return Err(what.permanent_error(
            "ChildWithStatus",
            "has a `status`, which only the controller of its type writes; leave it out",
        ));
    }
    let set = NOT_TO_BE_DESIRED
        .iter()
        .find(|name| child["metadata"].get(**name).is_some());
    set.map_or(Ok(()), |name| {
        let why = format!(
            "has `metadata.{name}`, which only the API server sets: return the desired child, not the observed one"
        );
        Err(what.permanent_error("ChildAsObserved", &why))
    })
}

fn is_minimal(child: &Value) -> bool {
    let has_only = |value: &Value, names: &[&str]| {
        let fields = value.as_object().into_iter().flatten();
        fields
            .into_iter()
            .all(|(name, _)| names.contains(&name.as_str()))
    };
    has_only(child, &["apiVersion", "kind", "metadata"])
        && has_only(&child["metadata"], &["name", "namespace"])
}

/// Adds everything that identifies the owner to a child.
fn with_owner(owner: &Owner<'_>, type_: &OwnedType, mut child: Value, fingerprint: &str) -> Value {
    if let Some(metadata) = metadata(&mut child) {
        let labels = object(metadata, "labels");
        labels.insert(CONTROLLER_LABEL.to_owned(), json!(owner.controller));
        labels.insert(OWNER_LABEL.to_owned(), json!(owner.uid));
        if owner.can_reference(type_) {
            array(metadata, "ownerReferences").push(owner.reference());
        }
        if let Some(finalizer) = owner.finalizer.filter(|_| type_.has_finalizer) {
            array(metadata, "finalizers").push(json!(finalizer));
        }
        let annotations = object(metadata, "annotations");
        annotations.insert(APPLIED_ANNOTATION.to_owned(), json!(fingerprint));
    }
    child
}

/// Returns the fingerprint of what an author returned for a child of this owner.
fn fingerprint(owner: &Owner<'_>, child: &Value, is_secret: bool) -> String {
    let mut content = Cow::Borrowed(child);
    if is_secret && let Some(values) = content.to_mut().get_mut("data") {
        let values = values.as_object_mut().into_iter().flatten();
        values.for_each(|(_, value)| *value = Value::Null);
    }
    let mut hasher = FnvHasher::default();
    hasher.write(owner.uid.as_bytes());
    hasher.write(content.to_string().as_bytes());
    format!("{:016x}", hasher.finish())
}

fn metadata(child: &mut Value) -> Option<&mut Map<String, Value>> {
    child.get_mut("metadata")?.as_object_mut()
}

fn object<'a>(parent: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let value = parent.entry(name).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    value
        .as_object_mut()
        .expect("the value was just made an object")
}

fn array<'a>(parent: &'a mut Map<String, Value>, name: &str) -> &'a mut Vec<Value> {
    let value = parent.entry(name).or_insert_with(|| json!([]));
    if !value.is_array() {
        *value = json!([]);
    }
    value
        .as_array_mut()
        .expect("the value was just made an array")
}

/// Removes nulls: a null means that the field is not set.
fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// Encodes `stringData` as the API server stores it: that field is write-only and could never be compared.
fn encode(secret: &mut Value, what: &ChildRef) -> Result<(), ReconcileError> {
    let Some(secret) = secret.as_object_mut() else {
        return Ok(());
    };
    let texts = match secret.remove("stringData") {
        None => return Ok(()),
        Some(Value::Object(texts)) => texts,
        Some(_) => {
            return Err(what.permanent_error("ChildInvalid", "needs `stringData` to be an object"));
        }
    };
    let data = object(secret, "data");
    for (name, text) in texts {
        let Value::String(text) = text else {
            let why = format!("has `stringData.{name}`, which is not a string; quote it");
            return Err(what.permanent_error("ChildInvalid", &why));
        };
        data.insert(name, json!(STANDARD.encode(text)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
    use kube::api::ApiResource;
    use kube::core::GroupVersionKind;

    use super::*;

    fn types() -> [OwnedType; 3] {
        [
            OwnedType::namespaced::<ConfigMap>(),
            OwnedType::namespaced::<Secret>().with_finalizer(),
            OwnedType::cluster_scoped::<Namespace>(),
        ]
    }

    fn desire(namespace: Option<&str>, child: Value) -> Result<Desired, String> {
        let owner = Owner {
            resource: &ApiResource::from_gvk(&GroupVersionKind::gvk("g", "v1", "K")),
            controller: "k",
            finalizer: Some("g/finalizer"),
            namespace,
            name: "a",
            uid: "1",
        };
        let desired = desired(&owner, &types(), &[child]).map_err(|error| error.to_string())?;
        Ok(desired.into_values().next().expect("one child"))
    }

    fn config_map(with: &[(&str, Value)]) -> Value {
        let mut child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
        for (name, value) in with {
            match name.strip_prefix("metadata.") {
                Some(name) => child["metadata"][name] = value.clone(),
                None => child[*name] = value.clone(),
            }
        }
        child
    }

    #[test]
    fn a_child_identifies_its_owner() {
        let child = desire(Some("default"), config_map(&[("data", json!({"a": "b"}))]));
        let Desired {
            body, fingerprint, ..
        } = child.expect("a child");
        let reference = json!({
            "apiVersion": "g/v1", "kind": "K", "name": "a", "uid": "1",
            "controller": true, "blockOwnerDeletion": true,
        });
        let metadata = json!({
            "name": "c",
            "namespace": "default",
            "labels": {"lockstep.dev/controller": "k", "lockstep.dev/owner-uid": "1"},
            "annotations": {"lockstep.dev/last-applied-hash": fingerprint},
            "ownerReferences": [reference],
        });
        let expected = config_map(&[("data", json!({"a": "b"})), ("metadata", metadata)]);
        assert_eq!(body, expected);
    }

    #[test]
    fn a_cluster_scoped_child_of_a_namespaced_owner_has_no_owner_reference() {
        let child = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
        let child = desire(Some("default"), child).expect("a child");
        assert_eq!(child.body.pointer("/metadata/ownerReferences"), None);
        assert_eq!(
            child.body["metadata"]["labels"]["lockstep.dev/owner-uid"],
            "1"
        );
        assert!(child.is_minimal);
    }

    #[test]
    fn string_data_of_a_secret_is_encoded_and_a_protected_child_has_the_finalizer() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
            "data": {"kept": "Zg=="}, "stringData": {"password": "hunter2"},
        });
        let secret = desire(Some("default"), secret).expect("a child").body;
        assert_eq!(
            secret["data"],
            json!({"kept": "Zg==", "password": "aHVudGVyMg=="})
        );
        assert_eq!(secret.get("stringData"), None);
        let number = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"port": 5432},
        });
        let error = desire(Some("default"), number).expect_err("not a string");
        assert!(
            error.contains("`stringData.port`, which is not a string"),
            "{error}"
        );
        assert_eq!(secret["metadata"]["finalizers"], json!(["g/finalizer"]));
    }

    #[test]
    fn a_null_means_that_the_field_is_not_set() {
        let with = |value| config_map(&[("data", json!({"a": "b"})), ("immutable", value)]);
        let plain = desire(Some("n"), config_map(&[("data", json!({"a": "b"}))])).expect("a child");
        let null = desire(Some("n"), with(Value::Null)).expect("a child");
        assert_eq!(null.fingerprint, plain.fingerprint);
        let other = desire(Some("n"), with(json!(true))).expect("a child");
        assert_ne!(other.fingerprint, plain.fingerprint);
    }

    #[test]
    fn an_invalid_child_is_rejected_with_what_to_do() {
        let named = |name: &str, value: Value| config_map(&[(name, value)]);
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
        let key = json!({"name": "n", "namespace": "default"});
        let namespaced = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": key});
        for (owner, child, expected) in [
            (Some("a"), json!({}), "needs `apiVersion`"),
            (
                Some("a"),
                json!({"apiVersion": "v1", "kind": "ConfigMap"}),
                "`metadata.name`",
            ),
            (
                Some("a"),
                pod,
                "child Pod 'p' (v1) is of a type that the operator does not declare",
            ),
            (Some("a"), named("status", json!({})), "has a `status`"),
            (
                Some("a"),
                named("metadata.namespace", json!("b")),
                "but its owner is in 'a'",
            ),
            (None, named("data", json!({})), "needs `metadata.namespace`"),
            (Some("a"), namespaced, "leave the namespace out"),
            (
                Some("a"),
                named("metadata.uid", json!("1")),
                "has `metadata.uid`",
            ),
        ] {
            let printed = child.to_string();
            let error = desire(owner, child).map(|_| ()).expect_err(&printed);
            assert!(error.contains(expected), "{printed}: {error}");
        }
        assert!(desire(None, named("metadata.namespace", json!("b"))).is_ok());
    }
}
