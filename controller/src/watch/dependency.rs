//! Watches on related objects, in addition to the reconciled objects and their children.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube::Resource;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use serde_json::{Value, json};

use crate::cache::index_entry::IndexEntry;
use crate::dynamic_object::to_value;
use crate::predicate::UpdateEvent;
use crate::watch::event_stream::Fields;

/// Reference of an object to others that it depends on, in its own namespace unless stated otherwise.
///
/// ```
/// use lockstep_controller::Reference;
/// use serde_json::{Value, json};
///
/// /// Returns the Secrets that an object names.
/// fn secrets(object: &Value) -> Vec<Reference> {
///     let names = object["spec"]["secrets"].as_array().into_iter().flatten();
///     let names = names.filter_map(Value::as_str);
///     names.map(|name| Reference::Name(name.to_owned())).collect()
/// }
///
/// let object = json!({"spec": {"secrets": ["a", "b"]}});
/// assert_eq!(secrets(&object).len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reference {
    /// The object of this name: zero or one.
    Name(String),
    /// The objects with this label: zero, one or more.
    Label(String, String),
    /// The objects that their watch [lists under this index key](Watch::index_by), in any namespace.
    IndexKey(String),
}

type References = Arc<dyn Fn(&Value) -> Vec<Reference> + Send + Sync>;
type Keys = Arc<dyn Fn(&Value) -> IndexEntry + Send + Sync>;
type Predicate = Arc<dyn Fn(&UpdateEvent<'_, DynamicObject>) -> bool + Send + Sync>;

/// Permissions that a watch needs.
const READ_VERBS: &[&str] = &["list", "watch"];

/// Permissions that a watch needs if it protects its objects.
const PROTECTS: &[&str] = &["get", "list", "patch", "watch"];

/// Watch on objects that others depend on. A change of one of them triggers a reconciliation of each object that
/// refers to it; an index finds those objects.
///
/// # Assumptions
///
/// The watch is as narrow as possible: limited by labels, and to metadata where metadata is enough. It never
/// covers all Secrets of a cluster.
///
/// ```
/// use lockstep_controller::{Reference, Watch};
/// use k8s_openapi::api::core::v1::Secret;
/// use serde_json::json;
///
/// // An object depends on the Secret that its field `spec.passwordSecret` names.
/// let secrets = Watch::new::<Secret>(|object| {
///     let name = object["spec"]["passwordSecret"].as_str();
///     let reference = name.map(|name| Reference::Name(name.to_owned()));
///     reference.into_iter().collect()
/// })
/// .label_selector("example.com/part-of=database")
/// .metadata_only();
/// assert_eq!(secrets.rbac_rule()["verbs"], json!(["list", "watch"]));
/// ```
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
    /// Returns a watch on a type. `references` returns, for an object as stored, the objects of this type that it
    /// depends on.
    ///
    /// Ten changes in another namespace than that of the object reconcile it at once, and then one in five seconds: a tenant
    /// does not keep an object busy that serves others, too.
    pub fn new<T: Resource<DynamicType = ()>>(
        references: impl Fn(&Value) -> Vec<Reference> + Send + Sync + 'static,
    ) -> Self {
        Self::dynamic(ApiResource::erase::<T>(&()), references)
    }

    /// Returns a watch on a type that has no Rust type.
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

    /// Watches only objects with these labels, as `kubectl get --selector`.
    #[must_use]
    pub fn label_selector(mut self, selector: &str) -> Self {
        self.config = self.config.labels(selector);
        self
    }

    /// Watches only objects with these fields, as `kubectl get --field-selector`.
    #[must_use]
    pub fn field_selector(mut self, selector: &str) -> Self {
        self.config = self.config.fields(selector);
        self
    }

    /// Watches only the metadata: all other fields are neither sent nor cached.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.is_metadata_only = true;
        self
    }

    /// Protects the watched objects from deletion while they are in use, with the finalizer
    /// `KIND.GROUP/in-use-protection`, named after the kind that refers to them. An object that a user deletes is kept
    /// until no object refers to it; an object that is itself being deleted counts until the controller has nothing
    /// left to do for it. Objects that the selectors exclude are not protected, and lose the finalizer when that
    /// changes: select by what does not change.
    #[must_use]
    pub fn with_in_use_protection(mut self) -> Self {
        self.is_protected = true;
        self
    }

    /// Indexes the watched objects. `keys` returns, for an object as stored, its index keys and a value that the
    /// objects that refer to one of these keys can read. The value is stored for each object: it should contain no
    /// more than is needed. An object that refers to a key is reconciled if a value under that key changes, or if
    /// an object is added to it or removed from it. An object may refer to one of its own keys.
    #[must_use]
    pub fn index_by<T: PartialEq + Send + Sync + 'static>(
        mut self,
        keys: impl Fn(&Value) -> (Vec<String>, T) + Send + Sync + 'static,
    ) -> Self {
        self.keys = Some(Arc::new(move |object| {
            let (keys, value) = keys(object);
            IndexEntry::new(keys, value)
        }));
        self
    }

    /// Ignores changes for which `predicate` returns false. If called several times, a change must pass all
    /// predicates.
    #[must_use]
    pub fn filter(
        mut self,
        predicate: impl Fn(&UpdateEvent<'_, DynamicObject>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.predicates.push(Arc::new(predicate));
        self
    }

    /// Returns the permissions that the controller needs on these objects, as an RBAC rule.
    pub fn rbac_rule(&self) -> Value {
        json!({
            "apiGroups": [self.resource.group],
            "resources": [self.resource.plural],
            "verbs": if self.is_protected { PROTECTS } else { READ_VERBS },
        })
    }

    /// Returns true if the change needs a reconciliation. If a predicate panics, every change does.
    pub(crate) fn passes_filter(&self, change: &UpdateEvent<'_, DynamicObject>) -> bool {
        let pass = || self.predicates.iter().all(|predicate| predicate(change));
        catch_unwind(AssertUnwindSafe(pass)).unwrap_or_else(|_| {
            tracing::error!(
                resource = self.resource.plural,
                "a predicate of a watch panicked; the change triggers a reconciliation"
            );
            true
        })
    }

    /// Returns the references of an object, or none if the author's function panics: one object must not end the
    /// watch of all.
    pub(crate) fn references(&self, object: &Value) -> Option<Vec<Reference>> {
        let references = || (self.references)(object);
        let references = catch_unwind(AssertUnwindSafe(references));
        if references.is_err() {
            let name = &object["metadata"]["name"];
            tracing::error!(%name, "the references of the object are unknown: the function that computes them panicked");
        }
        references.ok()
    }

    /// Returns the fields of the objects that are read.
    pub(crate) fn fields(&self) -> Fields {
        if self.is_metadata_only {
            Fields::Metadata
        } else {
            Fields::Unmanaged
        }
    }

    pub(crate) fn is_indexed(&self) -> bool {
        self.keys.is_some()
    }

    /// Returns true if this watch receives the same objects as an unfiltered watch on the type.
    pub(crate) fn watches_all_of(&self, resource: &ApiResource) -> bool {
        self.resource == *resource
            && !self.is_metadata_only
            && self.config == watcher::Config::default()
    }

    /// Returns the index keys and the value of an object. None if this watch has no index, or if the author's
    /// function panics.
    pub(crate) fn index_entry(&self, object: &DynamicObject) -> Option<IndexEntry> {
        let keys = self.keys.as_ref()?;
        let value = to_value(object).unwrap_or_default();
        let filed = catch_unwind(AssertUnwindSafe(|| keys(&value)));
        if filed.is_err() {
            let name = &value["metadata"]["name"];
            tracing::error!(%name, "the index keys of the object are unknown: the function that computes them panicked");
        }
        filed.ok()
    }
}
