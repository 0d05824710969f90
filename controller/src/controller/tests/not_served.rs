//! Objects of a kind that the API server does not serve for a moment, as while its CRD is being updated.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::cache::object_key::ObjectKey;
use crate::children::OwnedType;
use crate::controller::tests::*;
use crate::reconcile::reconcile;

/// Needs a finalizer, and a Job before an object is removed.
struct Finalized;

const FINALIZER: &str = "example.com/finalizer";

#[async_trait]
impl Reconciler for Finalized {
    type Kind = Trap;

    fn finalizer(&self) -> Option<&'static str> {
        Some(FINALIZER)
    }

    fn owns(&self) -> Vec<OwnedType> {
        vec![OwnedType::namespaced::<Job>().cleanup_job()]
    }

    async fn reconcile(
        &self,
        _: &SyncRequest<'_, Trap>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        unreachable!("the finalizer cannot be added")
    }

    async fn finalize(&self, _: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "cleanup"}});
        Ok(FinalizeOutcome::Waiting(ReconcileOutput {
            children: vec![job],
            ..ReconcileOutput::default()
        }))
    }
}

/// Returns a context whose API server answers every request with 404.
fn not_served(metrics: &Metrics) -> Context<Finalized> {
    let server = tower::service_fn(|_: http::Request<Body>| async {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
            "message": "the server could not find the requested resource",
        });
        let response = http::Response::builder().status(404);
        let body = Body::from(status.to_string().into_bytes());
        Ok::<_, std::io::Error>(response.body(body).expect("a response"))
    });
    let client = Client::new(server, "default");
    context_with(client, Finalized, metrics, PolicyHandle::default())
}

fn object(context: &Context<Finalized>) -> DynamicObject {
    let mut object = DynamicObject::new("a", &context.resource).within("default");
    object.metadata.uid = Some("1".to_owned());
    object
}

#[tokio::test]
async fn an_object_in_the_store_is_requeued_although_the_api_server_does_not_find_it() {
    let metrics = Metrics::register(&mut Registry::default());
    let context = not_served(&metrics);
    let worker = Worker {
        context: &context,
        store: Store::default(),
        related: &[],
        queue: &Queue::new(metrics.queue("trap"), Duration::ZERO, None),
    };
    let object = object(&context);
    let store = &worker.store;
    store.put(ObjectKey::of(&object), store.compress(&object));
    let first = worker.reconcile(&object, None).await;
    let second = worker.reconcile(&object, None).await;
    let (Action::RequeueAfter(first), Action::RequeueAfter(second)) = (first, second) else {
        panic!("{first:?}, {second:?}");
    };
    assert!(
        Duration::ZERO < first && first < second,
        "{first:?}, {second:?}"
    );
    // Another object has taken its place.
    let mut other = object.clone();
    other.metadata.uid = Some("2".to_owned());
    store.put(ObjectKey::of(&object), store.compress(&other));
    assert_eq!(worker.reconcile(&object, None).await, Action::AwaitChange);
    store.remove(&ObjectKey::of(&object));
    assert_eq!(worker.reconcile(&object, None).await, Action::AwaitChange);
}

#[tokio::test]
async fn a_deleted_object_whose_cleanup_cannot_begin_is_requeued() {
    let metrics = Metrics::register(&mut Registry::default());
    let context = not_served(&metrics);
    let mut object = object(&context);
    object.metadata.deletion_timestamp = Some(Time(Timestamp::now()));
    object.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    let action = reconcile(&context, &object, &[], None)
        .await
        .expect("it ends");
    assert!(
        matches!(action, Action::RequeueAfter(after) if after > Duration::ZERO),
        "{action:?}"
    );
}
