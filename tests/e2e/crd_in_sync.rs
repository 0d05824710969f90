//! The gate judges no more than the API server has left to it, as long as both judge by the same CRD.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cloud_database_rules::CloudDatabase;
use control_plane::{eventually, eventually_within};
use kube::api::{Api, DynamicObject, PostParams};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use shared_validation::{CrdMatch, LastValidated, Layer, RawObject, ValidationRequest, Validator};

use crate::corpus::corpus;
use crate::gate::Gate;
use crate::world::{Detours, World, database};

const CRD: &str = "clouddatabases.database.example.com";

/// What the CRD allows at least.
const LEAST: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/storage/properties/sizeGib/minimum";

/// An object that no rule but the CRD's forbids.
fn small(name: &str) -> Value {
    let mut object = database(name);
    object["spec"]["storage"]["sizeGib"] = json!(5);
    object
}

/// An object that only a Rust rule forbids.
fn reserved(name: &str) -> Value {
    let mut object = database(name);
    object["spec"]["credentials"]["username"] = json!("user");
    object
}

fn set_least(world: &World, least: u32) {
    let operations = json!([{"op": "replace", "path": LEAST, "value": least}]).to_string();
    let patch = ["patch", "crd", CRD, "--type=json", "-p", &operations];
    world.kubectl(&patch).expect("the CRD is patched");
}

/// Reviews that took the Rust rules alone.
pub async fn rust_only(world: &World) -> u64 {
    let url = world.installation.webhook_health_url();
    let metrics = world.metrics(&url).await;
    let mut lines = metrics.lines();
    let count = lines.find_map(|line| line.strip_prefix("lockstep_gate_rust_only_total "));
    count.expect("the metric").parse().expect("a number")
}

async fn in_sync(world: &World, is_so: bool) {
    let url = world.installation.controller_health_url();
    let line = format!(
        "lockstep_crd_in_sync{{kind=\"CloudDatabase\"}} {}",
        u8::from(is_so)
    );
    let what = format!("the controller saying {line}");
    eventually(&what, async || {
        let metrics = world.metrics(&url).await;
        metrics.lines().any(|one| one == line).then_some(())
    })
    .await
    .unwrap_or_else(|error| world.fail(&error.to_string()));
}

/// Asks the gate itself, past the API server, until it says that.
async fn gate_says(world: &World, gate: &Gate, object: &Value, allowed: bool, warns: bool) {
    let what = format!("the gate answering allowed={allowed}, with warnings={warns}");
    eventually_within(Duration::from_secs(90), &what, async || {
        let answer = gate.review("/validate", object, None).await;
        let is_so = answer["allowed"] == allowed && answer["warnings"].is_array() == warns;
        is_so.then_some(())
    })
    .await
    .unwrap_or_else(|error| world.fail(&error.to_string()));
}

/// Waits until the gate knows that the cluster has the same CRD.
pub async fn is_known(world: &World, gate: &Gate) {
    gate_says(world, gate, &complete(small("small")), true, false).await;
}

/// As an object arrives at the gate: with every default.
fn complete(mut object: Value) -> Value {
    let ruleset = cloud_database_rules::ruleset().expect("the rules");
    object = ruleset.validate(&ValidationRequest::create(&object)).object;
    object
}

fn dry_run() -> PostParams {
    PostParams {
        dry_run: true,
        ..PostParams::default()
    }
}

/// What is asked of the API server all the time, and what it has answered.
#[derive(Default)]
struct Load {
    ended: AtomicBool,
    asked: AtomicUsize,
    valid_refused: AtomicUsize,
    reserved_admitted: AtomicUsize,
}

impl Load {
    async fn keep_asking(&self, databases: Api<DynamicObject>, name: String) {
        let params = dry_run();
        let object = |object: Value| serde_json::from_value(object).expect("an object");
        let (valid, reserved) = (object(database(&name)), object(reserved(&name)));
        while !self.ended.load(Ordering::Relaxed) {
            if let Err(error) = databases.create(&params, &valid).await {
                eprintln!("a valid object: {error}");
                self.valid_refused.fetch_add(1, Ordering::Relaxed);
            }
            if databases.create(&params, &reserved).await.is_ok() {
                self.reserved_admitted.fetch_add(1, Ordering::Relaxed);
            }
            self.asked.fetch_add(2, Ordering::Relaxed);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gate_follows_the_crd_under_load() {
    let detours = Detours {
        controller_args: vec!["--crd-settle=1s".to_owned()],
        ..Detours::default()
    };
    let mut world = World::start_with(detours).await;
    let gate = Gate::of(&world).await;
    let load = Arc::new(Load::default());
    let askers = (0..3).map(|index| {
        let (load, databases) = (Arc::clone(&load), world.databases());
        tokio::spawn(async move { load.keep_asking(databases, format!("asked-{index}")).await })
    });
    let askers: Vec<_> = askers.collect();
    let (small, mut faults) = (complete(small("small")), 0);
    for _ in 0..2 {
        // The API server judges by the same: asked past it, the gate lets pass what it would have refused.
        in_sync(&world, true).await;
        gate_says(&world, &gate, &small, true, false).await;
        let before = rust_only(&world).await;
        eventually("reviews that take the Rust rules alone", async || {
            (rust_only(&world).await > before + 10).then_some(())
        })
        .await
        .unwrap_or_else(|error| world.fail(&error.to_string()));
        faults += usize::from(world.kubectl_apply(&small).is_ok());

        // Another release's CRD allows more: what only ours forbids is advice, and is stored.
        set_least(&world, 1);
        in_sync(&world, false).await;
        gate_says(&world, &gate, &small, true, true).await;
        world.kubectl_apply(&small).expect("it is but advice");
        world.condition("small", "Valid", "False").await;
        let mut unreadable = small.clone();
        unreadable["spec"]["engine"] = json!("oracle");
        gate_says(&world, &gate, &unreadable, false, true).await;
        world
            .kubectl(&["delete", "cdb/small", "--timeout=60s"])
            .unwrap_or_else(|error| world.fail(&error));
        set_least(&world, 20);
    }
    in_sync(&world, true).await;
    gate_says(&world, &gate, &small, true, false).await;

    // Written in another version, it was not judged by this one's schema.
    let mut converted = crate::gate::review(&small, None);
    converted["request"]["requestKind"]["version"] = json!("v1beta1");
    let answer = gate.post("/validate", &converted).await;
    let answer: Value = serde_json::from_slice(answer.body()).expect("JSON");
    assert_eq!(answer["response"]["allowed"], false, "{answer}");

    // Nobody says anything any more: everything is judged.
    world.installation.controller().kill();
    gate_says(&world, &gate, &small, false, false).await;
    set_least(&world, 1);
    let whole = serde_json::from_value(small).expect("an object");
    eventually("the gate alone refusing", async || {
        let refusal = world.databases().create(&dry_run(), &whole).await;
        let refusal = refusal.err()?.to_string();
        refusal.contains("denied the request").then_some(())
    })
    .await
    .unwrap_or_else(|error| world.fail(&error.to_string()));

    load.ended.store(true, Ordering::Relaxed);
    for asker in askers {
        asker.await.expect("it has asked");
    }
    let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    let asked = count(&load.asked);
    eprintln!("{asked} objects were judged while the CRD changed");
    assert!(asked > 100, "only {asked}");
    assert_eq!(count(&load.valid_refused), 0, "of {asked}");
    assert_eq!(count(&load.reserved_admitted), 0, "of {asked}");
    assert_eq!(faults, 0, "what the CRD forbids was stored");
}

fn raw(object: &Value) -> Box<RawValue> {
    RawValue::from_string(object.to_string()).expect("JSON")
}

fn read(object: &RawValue) -> RawObject<'_> {
    RawObject::parse(object).expect("JSON")
}

#[test]
fn what_passes_has_nothing_said_of_it() {
    let ruleset = cloud_database_rules::ruleset().expect("the rules");
    let (mut passed, mut stopped, mut whole, mut sound) = (0, 0, 0, 0);
    let mut cases = corpus();
    cases.retain(|case| case.object["apiVersion"] == "database.example.com/v1alpha1");
    // As nobody has filled what it replaces, and as it is stored.
    let both = [false, true].map(|is_stored| cases.iter().map(move |case| (case, is_stored)));
    for (case, is_stored) in both.into_iter().flatten() {
        let old = case.old.clone();
        let old = old.map(|old| if is_stored { complete(old) } else { old });
        let accepted = old.as_ref().and_then(LastValidated::from_status_of);
        let written = ValidationRequest::for_update(&case.object, old.as_ref(), accepted.as_ref());
        let object = ruleset.validate(&written).object;
        let candidate = ValidationRequest::for_update(&object, old.as_ref(), accepted.as_ref());
        let verdict = ruleset.validate(&candidate);
        let said = [
            &verdict.errors,
            &verdict.warnings,
            &verdict.audit_violations,
        ];
        let said: Vec<_> = said.into_iter().flatten().collect();
        let by_rust = said.iter().any(|violation| violation.layer == Layer::Rust);
        let (object, old) = (raw(&object), old.as_ref().map(raw));
        let (object, old) = (read(&object), old.as_deref().map(read));
        let old = old.as_ref();
        if ruleset.is_trivially_valid(&object, old, CrdMatch::Same) {
            assert!(!by_rust, "{}", case.name);
            passed += 1;
        } else {
            stopped += 1;
        }
        let nothing = said.is_empty() && verdict.defaults.0.is_empty();
        if ruleset.is_trivially_valid(&object, old, CrdMatch::Unknown) {
            assert!(nothing, "{}: {said:?}", case.name);
            whole += 1;
        }
        // What nothing is wrong with passes, unless there was an unguarded change before, or `100` is
        // written `100.0`.
        let is_plain = CloudDatabase::deserialize(&object.to_value()).is_ok();
        let is_filled = old.is_none_or(|old| ruleset.has_all_defaults(old, CrdMatch::Unknown));
        if nothing && is_plain && is_filled && accepted.is_none() {
            for crd in [CrdMatch::Same, CrdMatch::Unknown, CrdMatch::Different] {
                assert!(
                    ruleset.is_trivially_valid(&object, old, crd),
                    "{} is stopped for nothing: {crd:?}",
                    case.name
                );
            }
            sound += 1;
        }
    }
    eprintln!(
        "{passed} pass by the rules alone, {stopped} do not; {whole} pass by all, {sound} are sound"
    );
    assert!(passed > 200 && stopped > 100 && whole > 100 && sound > 100);
}

#[test]
fn what_takes_a_whole_judgement_does_not_pass() {
    let ruleset = cloud_database_rules::ruleset().expect("the rules");
    let passes = |object: &Value, old: Option<&Value>| {
        let (object, old) = (raw(object), old.map(raw));
        let (object, old) = (read(&object), old.as_deref().map(read));
        let by_rules = ruleset.is_trivially_valid(&object, old.as_ref(), CrdMatch::Same);
        let by_all = ruleset.is_trivially_valid(&object, old.as_ref(), CrdMatch::Unknown);
        assert_eq!(by_rules, by_all);
        by_all
    };
    let stored = complete(database("orders"));
    let mut object = stored.clone();
    object["spec"]["storage"]["sizeGib"] = json!(150);
    assert!(passes(&stored, None) && passes(&object, Some(&stored)));

    // An unguarded change has been made since: transitions are judged against what was accepted.
    let fields = ruleset.transition_fields();
    let mut larger = stored.clone();
    larger["spec"]["storage"]["sizeGib"] = json!(200);
    for (accepted, is_stored) in [(&stored, true), (&larger, false)] {
        let mut old = stored.clone();
        let accepted =
            serde_json::to_value(LastValidated::from_object(accepted, fields)).expect("JSON");
        old["status"] = json!({"accepted": accepted});
        assert_eq!(passes(&object, Some(&old)), is_stored, "{old}");
    }
    let mut never_accepted = stored.clone();
    never_accepted["status"] = json!({"conditions": [{"type": "Valid", "status": "False"}]});
    assert!(!passes(&object, Some(&never_accepted)));

    let canary = ruleset.probe_object("canary", "default").expect("a canary");
    assert!(!passes(&complete(canary), None));
    let mut lower = stored.clone();
    lower["spec"]["engineVersion"] = json!("13");
    let mut incomplete = stored.clone();
    let spec = incomplete["spec"].as_object_mut().expect("a spec");
    spec.remove("engineVersion");
    assert!(!passes(&incomplete, None));
    assert!(
        !passes(&lower, Some(&incomplete)),
        "the default would be lowered"
    );
    for crd in [CrdMatch::Same, CrdMatch::Unknown] {
        assert!(!ruleset.has_all_defaults(&read(&raw(&incomplete)), crd));
        assert!(ruleset.has_all_defaults(&read(&raw(&stored)), crd));
    }

    // What the API server fills by its CRD, and what it says of it, matters where nobody has.
    let mut unfilled = stored.clone();
    let spec = unfilled["spec"].as_object_mut().expect("a spec");
    spec.remove("deletionPolicy");
    let mut shrunk = stored.clone();
    shrunk["spec"]["storage"]["sizeGib"] = json!(50);
    // Of the status, too: items that are the same, and nulls, which are dropped.
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
        (&shrunk, Some(&stored)),
        (&repeated, Some(&stored)),
        (&nulls, None),
    ] {
        let (object, old) = (raw(object), old.map(raw));
        let (object, old) = (read(&object), old.as_deref().map(read));
        assert!(ruleset.is_trivially_valid(&object, old.as_ref(), CrdMatch::Same));
        assert!(!ruleset.is_trivially_valid(&object, old.as_ref(), CrdMatch::Unknown));
    }
}
