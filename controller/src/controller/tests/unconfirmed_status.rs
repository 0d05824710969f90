//! Status writes without an answer, while the cache still has the status before them.

use std::sync::Mutex;

use crate::controller::tests::*;
use crate::reconcile::reconcile;

#[derive(Deserialize)]
struct Report {}

impl ValidatedResource for Report {
    const GROUP: &'static str = "example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Report";

    fn crd() -> Value {
        let mut crd = Trap::crd();
        crd["spec"]["names"] = json!({"kind": "Report", "plural": "reports"});
        crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
        crd
    }

    fn example() -> Value {
        json!({})
    }
}

/// Fails once.
struct FailsOnce(Mutex<bool>);

#[async_trait]
impl Reconciler for FailsOnce {
    type Kind = Report;

    async fn reconcile(
        &self,
        _: &SyncRequest<'_, Report>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        if std::mem::take(&mut *self.0.lock().expect("no panic under the lock")) {
            return Err(ReconcileError::Transient {
                reason: "Failed",
                message: "on purpose".to_owned(),
            });
        }
        Ok(ReconcileOutput::default())
    }

    async fn finalize(&self, _: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        Ok(FinalizeOutcome::Done)
    }
}

/// Returns a client whose server stores statuses, but loses the answer of the second write, and the patches that it got.
fn server(stored: DynamicObject) -> (Client, Arc<Mutex<Vec<Value>>>) {
    let patches = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&patches);
    let stored = Arc::new(Mutex::new(serde_json::to_value(stored).expect("JSON")));
    let server = tower::service_fn(move |request: http::Request<Body>| {
        let (seen, stored) = (Arc::clone(&seen), Arc::clone(&stored));
        async move {
            if request.method() != http::Method::PATCH {
                return Err(std::io::Error::other("an Event"));
            }
            let body = request.into_body().collect_bytes().await.expect("a body");
            let patch: Value = serde_json::from_slice(&body).expect("JSON");
            let mut seen = seen.lock().expect("no panic under the lock");
            let mut stored = stored.lock().expect("no panic under the lock");
            let version = &mut stored["metadata"]["resourceVersion"];
            let is_current = patch["metadata"]["resourceVersion"] == *version;
            let changes = patch["status"] != json!({});
            seen.push(patch.clone());
            if !is_current {
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict",
                    "code": 409, "message": "the object has been modified",
                });
                let response = http::Response::builder().status(409);
                return Ok(response
                    .body(Body::from(status.to_string().into_bytes()))
                    .expect("a response"));
            }
            if changes {
                *version = json!(format!("{}", seen.len() + 1));
                json_patch::merge(&mut stored["status"], &patch["status"]);
            }
            if seen.len() == 2 {
                return Err(std::io::Error::other("the answer is lost"));
            }
            let body = Body::from(stored.to_string().into_bytes());
            Ok(http::Response::new(body))
        }
    });
    (Client::new(server, "default"), patches)
}

#[tokio::test]
async fn a_status_whose_write_had_no_answer_is_compared_with_the_stored_one() {
    let metrics = Metrics::register(&mut Registry::default());
    let resource = kube::api::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(
        "example.com",
        "v1",
        "Report",
    ));
    let mut object = DynamicObject::new("a", &resource).within("default");
    object.metadata.uid = Some("1".to_owned());
    object.metadata.resource_version = Some("1".to_owned());
    object.metadata.generation = Some(1);
    let (client, patches) = server(object.clone());
    let reconciler = FailsOnce(Mutex::new(false));
    let context = context_with(client, reconciler, &metrics, PolicyHandle::default());
    let count = || patches.lock().expect("no panic under the lock").len();
    // The object becomes ready, and the cache gets this state.
    reconcile(&context, &object, &[], None)
        .await
        .expect("it ends");
    let cached = context.written.objects.resolve_and_prune(Arc::new(object));
    assert_eq!(count(), 1);
    // The failure is stored, but the answer is lost.
    *context
        .reconciler
        .0
        .lock()
        .expect("no panic under the lock") = true;
    let lost = reconcile(&context, &cached, &[], None).await;
    lost.expect_err("the answer is lost");
    assert_eq!(count(), 2);
    // The cached status looks right. It is not the stored one.
    let stale = reconcile(&context, &cached, &[], None).await;
    let conflict = stale.expect_err("the stored status is another one");
    assert!(
        matches!(&conflict, kube::Error::Api(status) if status.code == 409),
        "{conflict}"
    );
    // Once the watch has delivered the stored status, it is corrected, and confirmed with that.
    let mut delivered = (*cached).clone();
    delivered.metadata.resource_version = Some("3".to_owned());
    delivered.data["status"]["conditions"][0]["status"] = json!("False");
    reconcile(&context, &delivered, &[], None)
        .await
        .expect("it ends");
    assert_eq!(count(), 4);
    let current = context
        .written
        .objects
        .resolve_and_prune(Arc::new(delivered));
    reconcile(&context, &current, &[], None)
        .await
        .expect("it ends");
    assert_eq!(count(), 4, "nothing is left to confirm");
}
