//! Objects to which the objects of a trial refer. Other clients manage them.

use std::sync::Arc;

use fastrand::Rng;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use serde_json::Value;

use crate::chaos::owned_objects;
use crate::chaos::owned_objects::value_of;
use crate::chaos::trial_state::TrialState;

/// Objects to which the objects of a trial refer.
pub(crate) struct RelatedObjects {
    trial: Arc<TrialState>,
    /// API of the objects that refer to them.
    referrers: Api<DynamicObject>,
    /// Objects that were created in this trial.
    known: Vec<Value>,
}

impl RelatedObjects {
    pub(crate) fn new(trial: &Arc<TrialState>, referrers: &Api<DynamicObject>) -> Self {
        Self {
            trial: Arc::clone(trial),
            referrers: referrers.clone(),
            known: Vec::new(),
        }
    }

    /// Returns true if the objects refer to others.
    pub(crate) fn is_any(&self) -> bool {
        self.trial.expectations.related.is_some()
    }

    /// Returns the objects that were created in this trial.
    pub(crate) fn known(&self) -> &[Value] {
        &self.known
    }

    /// Creates what an object refers to, or gives it other contents.
    pub(crate) async fn provide(&mut self, random: &mut Rng, referrer: &Value) {
        for object in self.of(random, referrer) {
            self.apply(referrer, object).await;
        }
    }

    /// Gives what an object refers to other contents, sometimes after it was deleted.
    pub(crate) async fn disturb(&mut self, random: &mut Rng, referrer: &Value) {
        for object in self.of(random, referrer) {
            if random.bool() {
                self.delete(referrer, &object).await;
            }
            self.apply(referrer, object).await;
        }
    }

    /// Returns the objects in their current state.
    pub(crate) async fn list(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for object in &self.known {
            let (api, name) = self.api(object);
            let stored = api.get_opt(name).await.expect("the API server answers");
            all.extend(stored.as_ref().map(value_of));
        }
        all
    }

    fn of(&self, random: &mut Rng, referrer: &Value) -> Vec<Value> {
        let related = self.trial.expectations.related.as_ref();
        related.map_or_else(Vec::new, |of| of(random, referrer))
    }

    async fn apply(&mut self, referrer: &Value, object: Value) {
        self.note("set", referrer, &object);
        let (api, name) = self.api(&object);
        let params = PatchParams::apply("chaos-user").force();
        let applied = api.patch(name, &params, &Patch::Apply(&object)).await;
        if let Err(error) = applied {
            panic!("the related object {object} cannot be stored: {error}");
        }
        let is_same = |known: &Value| {
            [
                "/apiVersion",
                "/kind",
                "/metadata/name",
                "/metadata/namespace",
            ]
            .iter()
            .all(|field| known.pointer(field) == object.pointer(field))
        };
        if !self.known.iter().any(is_same) {
            self.known.push(object);
        }
    }

    /// Deletes an object, unless a finalizer would keep it: it could not be restored then.
    async fn delete(&self, referrer: &Value, object: &Value) {
        let (api, name) = self.api(object);
        let stored = api.get_opt(name).await.expect("the API server answers");
        let Some(stored) = stored.filter(|stored| stored.finalizers().is_empty()) else {
            return;
        };
        self.note("delete", referrer, object);
        let unchanged = Preconditions {
            resource_version: stored.metadata.resource_version,
            uid: stored.metadata.uid,
        };
        let params = DeleteParams::default().preconditions(unchanged);
        match api.delete(name, &params).await {
            Ok(_) => {}
            // The operator has added a finalizer.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => panic!("the related object {object} cannot be deleted: {error}"),
        }
    }

    fn api<'a>(&self, object: &'a Value) -> (Api<DynamicObject>, &'a str) {
        let resource = owned_objects::resource(object);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        (owned_objects::api(&self.referrers, &resource, object), name)
    }

    fn note(&self, verb: &str, referrer: &Value, object: &Value) {
        let of = referrer["metadata"]["name"].as_str().unwrap_or_default();
        let text = format!("another client: {verb} the related object {object} of {of}");
        self.trial.journal.add(None, &[of.to_owned()], text);
    }
}
