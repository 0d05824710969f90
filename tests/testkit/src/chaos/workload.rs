//! Users of one trial: they create, change and delete objects, and other clients change what belongs to them.

mod other_owners;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use fastrand::Rng;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::TypeMeta;
use serde_json::{Value, json};

use crate::chaos::expectations::contains;
use crate::chaos::owned_objects::{self, value_of};
use crate::chaos::related_objects::RelatedObjects;
use crate::chaos::trial_state::TrialState;

/// Names of the objects. None is the beginning of another one.
const NAMES: [&str; 4] = ["alpha", "bravo", "charlie", "delta"];

/// Object as its users want it.
#[derive(Default)]
pub(crate) struct Wanted {
    /// None: it is not to exist.
    pub(crate) spec: Option<Value>,
    /// Ids of resources of others that are where the object wants its own.
    pub(crate) occupied_by: Vec<String>,
}

/// Users of one trial.
pub(crate) struct Workload {
    pub(crate) trial: Arc<TrialState>,
    pub(crate) api: Api<DynamicObject>,
    pub(crate) types: TypeMeta,
    pub(crate) random: Rng,
    pub(crate) wanted: BTreeMap<String, Wanted>,
    /// Contents that others have set in their resources, by the ids of these.
    pub(crate) foreign: BTreeMap<String, Value>,
    pub(crate) related: RelatedObjects,
    /// Number of resources that others have created: each has a name of its own.
    occupations: usize,
    /// Earlier contents of resources, by their ids.
    history: HashMap<String, Vec<Value>>,
    /// Names by the UIDs of all objects that have existed.
    pub(crate) names: HashMap<String, String>,
}

impl Workload {
    /// Returns users that want nothing yet.
    pub(crate) fn new(
        trial: Arc<TrialState>,
        api: Api<DynamicObject>,
        resource: &ApiResource,
        seed: u64,
    ) -> Self {
        let names = NAMES
            .iter()
            .map(|name| ((*name).to_owned(), Wanted::default()));
        Self {
            related: RelatedObjects::new(&trial, &api),
            trial,
            api,
            types: TypeMeta {
                api_version: resource.api_version.clone(),
                kind: resource.kind.clone(),
            },
            random: Rng::with_seed(seed),
            wanted: names.collect(),
            foreign: BTreeMap::new(),
            occupations: 0,
            history: HashMap::new(),
            names: HashMap::new(),
        }
    }

    /// Returns the names of all objects.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        NAMES.into_iter()
    }

    /// Removes what a failed trial has left of a cluster-scoped kind.
    pub(crate) async fn remove_leftovers(&self) {
        for name in Self::names() {
            let released = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let params = PatchParams::default();
            // Most do not exist.
            let _ = self.api.patch(name, &params, &released).await;
            let _ = self.api.delete(name, &DeleteParams::default()).await;
        }
    }

    /// Does something to a random object, and returns its name.
    pub(crate) async fn act(&mut self) -> &'static str {
        let name = NAMES[self.random.usize(..NAMES.len())];
        self.act_on(name).await;
        name
    }

    /// Does something to an object.
    pub(crate) async fn act_on(&mut self, name: &str) {
        self.remember().await;
        let wanted = &self.wanted[name];
        if wanted.spec.is_none() {
            return self.create(name).await;
        }
        if let Some(id) = wanted.occupied_by.first().cloned() {
            if self.random.bool() {
                self.vacate(name, &id).await;
            } else {
                self.delete(name).await;
            }
            return;
        }
        if self.related.is_any() && self.random.u32(..4) == 0 {
            let object = self.object(name, wanted.spec.as_ref());
            return self.related.disturb(&mut self.random, &object).await;
        }
        match self.random.u32(..10) {
            0..=3 => self.change(name).await,
            4..=5 => self.delete(name).await,
            6..=7 => self.drift(name).await,
            _ => self.tamper(name).await,
        }
    }

    /// Creates a random object or changes its spec.
    pub(crate) async fn create_or_change_any(&mut self) {
        let name = NAMES[self.random.usize(..NAMES.len())];
        let wanted = &self.wanted[name];
        if wanted.spec.is_none() {
            self.create(name).await;
        } else if wanted.occupied_by.is_empty() {
            self.change(name).await;
        }
    }

    /// Changes the spec of an object or deletes it, if it exists.
    pub(crate) async fn change_or_delete(&mut self, name: &str) {
        let Some(wanted) = self.wanted.get(name).filter(|it| it.spec.is_some()) else {
            return;
        };
        if wanted.occupied_by.is_empty() && self.random.bool() {
            self.change(name).await;
        } else {
            self.delete(name).await;
        }
    }

    /// Creates an object, unless one of this name is still being deleted. Sometimes what it wants is already there, and
    /// belongs to another owner.
    pub(crate) async fn create(&mut self, name: &str) {
        if self.stored(name).await.is_some() {
            return;
        }
        for id in self.wanted[name].occupied_by.clone() {
            self.vacate(name, &id).await;
        }
        let spec = (self.trial.expectations.spec)(&mut self.random, name);
        if self.random.u32(..6) == 0 {
            self.occupy(name, &spec).await;
        }
        self.apply(name, spec, "create").await;
    }

    /// Creates an object that wants what belongs to another owner. Returns false if the system does not know owners.
    pub(crate) async fn create_where_occupied(&mut self, name: &str) -> bool {
        let spec = (self.trial.expectations.spec)(&mut self.random, name);
        self.occupy(name, &spec).await;
        self.apply(name, spec, "create").await;
        !self.wanted[name].occupied_by.is_empty()
    }

    /// Creates an object whose place is free, unless one of this name is still being deleted.
    pub(crate) async fn create_where_free(&mut self, name: &str) {
        if self.stored(name).await.is_none() {
            let spec = (self.trial.expectations.spec)(&mut self.random, name);
            self.apply(name, spec, "create").await;
        }
    }

    /// Gives an object another spec.
    pub(crate) async fn change(&mut self, name: &str) {
        let spec = (self.trial.expectations.spec)(&mut self.random, name);
        self.apply(name, spec, "change").await;
    }

    async fn apply(&mut self, name: &str, spec: Value, verb: &str) {
        // What an object refers to may come before or after it.
        let is_related_first = self.related.is_any() && self.random.bool();
        let referrer = self.object(name, Some(&spec));
        if is_related_first {
            self.related.provide(&mut self.random, &referrer).await;
        }
        self.note(name, &format!("user: {verb} {name} {spec}"));
        let object = json!({
            "apiVersion": self.types.api_version, "kind": self.types.kind,
            "metadata": {"name": name}, "spec": spec,
        });
        let params = PatchParams::apply("chaos-user").force();
        let stored = self.api.patch(name, &params, &Patch::Apply(object)).await;
        let stored = match stored {
            Ok(stored) => stored,
            // A rule for changes denies it: the object stays as it was.
            Err(kube::Error::Api(status)) if status.code == 422 && verb == "change" => {
                return;
            }
            Err(error) => panic!("the spec {spec} is not valid: {error}"),
        };
        self.names
            .insert(stored.uid().unwrap_or_default(), name.to_owned());
        self.trial.record_spec(&value_of(&stored));
        self.wanted.entry(name.to_owned()).or_default().spec = Some(spec);
        if !is_related_first {
            self.related.provide(&mut self.random, &referrer).await;
        }
    }

    /// Changes, or deletes and restores, the objects to which an object refers.
    pub(crate) async fn disturb_related(&mut self, name: &str) {
        let spec = self.wanted[name].spec.as_ref();
        if spec.is_some() {
            let object = self.object(name, spec);
            self.related.disturb(&mut self.random, &object).await;
        }
    }

    /// Returns an object as its users write it.
    fn object(&self, name: &str, spec: Option<&Value>) -> Value {
        let mut object = json!({
            "apiVersion": self.types.api_version, "kind": self.types.kind,
            "metadata": {"name": name}, "spec": spec,
        });
        if let Some(namespace) = self.api.namespace() {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    }

    /// Deletes an object.
    pub(crate) async fn delete(&mut self, name: &str) {
        self.note(name, &format!("user: delete {name}"));
        let deleted = self.api.delete(name, &DeleteParams::default()).await;
        match deleted {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => panic!("{name} cannot be deleted: {error}"),
        }
        // What occupies its place stays, and belongs to another owner.
        self.wanted.entry(name.to_owned()).or_default().spec = None;
    }

    /// Removes or changes a resource of an object behind the operator's back, if there is one.
    pub(crate) async fn drift(&mut self, name: &str) {
        let Some(object) = self.stored(name).await else {
            return;
        };
        let expected = (self.trial.expectations.external)(&object);
        let resources = self.trial.resources().await;
        let is_of_object = |resource: &&(String, Value)| {
            let content = &resource.1;
            expected.iter().any(|expected| contains(content, expected))
        };
        let resources: Vec<_> = resources.into_iter().collect();
        let of_object: Vec<_> = resources.iter().filter(is_of_object).collect();
        if of_object.is_empty() {
            return;
        }
        let (id, content) = of_object[self.random.usize(..of_object.len())];
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        // What an earlier object of this name had belongs to another owner.
        let is_owned = |content: &Value| content.to_string().contains(uid);
        let earlier = self.history.get(id).into_iter().flatten();
        let earlier = earlier.filter(|it| *it != content && is_owned(it) == is_owned(content));
        let mut earlier: Vec<_> = earlier.cloned().collect();
        let replacement = match self.random.u32(..3) {
            0 => None,
            1 if !earlier.is_empty() => {
                Some(earlier.swap_remove(self.random.usize(..earlier.len())))
            }
            _ => self.trial.system.drifted(content, &mut self.random),
        };
        let shown = replacement.clone().unwrap_or(Value::Null);
        self.note(
            name,
            &format!("another client: set {id} of {name} to {shown}"),
        );
        self.trial.disturb(name, id, replacement).await;
    }

    /// Deletes or changes an owned object behind the operator's back.
    pub(crate) async fn tamper(&mut self, name: &str) {
        let Some(object) = self.stored(name).await else {
            return;
        };
        let mut owned = (self.trial.expectations.owned)(&object);
        if owned.is_empty() {
            return;
        }
        let child = owned.swap_remove(self.random.usize(..owned.len()));
        let child_name = child["metadata"]["name"].as_str().unwrap_or_default();
        let api = owned_objects::api(&self.api, &owned_objects::resource(&child), &child);
        self.note(
            name,
            &format!("another client: delete {child_name} of {name}"),
        );
        // By default, a Job would wait for the garbage collector.
        match api.delete(child_name, &DeleteParams::background()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => panic!("{child_name} cannot be deleted: {error}"),
        }
    }

    /// Remembers the contents of the resources, so that they can be restored later.
    async fn remember(&mut self) {
        for (id, content) in self.trial.resources().await {
            let earlier = self.history.entry(id).or_default();
            if !earlier.contains(&content) {
                earlier.push(content);
            }
        }
    }

    async fn stored(&self, name: &str) -> Option<Value> {
        let stored = self
            .api
            .get_opt(name)
            .await
            .expect("the API server answers");
        stored.map(|stored| value_of(&stored))
    }

    fn note(&self, name: &str, text: &str) {
        let journal = &self.trial.journal;
        journal.add(None, &[name.to_owned()], text.to_owned());
    }
}
