//! Cached objects for unit tests of reconcilers.

use std::sync::Arc;

use kube::api::DynamicObject;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::api::reconciler::Reconciler;
use crate::api::request::{Children, SyncRequest};
use crate::cache::object_key::ObjectKey;
use crate::cache::related::{RelatedCache, RelatedObjects};
use crate::children::key::ChildKey;
use crate::children::{ChildMap, OwnedType};
use crate::predicate::UpdateEvent;
use crate::watch::dependency::Watch;

/// Children and related objects of one object, for a test that calls a reconciler without an API server.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use lockstep_controller::{
///     FakeCache, ReconcileError, Reconciler, Reference, SyncReconciler, SyncRequest, SyncResponse,
///     Watch,
/// };
/// use serde_json::json;
/// # use lockstep_shared_validation::ValidatedResource;
/// # #[derive(serde::Deserialize)]
/// # struct Site {}
/// # impl ValidatedResource for Site {
/// #     const GROUP: &'static str = "example.com";
/// #     const VERSION: &'static str = "v1";
/// #     const KIND: &'static str = "Site";
/// #     fn crd() -> serde_json::Value { json!({}) }
/// #     fn example() -> serde_json::Value { json!({}) }
/// # }
///
/// fn sync(request: &SyncRequest<'_, Site>) -> Result<SyncResponse, ReconcileError> {
///     let pages: Option<ConfigMap> = request.related().get("pages")?;
///     SyncResponse::new().status(&json!({"hasPages": pages.is_some()}))
/// }
///
/// let watch = Watch::new::<ConfigMap>(|_| vec![Reference::Name("pages".to_owned())]);
/// let operator = SyncReconciler::new(sync).watches_all([watch]);
/// let cache = FakeCache::of(&operator).related(&json!({
///     "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pages", "namespace": "shop"},
/// }));
/// let (site, raw) = (Site {}, json!({"metadata": {"name": "a", "namespace": "shop"}}));
/// let request = SyncRequest::of(&site, &raw).with_cache(&cache);
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let output = operator.reconcile(&request).await?;
/// assert_eq!(output.status["hasPages"], true);
/// # Ok::<(), ReconcileError>(())
/// # }).unwrap();
/// ```
#[derive(Default)]
pub struct FakeCache {
    owned_types: Vec<OwnedType>,
    children: ChildMap,
    watches: Vec<Watch>,
    related: Vec<RelatedCache>,
}

impl FakeCache {
    /// Returns the caches of a reconciler without objects.
    pub fn of(reconciler: &impl Reconciler) -> Self {
        let watches = reconciler.watches();
        Self {
            owned_types: reconciler.owns(),
            children: ChildMap::new(),
            related: watches.iter().map(|_| RelatedCache::default()).collect(),
            watches,
        }
    }

    /// Adds a child, with its `apiVersion` and `kind`.
    ///
    /// # Panics
    ///
    /// If the reconciler owns no such type, or if this is not an object.
    #[must_use]
    pub fn child(mut self, child: &impl Serialize) -> Self {
        let child = object(child);
        let (api_version, kind) = type_of(&child);
        let mut types = self.owned_types.iter();
        let at = types.position(|type_| type_.is(api_version, kind));
        let at = at.unwrap_or_else(|| {
            panic!("the reconciler does not own objects of the type {api_version} {kind}")
        });
        self.children
            .insert(ChildKey::of(at, &child), Arc::new(child));
        self
    }

    /// Adds a related object, with its `apiVersion`, `kind` and namespace, to the cache of each watch on its type. The selectors
    /// of a watch are not evaluated: the object is one that they select. Of an object whose watch is on metadata only, only the
    /// metadata is added.
    ///
    /// # Panics
    ///
    /// If the reconciler has no watch on the type, or if this is not an object.
    #[must_use]
    pub fn related(self, related: &impl Serialize) -> Self {
        let related = Arc::new(object(related));
        let (api_version, kind) = type_of(&related);
        let mut is_watched = false;
        for (watch, cache) in self.watches.iter().zip(&self.related) {
            if watch.resource.api_version == api_version && watch.resource.kind == kind {
                let mut delivered = Arc::clone(&related);
                if watch.is_metadata_only {
                    Arc::make_mut(&mut delivered).data = Value::Object(Map::new());
                }
                let stored = cache.store.compress(&delivered);
                cache.store.put(ObjectKey::of(&delivered), stored);
                let (before, after) = (None, Some(&delivered));
                cache.on_change(watch, &UpdateEvent { before, after });
                is_watched = true;
            }
        }
        assert!(
            is_watched,
            "the reconciler does not watch objects of the type {api_version} {kind}"
        );
        self
    }

    pub(crate) fn children(&self) -> Children<'_> {
        Children {
            children: &self.children,
        }
    }

    /// Returns the related objects for an object in a namespace.
    pub(crate) fn related_objects<'a>(&'a self, namespace: &'a str) -> RelatedObjects<'a> {
        RelatedObjects {
            watches: &self.watches,
            watched: &self.related,
            namespace,
        }
    }
}

impl<'a, K> SyncRequest<'a, K> {
    /// Sets the children and the related objects, for tests that call a reconciler without an API server.
    #[must_use]
    pub fn with_cache(self, cache: &'a FakeCache) -> Self {
        let namespace = self.raw["metadata"]["namespace"].as_str();
        Self {
            children: cache.children(),
            related: cache.related_objects(namespace.unwrap_or_default()),
            ..self
        }
    }
}

fn object(value: &impl Serialize) -> DynamicObject {
    let object = serde_json::to_value(value).and_then(serde_json::from_value);
    object.unwrap_or_else(|error| panic!("this is not an object: {error}"))
}

fn type_of(object: &DynamicObject) -> (&str, &str) {
    let types = object.types.as_ref();
    types.map_or(("", ""), |types| (&types.api_version, &types.kind))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use lockstep_shared_validation::ValidatedResource;
    use serde_json::json;

    use super::*;
    use crate::api::error::ReconcileError;
    use crate::api::sync::{SyncReconciler, SyncResponse};

    #[derive(serde::Deserialize)]
    struct Site {}

    impl ValidatedResource for Site {
        const GROUP: &'static str = "example.com";
        const VERSION: &'static str = "v1";
        const KIND: &'static str = "Site";

        fn crd() -> Value {
            json!({})
        }

        fn example() -> Value {
            json!({})
        }
    }

    /// Returns the objects that it reads as its status.
    fn sync(request: &SyncRequest<'_, Site>) -> Result<SyncResponse, ReconcileError> {
        let secret: Option<Secret> = request.related().get("login")?;
        let config_map: Option<ConfigMap> = request.children().get("pages")?;
        SyncResponse::new().status(&json!({
            "login": secret.map(|secret| secret.type_), "pages": config_map.map(|it| it.data),
        }))
    }

    fn operator() -> impl Reconciler<Kind = Site> {
        SyncReconciler::new(sync)
            .owns([OwnedType::namespaced::<ConfigMap>()])
            .watches_all([Watch::new::<Secret>(|_| Vec::new())])
    }

    async fn status(cache: &FakeCache) -> Value {
        let (site, raw) = (
            Site {},
            json!({"metadata": {"name": "a", "namespace": "n"}}),
        );
        let request = SyncRequest::of(&site, &raw).with_cache(cache);
        let output = operator().reconcile(&request).await;
        json!(output.expect("the desired state").status)
    }

    #[tokio::test]
    async fn a_reconciler_reads_the_added_objects() {
        let none = FakeCache::of(&operator());
        assert_eq!(status(&none).await, json!({"login": null, "pages": null}));
        let secret = |namespace: &str| {
            json!({
                "apiVersion": "v1", "kind": "Secret", "type": "t", "metadata": {"name": "login", "namespace": namespace},
            })
        };
        let metadata = json!({"name": "pages", "namespace": "n"});
        let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}});
        let both = FakeCache::of(&operator())
            .related(&secret("n"))
            .child(&config_map);
        assert_eq!(
            status(&both).await,
            json!({"login": "t", "pages": {"a": "b"}})
        );
        let elsewhere = FakeCache::of(&operator()).related(&secret("other"));
        assert_eq!(status(&elsewhere).await["login"], Value::Null);
    }

    #[tokio::test]
    async fn a_watch_on_metadata_delivers_no_more() {
        let watch = Watch::new::<Secret>(|_| Vec::new()).metadata_only();
        let operator = SyncReconciler::new(sync).watches_all([watch]);
        let cache = FakeCache::of(&operator).related(&json!({
            "apiVersion": "v1", "kind": "Secret", "type": "t", "metadata": {"name": "login", "namespace": "n"},
        }));
        let found: Option<Secret> = cache
            .related_objects("n")
            .get("login")
            .expect("it is watched");
        assert_eq!(found.map(|secret| secret.type_), Some(None));
    }

    #[test]
    #[should_panic(expected = "does not watch objects of the type v1 ConfigMap")]
    fn an_object_that_no_watch_would_deliver_is_an_error() {
        let config_map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let _ = FakeCache::of(&operator()).related(&config_map);
    }
}
