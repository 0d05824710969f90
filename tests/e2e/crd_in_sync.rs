//! The webhook skips the validation that the API server has done, as long as both use the same CRD.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use kube::api::{Api, DynamicObject, PostParams};
use lockstep_cloud_database_api::CloudDatabase;
use lockstep_envtest::{eventually, eventually_within};
use lockstep_shared_validation::{
    CrdMatch, LastValidated, Layer, Policy, RawObject, ValidationRequest, Validator,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::corpus::corpus;
use crate::env::{EnvOptions, TestEnv, database_without_warning};
use crate::webhook::WebhookClient;

const CRD: &str = "clouddatabases.database.example.com";

/// JSON pointer to the lower limit of `sizeGib` in the CRD.
const LEAST: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/storage/properties/sizeGib/minimum";

/// Object that violates only the CRD's schema.
fn small(name: &str) -> Value {
    let mut object = database_without_warning(name);
    object["spec"]["storage"]["sizeGib"] = json!(5);
    object
}

/// Object that violates only a Rust rule.
fn reserved(name: &str) -> Value {
    let mut object = database_without_warning(name);
    object["spec"]["credentials"]["username"] = json!("user");
    object
}

fn set_least(env: &TestEnv, least: u32) {
    let operations = json!([{"op": "replace", "path": LEAST, "value": least}]).to_string();
    let patch = ["patch", "crd", CRD, "--type=json", "-p", &operations];
    env.kubectl(&patch).expect("the CRD is patched");
}

/// Number of reviews in which only the Rust rules were validated.
pub async fn rust_only(env: &TestEnv) -> u64 {
    let url = env.installation.webhook_health_url();
    let metrics = env.metrics(&url).await;
    let mut lines = metrics.lines();
    let count =
        lines.find_map(|line| line.strip_prefix("lockstep_webhook_crd_validation_skipped_total "));
    count.expect("the metric").parse().expect("a number")
}

async fn in_sync(env: &TestEnv, is_so: bool) {
    let url = env.installation.controller_health_url();
    let line = format!(
        "lockstep_crd_in_sync{{kind=\"CloudDatabase\"}} {}",
        u8::from(is_so)
    );
    let what = format!("the metric {line} of the controller");
    eventually(&what, async || {
        let metrics = env.metrics(&url).await;
        metrics.lines().any(|one| one == line).then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
}

/// Sends an object directly to the webhook until it responds as expected.
async fn webhook_result(
    env: &TestEnv,
    webhook: &WebhookClient,
    object: &Value,
    allowed: bool,
    warns: bool,
) {
    let what = format!("the response allowed={allowed}, with warnings={warns}");
    eventually_within(Duration::from_secs(90), &what, async || {
        let response = webhook.review("/validate", object, None).await;
        let is_so = response["allowed"] == allowed && response["warnings"].is_array() == warns;
        is_so.then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
}

/// Waits until the webhook uses the report that the cluster has the same CRD.
pub async fn is_known(env: &TestEnv, webhook: &WebhookClient) {
    webhook_result(env, webhook, &complete(small("small")), true, false).await;
}

/// The object as the webhook receives it: with every default.
fn complete(mut object: Value) -> Value {
    let ruleset = lockstep_cloud_database_api::ruleset().expect("the rules");
    object = ruleset.validate(&ValidationRequest::create(&object)).object;
    object
}

fn dry_run() -> PostParams {
    PostParams {
        dry_run: true,
        ..PostParams::default()
    }
}

/// Continuous requests to the API server, and counts of the responses.
#[derive(Default)]
struct Load {
    ended: AtomicBool,
    requests: AtomicUsize,
    valid_refused: AtomicUsize,
    reserved_admitted: AtomicUsize,
}

impl Load {
    async fn send_requests(&self, databases: Api<DynamicObject>, name: String) {
        let params = dry_run();
        let object = |object: Value| serde_json::from_value(object).expect("an object");
        let (valid, reserved) = (
            object(database_without_warning(&name)),
            object(reserved(&name)),
        );
        while !self.ended.load(Ordering::Relaxed) {
            if let Err(error) = databases.create(&params, &valid).await {
                eprintln!("a valid object was denied: {error}");
                self.valid_refused.fetch_add(1, Ordering::Relaxed);
            }
            if databases.create(&params, &reserved).await.is_ok() {
                self.reserved_admitted.fetch_add(1, Ordering::Relaxed);
            }
            self.requests.fetch_add(2, Ordering::Relaxed);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_webhook_follows_the_crd_under_load() {
    let options = EnvOptions {
        controller_args: vec!["--crd-propagation-delay=1s".to_owned()],
        ..EnvOptions::default()
    };
    let mut env = TestEnv::start_with(options).await;
    let webhook = WebhookClient::of(&env).await;
    let load = Arc::new(Load::default());
    let clients = (0..3).map(|index| {
        let (load, databases) = (Arc::clone(&load), env.databases());
        tokio::spawn(async move {
            load.send_requests(databases, format!("dry-run-{index}"))
                .await;
        })
    });
    let clients: Vec<_> = clients.collect();
    let (small, mut faults) = (complete(small("small")), 0);
    for _ in 0..2 {
        // The API server uses the same CRD: sent directly to the webhook, an object that it would deny is admitted.
        in_sync(&env, true).await;
        webhook_result(&env, &webhook, &small, true, false).await;
        let before = rust_only(&env).await;
        eventually("reviews with only the Rust rules", async || {
            (rust_only(&env).await > before + 10).then_some(())
        })
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
        faults += usize::from(env.kubectl_apply(&small).is_ok());

        // The CRD of another release allows more: an error of our CRD alone is a warning, and the object is stored.
        set_least(&env, 1);
        in_sync(&env, false).await;
        webhook_result(&env, &webhook, &small, true, true).await;
        env.kubectl_apply(&small)
            .expect("the error is only a warning");
        env.condition("small", "Valid", "False").await;
        let mut unreadable = small.clone();
        unreadable["spec"]["engine"] = json!("oracle");
        webhook_result(&env, &webhook, &unreadable, false, true).await;
        env.kubectl(&["delete", "cdb/small", "--timeout=60s"])
            .unwrap_or_else(|error| env.fail(&error));
        set_least(&env, 20);
    }
    in_sync(&env, true).await;
    webhook_result(&env, &webhook, &small, true, false).await;

    // The API server did not validate a request in another version by the schema of this version.
    let mut converted = crate::webhook::review(&small, None);
    converted["request"]["requestKind"]["version"] = json!("v1beta1");
    let response = webhook.post("/validate", &converted).await;
    let response: Value = serde_json::from_slice(response.body()).expect("JSON");
    assert_eq!(response["response"]["allowed"], false, "{response}");

    // The controller no longer reports the CRD status: the webhook runs all validation.
    env.installation.controller().kill();
    webhook_result(&env, &webhook, &small, false, false).await;
    set_least(&env, 1);
    let whole = serde_json::from_value(small).expect("an object");
    eventually("a denial by the webhook alone", async || {
        let rejection = env.databases().create(&dry_run(), &whole).await;
        let rejection = rejection.err()?.to_string();
        rejection.contains("denied the request").then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));

    load.ended.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("the requests end without a panic");
    }
    let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    let requests = count(&load.requests);
    eprintln!("{requests} objects were validated while the CRD changed");
    assert!(requests > 100, "only {requests}");
    assert_eq!(count(&load.valid_refused), 0, "of {requests}");
    assert_eq!(count(&load.reserved_admitted), 0, "of {requests}");
    assert_eq!(faults, 0, "an object that violates the CRD was stored");
}

fn raw(object: &Value) -> Box<RawValue> {
    RawValue::from_string(object.to_string()).expect("JSON")
}

fn read(object: &RawValue) -> RawObject<'_> {
    RawObject::parse(object).expect("JSON")
}

#[test]
fn objects_that_take_the_fast_path_have_no_violations() {
    let ruleset = lockstep_cloud_database_api::ruleset().expect("the rules");
    let (mut passed, mut stopped, mut whole, mut sound) = (0, 0, 0, 0);
    let mut cases = corpus();
    cases.retain(|case| case.object["apiVersion"] == "database.example.com/v1alpha1");
    // Each case twice: with the old object as it is in the case, and with every default, as in the cluster.
    let both = [false, true].map(|is_stored| cases.iter().map(move |case| (case, is_stored)));
    for (case, is_stored) in both.into_iter().flatten() {
        let old = case.old.clone();
        let old = old.map(|old| if is_stored { complete(old) } else { old });
        let last_validated = old.as_ref().and_then(LastValidated::from_status_of);
        let written =
            ValidationRequest::for_update(&case.object, old.as_ref(), last_validated.as_ref());
        let object = ruleset.validate(&written).object;
        let request = ValidationRequest::for_update(&object, old.as_ref(), last_validated.as_ref());
        let result = ruleset.validate(&request);
        let messages = [&result.errors, &result.warnings, &result.audit_violations];
        let messages: Vec<_> = messages.into_iter().flatten().collect();
        let by_rust = messages
            .iter()
            .any(|violation| violation.layer == Layer::Rust);
        let (object, old) = (raw(&object), old.as_ref().map(raw));
        let (object, old) = (read(&object), old.as_deref().map(read));
        let old = old.as_ref();
        if ruleset.is_trivially_valid(&object, old, CrdMatch::Same, &Policy::default()) {
            assert!(!by_rust, "{}", case.name);
            passed += 1;
        } else {
            stopped += 1;
        }
        let nothing = messages.is_empty() && result.defaults.0.is_empty();
        if ruleset.is_trivially_valid(&object, old, CrdMatch::Unknown, &Policy::default()) {
            assert!(nothing, "{}: {messages:?}", case.name);
            whole += 1;
        }
        // An object without violations takes the fast path, unless the old object has last validated values, or `100` is
        // written as `100.0`.
        let is_plain = CloudDatabase::deserialize(&object.to_value()).is_ok();
        let has_all = |object, old| ruleset.has_all_defaults(object, old, CrdMatch::Unknown);
        let is_filled = old.is_none_or(|old| has_all(old, None));
        if nothing && is_plain && is_filled && last_validated.is_none() {
            assert!(has_all(&object, old), "{}", case.name);
            for crd in [CrdMatch::Same, CrdMatch::Unknown, CrdMatch::Different] {
                assert!(
                    ruleset.is_trivially_valid(&object, old, crd, &Policy::default()),
                    "{} does not take the fast path: {crd:?}",
                    case.name
                );
            }
            sound += 1;
        }
    }
    eprintln!(
        "fast path: {passed} by the Rust rules, {stopped} not; {whole} by all rules, {sound} required"
    );
    assert!(passed > 200 && stopped > 100 && whole > 100 && sound > 100);
}

#[test]
fn objects_that_need_full_validation_do_not_take_the_fast_path() {
    let ruleset = lockstep_cloud_database_api::ruleset().expect("the rules");
    let passes = |object: &Value, old: Option<&Value>| {
        let (object, old) = (raw(object), old.map(raw));
        let (object, old) = (read(&object), old.as_deref().map(read));
        let by_rules =
            ruleset.is_trivially_valid(&object, old.as_ref(), CrdMatch::Same, &Policy::default());
        let by_all = ruleset.is_trivially_valid(
            &object,
            old.as_ref(),
            CrdMatch::Unknown,
            &Policy::default(),
        );
        assert_eq!(by_rules, by_all);
        by_all
    };
    let stored = complete(database_without_warning("orders"));
    let mut object = stored.clone();
    object["spec"]["storage"]["sizeGib"] = json!(150);
    assert!(passes(&stored, None) && passes(&object, Some(&stored)));

    // An earlier change bypassed the webhook: transitions are validated against the last validated values.
    let fields = ruleset.transition_fields();
    let mut larger = stored.clone();
    larger["spec"]["storage"]["sizeGib"] = json!(200);
    for (last_validated, is_stored) in [(&stored, true), (&larger, false)] {
        let mut old = stored.clone();
        let last_validated =
            serde_json::to_value(LastValidated::from_object(last_validated, fields)).expect("JSON");
        old["status"] = json!({"lastValidated": last_validated});
        assert_eq!(passes(&object, Some(&old)), is_stored, "{old}");
    }
    let mut never_accepted = stored.clone();
    never_accepted["status"] = json!({"conditions": [{"type": "Valid", "status": "False"}]});
    assert!(!passes(&object, Some(&never_accepted)));

    let probe = ruleset
        .probe_object("probe", "default")
        .expect("an admission probe");
    assert!(!passes(&complete(probe), None));
    let mut lower = stored.clone();
    lower["spec"]["engineVersion"] = json!("13");
    let mut incomplete = stored.clone();
    let spec = incomplete["spec"].as_object_mut().expect("a spec");
    spec.remove("engineVersion");
    assert!(!passes(&incomplete, None));
    assert!(
        !passes(&lower, Some(&incomplete)),
        "the version would be lower than the default"
    );
    // An adopted instance keeps its version, so that there is no default.
    let mut adopted = incomplete.clone();
    adopted["spec"]["adopt"] = json!({"identifier": "orders"});
    assert!(passes(&adopted, None) && passes(&adopted, Some(&adopted)));
    for crd in [CrdMatch::Same, CrdMatch::Unknown] {
        assert!(!ruleset.has_all_defaults(&read(&raw(&incomplete)), None, crd));
        assert!(ruleset.has_all_defaults(&read(&raw(&stored)), None, crd));
    }

    // Defaults and errors of the CRD matter only if the API server may not have the same CRD.
    let mut unfilled = stored.clone();
    let spec = unfilled["spec"].as_object_mut().expect("a spec");
    spec.remove("deletionPolicy");
    let mut too_large = stored.clone();
    too_large["spec"]["storage"]["sizeGib"] = json!(100_000);
    // The status too: duplicate list items, and nulls, which are dropped.
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "Available", "message": "",
        "observedGeneration": 1, "lastTransitionTime": "2026-01-05T10:05:00Z",
    });
    let mut repeated = stored.clone();
    repeated["status"] = json!({"conditions": [condition, condition]});
    let mut nulls = stored.clone();
    nulls["status"] = json!({"phase": null});
    for (object, old) in [
        (&unfilled, None),
        (&stored, Some(&unfilled)),
        (&too_large, Some(&stored)),
        (&repeated, Some(&stored)),
        (&nulls, None),
    ] {
        let (object, old) = (raw(object), old.map(raw));
        let (object, old) = (read(&object), old.as_deref().map(read));
        assert!(ruleset.is_trivially_valid(
            &object,
            old.as_ref(),
            CrdMatch::Same,
            &Policy::default()
        ));
        assert!(!ruleset.is_trivially_valid(
            &object,
            old.as_ref(),
            CrdMatch::Unknown,
            &Policy::default()
        ));
    }
}
