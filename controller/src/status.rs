//! The status as the cycle writes it: compared with what stands, patched only where it differs.

use jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Map, Value, json};
use shared_validation::LastValidated;

use crate::{conditions, merge_patch};

/// The fields that the cycle writes; all others are the operator's.
pub(crate) const OF_THE_RUNTIME: [&str; 3] = ["accepted", "conditions", "observedGeneration"];

/// Whether what the object stands for can be used.
pub(crate) const READY: &str = "Ready";
const RECONCILING: &str = "Reconciling";
const STALLED: &str = "Stalled";

/// How far an object has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// What it stands for can be used.
    Ready,
    /// It goes on by itself.
    Reconciling,
    /// It goes on when somebody changes something.
    Stalled,
}

/// A status under change.
pub(crate) struct Status {
    before: Value,
    after: Value,
    generation: i64,
    resource_version: Option<String>,
    now: Timestamp,
    is_subresource: bool,
    keeps_observed_generation: bool,
    /// The operator's own fields that the API server has not stored.
    dropped: Vec<String>,
}

impl Status {
    /// The status of an object as it stands. One that is no object counts as empty, and one that is no
    /// subresource is its author's: it is never written.
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

    /// Whether the object can be used, and what comes of it if not: `Reconciling` and `Stalled` are there only
    /// while they hold, as kstatus reads them.
    pub(crate) fn set_health(&mut self, standing: Health, reason: &str, message: &str) {
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

    pub(crate) fn remove_condition(&mut self, type_: &str) {
        conditions::remove(&mut self.after, type_);
    }

    /// Sets the operator's own fields; a null removes one.
    pub(crate) fn set_fields(&mut self, fields: Map<String, Value>) {
        let Some(status) = self.after.as_object_mut() else {
            return;
        };
        for (name, value) in fields {
            if value.is_null() {
                status.remove(&name);
            } else {
                status.insert(name, value);
            }
        }
    }

    /// Does not say that the present generation has been acted on.
    pub(crate) fn keep_observed_generation(&mut self) {
        self.keeps_observed_generation = true;
    }

    /// The operator's own fields.
    pub(crate) fn own_fields(&self) -> Map<String, Value> {
        let mut fields = self.before.as_object().cloned().unwrap_or_default();
        fields.retain(|name, _| !OF_THE_RUNTIME.contains(&name.as_str()));
        fields
    }

    pub(crate) fn set_last_validated(&mut self, accepted: &LastValidated) {
        self.after["accepted"] = serde_json::to_value(accepted).expect("accepted values are JSON");
    }

    /// Whether what a later round must know, should this process die, is not written yet: the accepted
    /// values and any field that is new.
    pub(crate) fn last_validated_changed(&self) -> bool {
        let values = |status: &Value| {
            let values = status.pointer("/accepted/values").cloned();
            values.filter(|values| *values != json!({}))
        };
        let is_new = |name: &String| {
            !OF_THE_RUNTIME.contains(&name.as_str()) && self.before.get(name).is_none()
        };
        values(&self.before) != values(&self.after)
            || self
                .after
                .as_object()
                .is_some_and(|after| after.keys().any(is_new))
    }

    /// Writes what differs, if anything does, as one merge patch on the subresource. Gives the object as it
    /// then is.
    pub(crate) async fn write(
        &mut self,
        api: &Api<DynamicObject>,
        name: &str,
    ) -> Result<Option<DynamicObject>, kube::Error> {
        if !self.is_subresource {
            return Ok(None);
        }
        if !self.keeps_observed_generation {
            self.after["observedGeneration"] = json!(self.generation);
        }
        let Some(patch) = merge_patch::between(&self.before, &self.after) else {
            return Ok(None);
        };
        // With the resource version: a decision on stale data is refused and made again on fresh.
        let patch =
            json!({"metadata": {"resourceVersion": self.resource_version}, "status": patch});
        let written = api
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
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

    /// Returns the operator's own fields that the API server has not stored: the cluster's CRD is of a release without
    /// them.
    pub(crate) fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// Whether there is nothing to write yet.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.before == self.after
    }

    /// Whether a condition holds and what it says, if it tells of the object as it is.
    pub(crate) fn condition_of_this_generation(&self, type_: &str) -> Option<(bool, &str)> {
        conditions::get(&self.before, type_, self.generation)
    }

    /// Whether a condition stood as it is said to when the object was last read or written.
    pub(crate) fn had_condition(&self, type_: &str, holds: bool) -> bool {
        conditions::has_status(&self.before, type_, holds)
    }
}
