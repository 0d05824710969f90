//! External IDs that annotations of Namespaces set. Each serves one Namespace: a role demands it in its trust policy, so a second
//! Namespace with the same one could use the roles of the first.
//!
//! A ConfigMap beside the controller, which only administrators can write and all replicas read, records the Namespace that had it
//! first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lockstep_cloud_database_api::EXTERNAL_ID;
use lockstep_controller::{NamedConfigMap, ReconcileError};

use crate::aws::access::NamespaceAccess;

/// Time after which an object looks again if its Namespace has the external ID alone. No call to AWS is made for it.
const AGAIN_AFTER: Duration = Duration::from_mins(1);

/// Namespaces that use external IDs of annotations. It is shared by its clones.
#[derive(Clone, Default)]
pub(crate) struct ExternalIds {
    /// UIDs of the Namespaces, by external ID.
    record: Option<NamedConfigMap>,
    /// Entries that the record has shown to this process.
    confirmed: Arc<Mutex<HashMap<String, String>>>,
}

impl ExternalIds {
    pub(crate) fn new(record: NamedConfigMap) -> Self {
        Self {
            record: Some(record),
            confirmed: Arc::default(),
        }
    }

    /// Requires that the external ID of a Namespace is its own. `all` are the Namespaces with the same one, among them this. The
    /// first that is recorded with it keeps it for as long as it has it.
    ///
    /// # Errors
    ///
    /// Another Namespace has it, or this one was only recorded now: it counts once it is read, as another replica may have written
    /// at the same time.
    pub(crate) async fn require(
        &self,
        namespace: &NamespaceAccess,
        all: &[Arc<NamespaceAccess>],
    ) -> Result<(), ReconcileError> {
        let Some(external_id) = namespace.own_external_id() else {
            return Ok(());
        };
        let uid = namespace.uid();
        if all.len() <= 1 && self.is_confirmed(external_id, uid) {
            return Ok(());
        }
        let unrecorded = |message| ReconcileError::transient("ExternalIdNotRecorded", message);
        let Some(record) = &self.record else {
            let message = "this controller has no record of external IDs".to_owned();
            return Err(unrecorded(message));
        };
        let stored = record.read().await.map_err(unrecorded)?.unwrap_or_default();
        let mut holders = stored.data.unwrap_or_default();
        let holder = holders.get(external_id);
        if holder.is_some_and(|holder| holder == uid) {
            self.confirm(external_id, uid);
            return Ok(());
        }
        let is_held = holder.is_some_and(|holder| all.iter().any(|one| one.uid() == holder));
        // Without a record, nothing says which of several was the first.
        if is_held || all.len() > 1 {
            return Err(in_use(namespace, external_id, all));
        }
        holders.insert(external_id.to_owned(), uid.to_owned());
        let mut content = ConfigMap {
            data: Some(holders),
            ..ConfigMap::default()
        };
        // The write fails if another replica has written since.
        content.metadata.resource_version = stored.metadata.resource_version;
        record.apply(content).await.map_err(unrecorded)?;
        let message = format!("the external ID '{external_id}' was recorded for the Namespace");
        Err(unrecorded(message).requeue_after(Duration::from_secs(1)))
    }

    fn is_confirmed(&self, external_id: &str, uid: &str) -> bool {
        let confirmed = self.confirmed.lock();
        let confirmed = confirmed.unwrap_or_else(PoisonError::into_inner);
        confirmed
            .get(external_id)
            .is_some_and(|holder| holder == uid)
    }

    fn confirm(&self, external_id: &str, uid: &str) {
        let confirmed = self.confirmed.lock();
        let mut confirmed = confirmed.unwrap_or_else(PoisonError::into_inner);
        confirmed.insert(external_id.to_owned(), uid.to_owned());
    }
}

fn in_use(
    namespace: &NamespaceAccess,
    external_id: &str,
    all: &[Arc<NamespaceAccess>],
) -> ReconcileError {
    let others = all.iter().filter(|other| other.uid() != namespace.uid());
    let mut others: Vec<_> = others.map(|other| format!("'{}'", other.name())).collect();
    others.sort_unstable();
    let message = format!(
        "the external ID '{external_id}' is also the one of the Namespace {}, whose roles this Namespace must not use; AWS was not called. An administrator has to give one of them another value in the annotation {EXTERNAL_ID}, and in the trust policies of its roles",
        others.join(", ")
    );
    ReconcileError::permanent("ExternalIdInUse", message).requeue_after(AGAIN_AFTER)
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use http::{Method, Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    fn namespace(name: &str) -> Arc<NamespaceAccess> {
        Arc::new(NamespaceAccess::of(&json!({"metadata": {
            "name": name, "uid": name, "annotations": {EXTERNAL_ID: "lockstep-shop"},
        }})))
    }

    /// API server with one ConfigMap.
    #[derive(Clone, Default)]
    struct Stored(Arc<Mutex<Option<Value>>>);

    impl Stored {
        /// Returns what a process that has just started knows.
        fn external_ids(&self) -> ExternalIds {
            let stored = self.clone();
            let server = tower::service_fn(move |request: Request<Body>| {
                let stored = stored.clone();
                async move { Ok::<_, std::io::Error>(stored.answer(request).await) }
            });
            let client = Client::new(server, "lockstep-system");
            ExternalIds::new(NamedConfigMap::new(
                client,
                "lockstep-system",
                "ids",
                "test",
            ))
        }

        async fn answer(&self, request: Request<Body>) -> Response<Body> {
            let is_write = *request.method() == Method::PATCH;
            let body = request.into_body().collect_bytes().await;
            let mut stored = self.0.lock().expect("a lock");
            let version = stored
                .as_ref()
                .map(|stored| stored["metadata"]["resourceVersion"].clone());
            let mut code = if stored.is_some() || is_write {
                200
            } else {
                404
            };
            if is_write {
                let mut content: Value =
                    serde_json::from_slice(&body.expect("a body")).expect("JSON");
                let expected = content["metadata"]["resourceVersion"].clone();
                if !expected.is_null() && Some(&expected) != version.as_ref() {
                    code = 409;
                } else {
                    let next = version
                        .and_then(|version| version.as_str()?.parse::<u32>().ok())
                        .unwrap_or(0)
                        + 1;
                    content["metadata"]["resourceVersion"] = json!(next.to_string());
                    *stored = Some(content);
                }
            }
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "", "reason": if code == 404 { "NotFound" } else { "Conflict" }});
            let body = stored.clone().filter(|_| code == 200).unwrap_or(status);
            let body = Body::from(body.to_string().into_bytes());
            Response::builder()
                .status(code)
                .body(body)
                .expect("a response")
        }
    }

    async fn reason(
        ids: &ExternalIds,
        one: &Arc<NamespaceAccess>,
        all: &[Arc<NamespaceAccess>],
    ) -> Option<&'static str> {
        let mut result = ids.require(one, all).await;
        if result
            .as_ref()
            .is_err_and(|error| error.reason() == "ExternalIdNotRecorded")
        {
            result = ids.require(one, all).await;
        }
        result.err().map(|error| error.reason())
    }

    #[tokio::test]
    async fn the_first_namespace_keeps_its_external_id_while_it_has_it() {
        let stored = Stored::default();
        let ids = stored.external_ids();
        let (first, second) = (namespace("first"), namespace("second"));
        let both = [second.clone(), first.clone()];
        let recorded = ids.require(&first, from_ref(&first)).await;
        let recorded = recorded.expect_err("it is read before it counts");
        assert_eq!(recorded.reason(), "ExternalIdNotRecorded");
        assert_eq!(reason(&ids, &first, from_ref(&first)).await, None);
        let denied = ids.require(&second, &both).await;
        let denied = denied.expect_err("another has it");
        assert_eq!(denied.reason(), "ExternalIdInUse");
        assert!(denied.to_string().contains("'first'"), "{denied}");
        // The same in a process that has just started.
        for ids in [&ids, &stored.external_ids()] {
            assert_eq!(reason(ids, &second, &both).await, Some("ExternalIdInUse"));
            assert_eq!(reason(ids, &first, &both).await, None);
        }
        // The first has given it up, or is gone.
        assert_eq!(reason(&ids, &second, from_ref(&second)).await, None);
        assert_eq!(reason(&ids, &first, &both).await, Some("ExternalIdInUse"));
    }

    #[tokio::test]
    async fn of_two_replicas_that_record_at_the_same_time_one_goes_on() {
        let stored = Stored::default();
        let (first, second) = (namespace("first"), namespace("second"));
        let both = [second.clone(), first.clone()];
        let (one, other) = (stored.external_ids(), stored.external_ids());
        assert_eq!(reason(&one, &first, &both).await, Some("ExternalIdInUse"));
        // Each replica knows one of them.
        assert!(one.require(&first, from_ref(&first)).await.is_err());
        assert!(other.require(&second, from_ref(&second)).await.is_err());
        let reasons = [
            reason(&one, &first, &both).await,
            reason(&other, &second, &both).await,
        ];
        assert_eq!(reasons, [Some("ExternalIdInUse"), None]);
    }
}
