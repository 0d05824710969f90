//! Objects whose validation takes long, and what happens in the meantime.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, mpsc};
use std::thread::{self, ThreadId};

use futures::poll;
use kube::api::ObjectMeta;
use lockstep_shared_validation::{
    Policy, Rule, Severity, ValidationRequest, ValidationResult, ValidatorRegistry,
};
use tokio::task::spawn_blocking;

use crate::cache::related::RelatedObjects;
use crate::cache::store::Store;
use crate::controller::tests::*;
use crate::reconcile::reconcile;

/// During the validation of `swayed` another policy comes into force; that of `long` takes until another object is
/// validated; that of `unwanted` is recorded, and so is the thread of that of `placed`.
#[derive(Deserialize)]
struct Slow {
    metadata: ObjectMeta,
}

static POLICY: LazyLock<PolicyHandle> = LazyLock::new(PolicyHandle::default);

static UNWANTED_VALIDATED: AtomicBool = AtomicBool::new(false);

static THREAD: Mutex<Option<ThreadId>> = Mutex::new(None);

static OTHER_VALIDATED: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

impl ValidatedResource for Slow {
    const GROUP: &'static str = "example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Slow";

    fn crd() -> Value {
        Trap::crd()
    }

    fn example() -> Value {
        json!({})
    }

    fn rules() -> Vec<Rule<Self>> {
        vec![Rule {
            id: "slow",
            description: "The validation of the object takes long.",
            severity: Severity::Error,
            reference: "this test",
            fields: &["metadata.name"],
            validate: |subject, findings| match subject.object.metadata.name.as_deref() {
                Some("swayed") => POLICY.set(warning()),
                Some("long") if !is_other_validated() => {
                    findings.invalid("metadata.name", "long", "no other object was validated");
                }
                Some("long") => {}
                Some("placed") => *THREAD.lock().expect("no panic") = Some(thread::current().id()),
                Some("unwanted") => UNWANTED_VALIDATED.store(true, Ordering::Relaxed),
                _ => {
                    *OTHER_VALIDATED.0.lock().expect("no panic") = true;
                    OTHER_VALIDATED.1.notify_all();
                }
            },
        }]
    }
}

fn warning() -> Policy {
    let file = json!({"rules": {"Slow": {"slow": "warn"}}});
    let ruleset = Ruleset::<Slow>::compile().expect("it compiles");
    let validators = ValidatorRegistry::default().register(Arc::new(ruleset));
    Policy::read(&file, &validators).expect("a policy")
}

fn is_other_validated() -> bool {
    let (is_validated, validated) = &OTHER_VALIDATED;
    let is_validated = is_validated.lock().expect("no panic");
    let waited = validated.wait_timeout_while(is_validated, Duration::from_secs(20), |it| !*it);
    *waited.expect("no panic").0
}

/// Validity of an object, and the policy and the other objects of its validation request.
type Recorded = (bool, Policy, Value);

/// Records what it receives. Returns other objects from a list, one entry for each call.
#[derive(Default)]
struct RecordingReconciler {
    recorded: Mutex<Vec<Recorded>>,
    others: Mutex<Vec<Value>>,
}

#[async_trait]
impl Reconciler for RecordingReconciler {
    type Kind = Slow;

    fn related_for_validation(
        &self,
        _: &Value,
        _: RelatedObjects<'_>,
    ) -> Result<Value, ReconcileError> {
        let mut others = self.others.lock().expect("no panic");
        Ok(others.pop().unwrap_or_default())
    }

    fn on_validated(
        &self,
        request: &ValidationRequest<'_>,
        result: &ValidationResult,
    ) -> serde_json::Map<String, Value> {
        let policy = request.policy.cloned().unwrap_or_default();
        let others = request.related.cloned().unwrap_or_default();
        let mut recorded = self.recorded.lock().expect("no panic");
        recorded.push((result.is_valid(), policy, others));
        serde_json::Map::new()
    }

    async fn reconcile(
        &self,
        _: &SyncRequest<'_, Slow>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        Err(ReconcileError::Invalid(Vec::new()))
    }

    async fn finalize(&self, _: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        Ok(FinalizeOutcome::Done)
    }
}

/// Returns a context, and an object for each of the names.
fn slow(
    names: &[&str],
    policy: &PolicyHandle,
) -> (Context<RecordingReconciler>, Vec<DynamicObject>) {
    let metrics = Metrics::register(&mut Registry::default());
    let context = context_of(RecordingReconciler::default(), &metrics, policy.clone());
    let objects = names.iter().map(|name| {
        let mut object = DynamicObject::new(name, &context.resource);
        object.metadata.uid = Some((*name).to_owned());
        object
    });
    let objects = objects.collect();
    (context, objects)
}

/// Returns the results of concurrent reconciliations of all objects, as by the workers of a controller.
async fn reconcile_all(
    context: &Context<RecordingReconciler>,
    objects: &[DynamicObject],
) -> Vec<Action> {
    let reconciliations = objects
        .iter()
        .map(|object| reconcile(context, object, &[], None));
    let ended = futures::future::join_all(reconciliations).await.into_iter();
    ended.map(|next| next.expect("it ends")).collect()
}

fn recorded(context: &Context<RecordingReconciler>) -> Vec<Recorded> {
    context
        .reconciler
        .recorded
        .lock()
        .expect("no panic")
        .clone()
}

#[tokio::test]
async fn a_validation_result_is_reported_with_the_policy_it_was_computed_with() {
    let (context, objects) = slow(&["swayed"], &POLICY);
    reconcile_all(&context, &objects).await;
    assert_ne!(
        *POLICY.get(),
        Policy::default(),
        "another policy is in force"
    );
    assert_eq!(recorded(&context), [(true, Policy::default(), Value::Null)]);
}

#[tokio::test]
async fn a_validation_result_is_not_reported_if_other_objects_have_changed() {
    let (context, objects) = slow(&["any"], &PolicyHandle::default());
    let (before, now) = (json!("before"), json!("now"));
    // The last entry is used first.
    *context.reconciler.others.lock().expect("no panic") = vec![now.clone(), before];
    assert_eq!(
        reconcile_all(&context, &objects).await,
        [Action::RequeueAfter(Duration::ZERO)]
    );
    assert!(recorded(&context).is_empty());
    *context.reconciler.others.lock().expect("no panic") = vec![now.clone(), now.clone()];
    reconcile_all(&context, &objects).await;
    assert_eq!(recorded(&context), [(true, Policy::default(), now)]);
}

#[tokio::test]
async fn a_long_validation_does_not_delay_other_objects() {
    let (context, objects) = slow(&["long", "short"], &PolicyHandle::default());
    reconcile_all(&context, &objects).await;
    let valid: Vec<_> = recorded(&context)
        .iter()
        .map(|(is_valid, ..)| *is_valid)
        .collect();
    assert_eq!(valid, [true; 2]);
}

#[test]
fn a_validation_that_has_not_started_is_cancelled_with_its_reconciliation() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.max_blocking_threads(1).build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        let (release, released) = mpsc::channel::<()>();
        let before = spawn_blocking(move || released.recv());
        let (context, objects) = slow(&["unwanted"], &PolicyHandle::default());
        let mut reconciliation = Box::pin(reconcile(&context, &objects[0], &[], None));
        assert!(poll!(&mut reconciliation).is_pending());
        drop(reconciliation);
        release.send(()).expect("the blocking task waits");
        before.await.expect("no panic").expect("released");
        // A validation that was queued would have run by now.
        spawn_blocking(|| ()).await.expect("no panic");
        assert!(!UNWANTED_VALIDATED.load(Ordering::Relaxed));
    });
}

#[tokio::test]
async fn only_a_validation_that_was_quick_before_runs_on_the_thread_of_the_reconciliation() {
    let (context, objects) = slow(&["placed"], &PolicyHandle::default());
    let cached = Store::default().compress(&objects[0]);
    for is_quick in [false, true, false] {
        cached.set_quickly_validated(is_quick);
        let cached = Some(Arc::clone(&cached));
        let reconciled = reconcile(&context, &objects[0], &[], cached).await;
        reconciled.expect("it ends");
        let thread = THREAD.lock().expect("no panic").take();
        assert_eq!(thread == Some(thread::current().id()), is_quick);
    }
}
