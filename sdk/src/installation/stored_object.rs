//! Stored object of an installed kind.

use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use lockstep_shared_validation::Validator;
use serde_json::Value;

/// Stored object of an installed kind.
#[derive(Clone, Debug)]
pub(crate) struct StoredObject {
    pub(crate) resource: ApiResource,
    pub(crate) object: DynamicObject,
}

impl StoredObject {
    pub(crate) fn kind(&self) -> &str {
        &self.resource.kind
    }

    pub(crate) fn uid(&self) -> &str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    /// Returns the kind, namespace and name.
    pub(crate) fn shown(&self) -> String {
        match self.object.namespace() {
            Some(namespace) => format!("{} {namespace}/{}", self.kind(), self.object.name_any()),
            None => format!("{} {}", self.kind(), self.object.name_any()),
        }
    }

    /// Returns a command that shows the object with its Events.
    pub(crate) fn describe_command(&self) -> String {
        let (plural, group) = (&self.resource.plural, &self.resource.group);
        let command = format!(
            "kubectl describe {plural}.{group} {}",
            self.object.name_any()
        );
        match self.object.namespace() {
            Some(namespace) => format!("{command} --namespace {namespace}"),
            None => command,
        }
    }

    /// Returns a condition of the object.
    pub(crate) fn condition(&self, type_: &str) -> Option<&Value> {
        let conditions = self.object.data.pointer("/status/conditions")?.as_array()?;
        conditions
            .iter()
            .find(|condition| condition["type"] == type_)
    }

    /// Returns true if the condition has this status.
    pub(crate) fn has_condition(&self, type_: &str, status: &str) -> bool {
        self.condition(type_)
            .is_some_and(|condition| condition["status"] == status)
    }

    /// Returns the condition that says best in which state the object is, as text.
    pub(crate) fn state(&self) -> Option<String> {
        let is_set = |type_: &str| self.has_condition(type_, "True");
        let type_ = ["Paused", "DeletionStalled", "Stalled"]
            .into_iter()
            .find(|type_| is_set(type_));
        let shown = if self.has_condition("Valid", "False") && !self.is_deleting() {
            "Valid"
        } else {
            type_.unwrap_or("Ready")
        };
        let condition = self.condition(shown)?;
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        let (status, reason, message) = (text("status"), text("reason"), text("message"));
        Some(format!("{shown}={status} {reason}: {message}"))
    }
}

/// Returns true if a finalizer belongs to the operator of a kind: its domain is the group of the kind, or a
/// subdomain of it.
pub(crate) fn is_own_finalizer(ruleset: &dyn Validator, finalizer: &str) -> bool {
    let domain = finalizer.split_once('/').map_or("", |(domain, _)| domain);
    let group = ruleset.group();
    domain == group
        || domain
            .strip_suffix(group)
            .is_some_and(|sub| sub.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use lockstep_shared_validation::Ruleset;
    use serde_json::json;

    use super::*;
    use crate::operator::test_kinds::Lamp;

    #[test]
    fn a_finalizer_of_the_group_is_our_own() {
        let lamps = Ruleset::<Lamp>::compile().expect("a ruleset");
        let is_own = |finalizer: &str| is_own_finalizer(&lamps, finalizer);
        assert!(is_own("example.com/finalizer"));
        assert!(is_own("lamp.example.com/in-use-protection"));
        assert!(!is_own("backup.other-example.com/finalizer"));
        assert!(!is_own("orphan"));
    }

    #[test]
    fn the_state_is_the_condition_that_needs_attention() {
        let gvk = kube::core::GroupVersionKind::gvk("example.com", "v1", "Lamp");
        let state = |conditions: &Value| {
            let object = json!({"metadata": {"name": "a"}, "status": {"conditions": conditions}});
            let object = serde_json::from_value(object).expect("an object");
            let resource = ApiResource::from_gvk(&gvk);
            StoredObject { resource, object }.state()
        };
        let ready = json!({"type": "Ready", "status": "False", "reason": "Off", "message": "dark"});
        assert_eq!(state(&json!([])), None);
        assert_eq!(
            state(&json!([ready])).as_deref(),
            Some("Ready=False Off: dark")
        );
        let paused =
            json!({"type": "Paused", "status": "True", "reason": "Annotation", "message": "p"});
        let found = state(&json!([ready, paused])).unwrap_or_default();
        assert!(found.starts_with("Paused=True"), "{found}");
        let invalid =
            json!({"type": "Valid", "status": "False", "reason": "Invalid", "message": "v"});
        let found = state(&json!([ready, paused, invalid])).unwrap_or_default();
        assert!(found.starts_with("Valid=False"), "{found}");
    }
}
