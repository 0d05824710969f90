//! The corpus: every case is validated by `lockstep check`, by the webhook over HTTPS, through the API server, and by
//! the controller without the webhook. The four results must be equal.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::Path;
use std::time::Duration;

use futures::StreamExt;
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use kube::core::response::StatusCause;
use lockstep_envtest::eventually_within;
use serde_json::{Value, json};

use crate::corpus::{Case, corpus, corpus_of};
use crate::crd_in_sync;
use crate::env::{EnvOptions, NAMESPACE, TestEnv, VECTOR, check, is_in_no_namespace};
use crate::result::{CheckResult, check_folder, check_lines};
use crate::webhook::WebhookClient;

/// Deadline of a case. The programs of eight cases at a time are compiled by two workers, on a machine that runs other
/// tests, too.
const DEADLINE: Duration = Duration::from_mins(5);

/// Validates every case with `lockstep check` in a line of requests, and in a file, of the updates each eighth. Both results
/// must be equal.
fn by_check(cases: &[Case]) -> Vec<CheckResult> {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: String| {
        let path = directory.path().join(name);
        fs::write(&path, text).expect("a file");
        path
    };
    let new = directory.path().join("new");
    fs::create_dir(&new).expect("a folder");
    let mut in_files = BTreeMap::new();
    let mut lines = String::new();
    for (index, case) in cases.iter().enumerate() {
        let object = case.object.to_string();
        let mut line = json!({"id": index, "object": object});
        if let Some(old) = &case.old {
            let old = old.to_string();
            line["operation"] = json!("UPDATE");
            line["oldObject"] = json!(old);
            // An old object needs a process of its own, which takes half a second to start.
            if index % 8 == 0 {
                let (old, object) = (write("old.json", old), write("object.json", object));
                let result = check(&["--old-object", &old.to_string_lossy()], &object);
                in_files.insert(index, result);
            }
        } else {
            write(&format!("new/{index}.json"), object);
        }
        lines += &format!("{line}\n");
    }
    for result in in_time(|| check_folder(&new)) {
        let file = Path::new(result["file"].as_str().expect("a file"));
        let index = file
            .file_stem()
            .and_then(|name| name.to_str()?.parse().ok());
        let other = in_files.insert(index.expect("the number of a case"), result);
        assert_eq!(other, None, "a case has two results");
    }
    let lines = write("lines.jsonl", lines);
    let by_line = in_time(|| check_lines(&lines));
    assert_eq!(by_line.len(), cases.len());
    let compared = cases.iter().zip(&by_line).enumerate();
    let compared = compared.map(|(index, (case, in_line))| {
        assert_eq!(in_line["id"], json!(index));
        let result = CheckResult::expected_by(case, in_line);
        match in_files.get(&index) {
            Some(in_file) => {
                let in_file = CheckResult::expected_by(case, in_file);
                assert_eq!(in_file, result, "{}", case.name);
            }
            None => assert!(case.old.is_some(), "{} has no result", case.name),
        }
        result
    });
    compared.collect()
}

/// Validates at most three times, until no result says that the machine was too busy to compile a program in time.
fn in_time(validate: impl Fn() -> Vec<Value>) -> Vec<Value> {
    let is_late = |result: &Value| {
        let errors = result["errors"].as_array();
        let mut messages = errors.into_iter().flatten().map(|error| &error["message"]);
        messages.any(|message| message.as_str().is_some_and(is_about_load))
    };
    let attempts = std::iter::repeat_with(&validate).take(2);
    let settled = attempts
        .into_iter()
        .find(|results| !results.iter().any(is_late));
    settled.unwrap_or_else(validate)
}

pub async fn at_the_webhook(webhook: &WebhookClient, case: &Case, result: &CheckResult) {
    let response = definite(case, async || {
        let response = webhook
            .review("/validate", &case.object, case.old.as_ref())
            .await;
        (!is_transient(&causes_of(&response))).then_some(response)
    })
    .await;
    assert_eq!(
        response["allowed"],
        json!(result.findings.is_empty()),
        "{case} in the webhook"
    );
    if let Some(warnings) = &case.warnings {
        let texts = response["warnings"].as_array().cloned().unwrap_or_default();
        assert_eq!(texts.len(), warnings.len(), "{case} in the webhook");
        for (text, rule) in texts.iter().zip(warnings) {
            let text = text.as_str().unwrap_or_default();
            assert!(text.contains(&format!("[{rule}]")), "{case}: {text}");
        }
    }
    assert_eq!(
        result.essences_of(&causes_of(&response)),
        result.essences(|_| true),
        "{case} in the webhook"
    );
}

/// Repeats a request until its response does not depend on the load of the machine any more.
///
/// The compilation of VRL programs and the API server's call have deadlines, which a busy machine with a debug build
/// can exceed.
async fn definite<T>(case: &Case, request: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_within(DEADLINE, &case.name, request)
        .await
        .expect("a response that does not depend on the load")
}

/// Returns true if one of the causes says that the validation was not finished in time.
fn is_transient(causes: &[StatusCause]) -> bool {
    let mut causes = causes.iter();
    causes.any(|cause| cause.reason == "InternalError" && is_about_load(&cause.message))
}

/// Returns true if a message says that a validation was not finished in time.
fn is_about_load(message: &str) -> bool {
    ["exceeded the time limit", "retry later"]
        .iter()
        .any(|text| message.contains(text))
}

fn causes_of(response: &Value) -> Vec<StatusCause> {
    let causes = response.pointer("/status/details/causes").cloned();
    serde_json::from_value(causes.unwrap_or_else(|| json!([]))).expect("causes")
}

async fn through_the_api_server(env: &TestEnv, case: &Case, result: &CheckResult) {
    let objects = env.objects(&case.object);
    let name = &case.name_or(&case.name);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    if let Some(old) = &case.old {
        objects
            .create(&PostParams::default(), &named(old, name))
            .await
            .expect("the old object is stored");
    }
    let causes = definite(case, async || {
        let response = if case.old.is_none() {
            objects.create(&dry_run, &named(&case.object, name)).await
        } else {
            let mut object = objects.get(name).await.expect("the old object");
            object.data["spec"] = case.object["spec"].clone();
            objects.replace(name, &dry_run, &object).await
        };
        match response {
            Ok(_) => Some(Vec::new()),
            // The controller writes to the object too, and then the version that was read is outdated.
            Err(kube::Error::Api(status)) if status.code == 409 => None,
            Err(kube::Error::Api(status)) if status.code == 422 => {
                let causes = status.details.expect("details").causes;
                (!is_transient(&causes)).then_some(causes)
            }
            // On a busy machine, the API server or the webhook gives up waiting for the result.
            Err(kube::Error::Api(status)) if has_timed_out(&status.message) => None,
            Err(error) => panic!("{} through the API server: {error:?}", case.name),
        }
    })
    .await;
    assert_eq!(
        result.essences_of(&causes),
        result.through_api_server(),
        "{case} through the API server"
    );
    if case.old.is_some() {
        delete_if_related(case, &objects, name).await;
    }
}

/// Deletes the object of a case if others are related to it. Otherwise each of hundreds of workloads would run each of
/// hundreds of pipelines.
async fn delete_if_related(case: &Case, objects: &Api<DynamicObject>, name: &str) {
    if VECTOR.iter().any(|(kind, _)| case.object["kind"] == *kind) {
        delete(objects, name).await;
    }
}

async fn delete(objects: &Api<DynamicObject>, name: &str) {
    let deleted = objects.delete(name, &DeleteParams::default()).await;
    deleted.expect("deleted");
}

pub async fn in_the_controller(env: &TestEnv, case: &Case, result: &CheckResult) {
    let objects = env.objects(&case.object);
    let name = case.name_or(&format!("loop-{}", case.name));
    match &case.old {
        None => {
            objects
                .create(&PostParams::default(), &named(&case.object, &name))
                .await
                .expect("stored");
        }
        Some(old) => {
            objects
                .create(&PostParams::default(), &named(old, &name))
                .await
                .expect("stored");
            env.condition_within(DEADLINE, &objects, &name, ("Valid", "True"))
                .await;
            loop {
                let mut object = objects.get(&name).await.expect("the old object");
                object.data["spec"] = case.object["spec"].clone();
                match objects
                    .replace(&name, &PostParams::default(), &object)
                    .await
                {
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    response => break drop(response.expect("stored")),
                }
            }
        }
    }
    let valid = if result.findings.is_empty() {
        "True"
    } else {
        "False"
    };
    let condition = env
        .condition_within(DEADLINE, &objects, &name, ("Valid", valid))
        .await;
    if valid == "False" {
        let (message, whole) = (condition.message, result.message());
        // A condition holds 32 KiB at most; then only the beginning of the message is compared.
        let message = message.strip_suffix('…').unwrap_or(&message);
        let same = message == whole || (message.len() > 32_000 && whole.starts_with(message));
        assert!(
            same,
            "{case} in the controller: {message:.3000} instead of {whole:.3000}"
        );
    }
    // Hundreds of instances would take most of the time of the simulated AWS, which lists them all the time.
    delete(&objects, &name).await;
}

pub fn named(object: &Value, name: &str) -> DynamicObject {
    let mut object = object.clone();
    let annotations = object["metadata"]["annotations"].take();
    object["metadata"] = json!({"name": name, "namespace": NAMESPACE});
    if is_in_no_namespace(&object) {
        object["metadata"] = json!({"name": name});
    }
    if annotations.is_object() {
        object["metadata"]["annotations"] = annotations;
    }
    serde_json::from_value(object).expect("an object")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_gets_the_same_validation_result_everywhere() {
    let cases: Vec<_> = corpus()
        .into_iter()
        .chain(corpus_of("echo"))
        .chain(corpus_of("vector-pipeline"))
        .chain(corpus_of("cluster-vector-pipeline"))
        .chain(corpus_of("vector"))
        .chain(corpus_of("vector-aggregator"))
        .chain(corpus_of("cluster-vector-aggregator"))
        .collect();
    let results = by_check(&cases);
    let cases: Vec<_> = results.into_iter().zip(cases).collect();
    // Hundreds of instances that are polled all the time would delay the reconciliation of the next case.
    let seldom = EnvOptions {
        controller_args: vec!["--rds-resync-period=1h".to_owned()],
        kinds: Some(
            "*,Echo,VectorPipeline,ClusterVectorPipeline,Vector,VectorAggregator,ClusterVectorAggregator",
        ),
        ..EnvOptions::default()
    };
    let mut env = TestEnv::start_with(seldom).await;
    env.raise_quota();
    let webhook = &WebhookClient::of(&env).await;
    each(&cases, async |(result, case)| {
        at_the_webhook(webhook, case, result).await;
    })
    .await;
    // From here on the webhook skips the validation that the API server has already done.
    env.installation
        .restart_controller_with(&["--crd-propagation-delay=0s"])
        .expect("the process starts");
    crd_in_sync::is_known(&env, webhook).await;
    let before = crd_in_sync::rust_only(&env).await;
    each(&cases, async |(result, case)| {
        through_the_api_server(&env, case, result).await;
    })
    .await;
    let least = cases.iter().filter(|(result, _)| result.is_valid()).count() as u64;
    let rust_only = crd_in_sync::rust_only(&env).await - before;
    assert!(
        rust_only > least,
        "{rust_only} reviews skipped the CRD's validation, at least {least} expected"
    );
    env.installation
        .remove_webhook_configurations(&env.cluster)
        .expect("the webhook configurations are deleted");
    let (alone, others): (Vec<_>, Vec<_>) = cases
        .into_iter()
        .partition(|(result, _)| result.is_for_rust_alone());
    assert!(!alone.is_empty() && !others.is_empty());
    each(&alone, async |(result, case)| {
        in_the_controller(&env, case, result).await;
    })
    .await;
    // An object that the API server itself denies can be stored only if the CRD has lost its schema.
    env.empty_crd().await;
    let mut echo = corpus_of("echo").remove(0).object;
    echo["spec"]["replicas"] = json!("no number");
    env.empty_crd_of("echoes.demo.example.com", &echo).await;
    for (kind, plural) in VECTOR {
        let probe = json!({
            "apiVersion": "observability.kaasops.io/v1alpha1",
            "kind": kind,
            "metadata": {},
            "spec": {"skipPrefix": "no boolean", "selector": "no object"},
        });
        let name = format!("{plural}.observability.kaasops.io");
        env.empty_crd_of(&name, &probe).await;
    }
    each(&others, async |(result, case)| {
        in_the_controller(&env, case, result).await;
    })
    .await;
}

/// Runs eight cases at a time: most of the time of a case is waiting.
async fn each<'a, F>(
    cases: &'a [(CheckResult, Case)],
    validator: impl Fn(&'a (CheckResult, Case)) -> F,
) where
    F: Future<Output = ()>,
{
    futures::stream::iter(cases)
        .for_each_concurrent(8, validator)
        .await;
}

/// Returns true for the message of a request whose time has ended, in the words of the API server and of the webhook.
fn has_timed_out(message: &str) -> bool {
    let words = [
        "deadline exceeded",
        "took longer than the client's time-out",
    ];
    words.iter().any(|words| message.contains(words))
}
