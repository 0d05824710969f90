//! What else is watched for an operator, besides its objects and their children.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube::Resource;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use serde_json::{Value, json};

use crate::filed::IndexEntry;
use crate::predicate::UpdateEvent;

/// What an object says of others that it depends on, in its own namespace if nothing else is said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reference {
    /// The one of this name: there is none of it, or one.
    Name(String),
    /// Those that carry this label: none, one, or many.
    Label(String, String),
    /// Those that their watch [finds under this key](Watch::keyed), in whatever namespace.
    IndexKey(String),
}

type References = Arc<dyn Fn(&Value) -> Vec<Reference> + Send + Sync>;
type Keys = Arc<dyn Fn(&Value) -> IndexEntry + Send + Sync>;
type Predicate = Arc<dyn Fn(&UpdateEvent<'_, DynamicObject>) -> bool + Send + Sync>;

/// What a watch has to do with what it watches.
const LOOKS: &[&str] = &["list", "watch"];

/// The same, of one that protects.
const PROTECTS: &[&str] = &["get", "list", "patch", "watch"];

/// A watch on objects that others depend on: a change of one leads to a round for each object that refers to
/// it, found through an index.
///
/// # Assumptions
///
/// The watch is as narrow as it can be: by labels, and of the metadata where those are enough. Never all
/// Secrets of a cluster.
#[derive(Clone)]
pub struct Watch {
    pub(crate) resource: ApiResource,
    pub(crate) config: watcher::Config,
    pub(crate) is_metadata_only: bool,
    pub(crate) is_protected: bool,
    predicates: Vec<Predicate>,
    references: References,
    keys: Option<Keys>,
}

impl Watch {
    /// A watch on a type. `references` says of an object, as stored, which others of this type it depends on.
    pub fn new<T: Resource<DynamicType = ()>>(
        references: impl Fn(&Value) -> Vec<Reference> + Send + Sync + 'static,
    ) -> Self {
        Self::dynamic(ApiResource::erase::<T>(&()), references)
    }

    /// A watch on a type that has no Rust type.
    pub fn dynamic(
        resource: ApiResource,
        references: impl Fn(&Value) -> Vec<Reference> + Send + Sync + 'static,
    ) -> Self {
        Self {
            resource,
            config: watcher::Config::default(),
            is_metadata_only: false,
            is_protected: false,
            predicates: Vec::new(),
            references: Arc::new(references),
            keys: None,
        }
    }

    /// Only objects with these labels, as in `kubectl get --selector`.
    #[must_use]
    pub fn label_selector(mut self, selector: &str) -> Self {
        self.config = self.config.labels(selector);
        self
    }

    /// Only objects with these fields, as in `kubectl get --field-selector`.
    #[must_use]
    pub fn field_selector(mut self, selector: &str) -> Self {
        self.config = self.config.fields(selector);
        self
    }

    /// Only their metadata: what else they hold is neither sent nor kept.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.is_metadata_only = true;
        self
    }

    /// Keeps what is referred to, once somebody deletes it, until nothing refers to it any more, nor has anything
    /// left to do that did: with a finalizer, `KIND.GROUP/in-use`, of the kind that refers to it. What selectors
    /// leave out is not kept, and is let go when it comes to that; select by what does not change.
    #[must_use]
    pub fn with_in_use_protection(mut self) -> Self {
        self.is_protected = true;
        self
    }

    /// Finds what is watched under keys that are told of each object, as stored, with what there is to tell of the
    /// object to whoever refers to one of them. This is held ready for each object: it should be no more than is
    /// needed. Whoever refers to a key has a round when this, or who is found there, is not as it was. An object may
    /// well refer to a key that it is found under itself.
    #[must_use]
    pub fn index_by<T: PartialEq + Send + Sync + 'static>(
        mut self,
        keys: impl Fn(&Value) -> (Vec<String>, T) + Send + Sync + 'static,
    ) -> Self {
        self.keys = Some(Arc::new(move |object| {
            let (keys, told) = keys(object);
            IndexEntry::new(keys, told)
        }));
        self
    }

    /// Only changes that are worth a round. Given twice, a change must pass both.
    #[must_use]
    pub fn filter(
        mut self,
        predicate: impl Fn(&UpdateEvent<'_, DynamicObject>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.predicates.push(Arc::new(predicate));
        self
    }

    /// What the loop may have to do with them, as an RBAC rule.
    pub fn rbac_rule(&self) -> Value {
        json!({
            "apiGroups": [self.resource.group],
            "resources": [self.resource.plural],
            "verbs": if self.is_protected { PROTECTS } else { LOOKS },
        })
    }

    /// Where a predicate panics, every change is worth one.
    pub(crate) fn passes_filter(&self, change: &UpdateEvent<'_, DynamicObject>) -> bool {
        let pass = || self.predicates.iter().all(|predicate| predicate(change));
        catch_unwind(AssertUnwindSafe(pass)).unwrap_or_else(|_| {
            tracing::error!(
                resource = self.resource.plural,
                "a predicate of a watch panicked"
            );
            true
        })
    }

    /// None where the author's function panics: one object must not end the watch of all.
    pub(crate) fn references(&self, object: &Value) -> Option<Vec<Reference>> {
        let references = || (self.references)(object);
        let references = catch_unwind(AssertUnwindSafe(references));
        if references.is_err() {
            let name = &object["metadata"]["name"];
            tracing::error!(%name, "what the object refers to cannot be told: that panicked");
        }
        references.ok()
    }

    pub(crate) fn is_indexed(&self) -> bool {
        self.keys.is_some()
    }

    /// Whether it brings the very objects of a type that somebody watches who leaves nothing out.
    pub(crate) fn watches_all_of(&self, resource: &ApiResource) -> bool {
        self.resource == *resource
            && !self.is_metadata_only
            && self.config == watcher::Config::default()
    }

    /// What an object is found under, with what is told of it there. None where the watch finds nothing so, or the
    /// author's function panics.
    pub(crate) fn index_entry(&self, object: &DynamicObject) -> Option<IndexEntry> {
        let keys = self.keys.as_ref()?;
        let value = serde_json::to_value(object).unwrap_or_default();
        let filed = catch_unwind(AssertUnwindSafe(|| keys(&value)));
        if filed.is_err() {
            let name = &value["metadata"]["name"];
            tracing::error!(%name, "what the object is found under cannot be told: that panicked");
        }
        filed.ok()
    }
}
