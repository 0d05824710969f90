//! Status that the runtime writes: compared with the stored one, and patched only if it differs.

use jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use lockstep_shared_validation::{LastValidated, MAX_MESSAGE_BYTES, shortened};
use serde_json::{Map, Value, json};

use crate::api::reconciler::OperatorCondition;
use crate::custom_object::CustomObject;
use crate::status::{conditions, merge_patch, reconcile_request};

/// Status fields that the runtime writes; all others are the operator's.
pub(crate) const OF_THE_RUNTIME: [&str; 4] = [
    "lastValidated",
    "conditions",
    "observedGeneration",
    reconcile_request::HANDLED,
];

/// Status fields that may contain messages of any length, such as errors of other systems.
const MESSAGES: [&str; 2] = ["message", "reason"];

/// Condition: the object is ready for use.
pub(crate) const READY: &str = "Ready";
const RECONCILING: &str = "Reconciling";
const STALLED: &str = "Stalled";

/// Health of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// Ready for use.
    Ready,
    /// Makes progress without intervention.
    Reconciling,
    /// Makes no progress until something is changed.
    Stalled,
}

/// Status that is being changed.
pub(crate) struct Status {
    before: Value,
    after: Value,
    generation: i64,
    resource_version: Option<String>,
    now: Timestamp,
    is_subresource: bool,
    keeps_observed_generation: bool,
    keeps_readiness: bool,
    /// Types of the operator's own conditions that were set.
    operator_conditions: Vec<&'static str>,
    /// The operator's own fields that the API server has not stored.
    dropped: Vec<String>,
}

impl Status {
    /// Returns the stored status of an object. A status that is not an object counts as empty. One that is not a
    /// subresource belongs to the author of the object and is never written.
    pub(crate) fn from_object(object: &Value, is_subresource: bool) -> Self {
        let before = object
            .get("status")
            .filter(|status| status.is_object())
            .cloned()
            .unwrap_or_else(|| json!({}));
        let metadata = &object["metadata"];
        let mut after = before.clone();
        conditions::normalize(&mut after);
        Self {
            after,
            before,
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            resource_version: metadata["resourceVersion"].as_str().map(String::from),
            now: Timestamp::now(),
            is_subresource,
            keeps_observed_generation: false,
            keeps_readiness: false,
            operator_conditions: Vec::new(),
            dropped: Vec::new(),
        }
    }

    pub(crate) fn set_condition(&mut self, type_: &str, holds: bool, reason: &str, message: &str) {
        conditions::set(
            &mut self.after,
            type_,
            holds,
            reason,
            message,
            self.generation,
            self.now,
        );
    }

    /// Sets the condition `Ready`, and `Reconciling` or `Stalled` if the object is not ready. These two are
    /// present only while they are true, as kstatus expects.
    pub(crate) fn set_health(&mut self, standing: Health, reason: &str, message: &str) {
        if self.keeps_readiness {
            return;
        }
        self.set_condition(READY, standing == Health::Ready, reason, message);
        for (type_, when) in [
            (RECONCILING, Health::Reconciling),
            (STALLED, Health::Stalled),
        ] {
            if standing == when {
                self.set_condition(type_, true, reason, message);
            } else {
                self.remove_condition(type_);
            }
        }
    }

    /// Sets the condition `Stalled` of an object whose readiness does not change.
    pub(crate) fn set_stalled(&mut self, reason: &str, message: &str) {
        self.set_condition(STALLED, true, reason, message);
        self.remove_condition(RECONCILING);
    }

    pub(crate) fn remove_condition(&mut self, type_: &str) {
        conditions::remove(&mut self.after, type_);
    }

    /// Sets the operator's own fields; a null removes a field.
    pub(crate) fn set_fields(&mut self, fields: Map<String, Value>) {
        let Some(status) = self.after.as_object_mut() else {
            return;
        };
        for (name, value) in fields {
            let value = match value {
                Value::Null => {
                    status.remove(&name);
                    continue;
                }
                Value::String(text) if MESSAGES.contains(&name.as_str()) => {
                    shortened(&text, MAX_MESSAGE_BYTES).into()
                }
                other => other,
            };
            status.insert(name, value);
        }
    }

    /// Leaves the conditions of [`set_health`](Self::set_health) unchanged if the object is ready with its current spec. If the spec has changed, an earlier attempt may have written parts of it without a response.
    pub(crate) fn keep_readiness(&mut self) {
        let ready = conditions::get(&self.before, READY, self.generation);
        self.keeps_readiness = ready.is_some_and(|(is_ready, _)| is_ready);
    }

    /// Returns true if the stored status is of the current generation.
    pub(crate) fn is_current(&self) -> bool {
        self.before["observedGeneration"] == self.generation
    }

    /// Sets the operator's own conditions.
    pub(crate) fn set_operator_conditions(&mut self, conditions: &[OperatorCondition]) {
        for it in conditions {
            self.set_condition(it.type_, it.is_true, it.reason, &it.message);
            self.operator_conditions.push(it.type_);
        }
    }

    /// Sets the operator's own conditions, except those that were set already.
    pub(crate) fn set_remaining_operator_conditions(&mut self, conditions: &[OperatorCondition]) {
        for it in conditions {
            if !self.operator_conditions.contains(&it.type_) {
                self.set_condition(it.type_, it.is_true, it.reason, &it.message);
            }
        }
    }

    /// Leaves `observedGeneration` unchanged: the current generation has not been acted on.
    pub(crate) fn keep_observed_generation(&mut self) {
        self.keeps_observed_generation = true;
    }

    /// Records the request of a user that this reconciliation has handled.
    pub(crate) fn set_handled_request(&mut self, value: &str) {
        self.after[reconcile_request::HANDLED] = json!(value);
    }

    /// Returns the operator's own fields.
    pub(crate) fn own_fields(&self) -> Map<String, Value> {
        let mut fields = self.before.as_object().cloned().unwrap_or_default();
        fields.retain(|name, _| !OF_THE_RUNTIME.contains(&name.as_str()));
        fields
    }

    pub(crate) fn set_last_validated(&mut self, last_validated: &LastValidated) {
        self.after["lastValidated"] =
            serde_json::to_value(last_validated).expect("last validated values are JSON");
    }

    /// Returns true if the status does not yet contain what a later reconciliation must know if this process dies:
    /// the last validated values and every new field.
    pub(crate) fn last_validated_changed(&self) -> bool {
        let is_new = |name: &String| {
            !OF_THE_RUNTIME.contains(&name.as_str()) && self.before.get(name).is_none()
        };
        last_validated_values(&self.before) != last_validated_values(&self.after)
            || self
                .after
                .as_object()
                .is_some_and(|after| after.keys().any(is_new))
    }

    /// Writes the differences, if there are any, as one merge patch on the subresource. Returns the patched
    /// object. If the stored status must be confirmed, an empty patch is sent as well: it changes nothing, and is a
    /// conflict if the object has changed since it was read.
    pub(crate) async fn write(
        &mut self,
        api: &Api<CustomObject>,
        name: &str,
        must_confirm: bool,
    ) -> Result<Option<DynamicObject>, kube::Error> {
        if !self.is_subresource {
            return Ok(None);
        }
        if !self.keeps_observed_generation {
            self.after["observedGeneration"] = json!(self.generation);
        }
        let patch = match merge_patch::between(&self.before, &self.after) {
            Some(patch) => patch,
            None if must_confirm => json!({}),
            None => return Ok(None),
        };
        // With the resource version, a decision on stale data is a conflict and is made again on current data.
        let patch =
            json!({"metadata": {"resourceVersion": self.resource_version}, "status": patch});
        let written = api
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?
            .into_inner();
        self.resource_version
            .clone_from(&written.metadata.resource_version);
        let stored = &written.data["status"];
        let own = self.after.as_object().into_iter().flatten();
        let own = own.filter(|(name, _)| !OF_THE_RUNTIME.contains(&name.as_str()));
        self.dropped = own
            .filter(|(name, _)| stored[name.as_str()].is_null())
            .map(|(name, _)| name.clone())
            .collect();
        self.before = self.after.clone();
        Ok(Some(written))
    }

    /// Returns the operator's own fields that the API server has not stored: the cluster's CRD is of a release
    /// without them.
    pub(crate) fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// Returns the resource version of the object when it was last read or written.
    pub(crate) fn resource_version(&self) -> Option<&str> {
        self.resource_version.as_deref()
    }

    /// Returns the reason of the condition `Stalled`, if the object has it.
    pub(crate) fn stalled_reason(&self) -> Option<&str> {
        let all = self.after["conditions"].as_array()?;
        let stalled = all.iter().find(|condition| condition["type"] == STALLED)?;
        stalled["reason"].as_str()
    }

    /// Returns true if nothing differs from the stored status.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.before == self.after
    }

    /// Returns whether a condition is true, and its message, if it was set for the current generation.
    pub(crate) fn condition_of_this_generation(&self, type_: &str) -> Option<(bool, &str)> {
        conditions::get(&self.before, type_, self.generation)
    }

    /// Returns true if a condition had this status when the object was last read or written.
    pub(crate) fn had_condition(&self, type_: &str, holds: bool) -> bool {
        conditions::has_status(&self.before, type_, holds)
    }
}

/// Returns the last validated values of a status, unless there are none.
fn last_validated_values(status: &Value) -> Option<&Value> {
    let values = status.get("lastValidated")?.get("values")?;
    (*values != json!({})).then_some(values)
}
