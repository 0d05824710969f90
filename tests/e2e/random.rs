//! Thousands of randomly modified objects: `lockstep check`, the webhook over HTTPS, the API server and the
//! controller must have the same result for each.

use std::io::Write;
use std::process::{Command, Stdio};

use futures::StreamExt;
use futures::stream;
use kube::api::PostParams;
use kube::core::response::StatusCause;
use parity::mutate::{Mutated, Mutator};
use parity::{Response, Server};
use serde_json::Value;

use crate::cases;
use crate::corpus::{Case, corpus};
use crate::env::{EnvOptions, TestEnv, root};
use crate::result::{CheckResult, Finding};
use crate::webhook::WebhookClient;

const NEW_OBJECTS: usize = 2400;
const STORED_OBJECTS: usize = 40;
const CHANGES_OF_EACH: usize = 30;
/// Number of objects that the controller validates. Each is stored, and each valid one gets an instance.
const IN_CONTROLLER: usize = 300;

/// One object, as the text that is sent and as a case for comparison.
struct Sample {
    sent: parity::Case,
    case: Case,
}

impl Sample {
    fn new(name: String, object: Mutated, old: Option<&Value>) -> Self {
        let sent = match old {
            Some(old) => parity::Case::update(&name, &object.value, old),
            None => parity::Case::create(&name, &object.value),
        };
        Self {
            sent: parity::Case {
                object: object.text,
                ..sent
            },
            case: Case::new(name, object.value, old.cloned()),
        }
    }
}

/// Returns true for errors in the text of an object. The webhook and the controller never get such an object, because
/// the API server decodes strictly or prunes unknown fields.
fn is_about_the_text(finding: &Finding) -> bool {
    finding.rule.ends_with("/unknown") || finding.rule.ends_with("/repeated")
}

#[tokio::test(flavor = "multi_thread")]
async fn random_objects_get_the_same_validation_result_everywhere() {
    let seed = parity::seed();
    println!("seed {seed}; set LOCKSTEP_SEED=N for other objects");
    let options = EnvOptions {
        controller_args: vec!["--rds-resync-period=1h".to_owned()],
        ..EnvOptions::default()
    };
    let mut env = TestEnv::start_with(options).await;
    let webhook = WebhookClient::of(&env).await;
    // The objects that are stored as old objects must not be changed by the controller.
    let controller = env.installation.controller();
    controller.terminate().expect("a signal");
    controller.ended().await;

    let valid = corpus().into_iter().filter(Case::is_valid);
    let mut mutator = Mutator::new(valid.map(|case| case.object).collect(), seed);
    let stored = store(&env, &mut mutator).await;
    let samples = samples(&mut mutator, &stored);
    let results = by_check(&samples);
    let denied = results.iter().filter(|result| !result.is_valid()).count();
    println!("{} objects, {denied} invalid", samples.len());
    assert!(denied * 4 > samples.len() && denied * 4 < samples.len() * 3);

    let validated: Vec<_> = samples.iter().zip(&results).collect();
    let server = &Server::of(env.cluster.client(), &crd(), "v1alpha1");
    let webhook = &webhook;
    stream::iter(&validated)
        .for_each_concurrent(8, async |(sample, result)| {
            through_the_api_server(server, sample, result).await;
            if !result.has(is_about_the_text) {
                cases::at_the_webhook(webhook, &sample.case, result).await;
            }
        })
        .await;

    env.installation
        .remove_webhook_configurations(&env.cluster)
        .expect("the webhook configurations are deleted");
    env.empty_crd().await;
    env.installation.start_controller().expect("a controller");
    let whole: Vec<_> = validated
        .iter()
        .filter(|(_, result)| !result.has(is_about_the_text))
        // A number that was sent as `1.0` is stored as `1`, so that messages print it differently.
        .filter(|(sample, _)| !sample.sent.object.contains(".0"))
        .collect();
    // A sample of both sorts: the new objects come first.
    let apart = whole.len().div_ceil(IN_CONTROLLER);
    stream::iter(whole.iter().step_by(apart))
        .for_each_concurrent(8, async |(sample, result)| {
            cases::in_the_controller(&env, &sample.case, result).await;
        })
        .await;
}

fn crd() -> Value {
    let path = root().join("manifests/config/crds/clouddatabases.yaml");
    let text = std::fs::read_to_string(path).expect("the CRD");
    serde_saphyr::from_str(&text).expect("a CRD")
}

/// Stores valid objects, which updates then change.
async fn store(env: &TestEnv, mutator: &mut Mutator) -> Vec<Value> {
    let mut stored = Vec::new();
    for index in 0..STORED_OBJECTS {
        let object = cases::named(&mutator.valid_object(), &format!("stored-{index}"));
        let object = env
            .databases()
            .create(&PostParams::default(), &object)
            .await
            .expect("a valid object is stored");
        stored.push(serde_json::to_value(object).expect("JSON"));
    }
    stored
}

fn samples(mutator: &mut Mutator, stored: &[Value]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for index in 0..NEW_OBJECTS {
        let name = format!("new-{index}");
        let valid_object = mutator.valid_object();
        let valid_object = serde_json::to_value(cases::named(&valid_object, &name)).expect("JSON");
        samples.push(Sample::new(name, mutator.mutated(&valid_object), None));
    }
    for old in stored {
        for index in 0..CHANGES_OF_EACH {
            let name = old["metadata"]["name"].as_str().expect("a name");
            let new = mutator.mutated(old);
            samples.push(Sample::new(format!("{name}-{index}"), new, Some(old)));
        }
    }
    samples
}

/// Validates all objects in one run of `lockstep check`.
fn by_check(samples: &[Sample]) -> Vec<CheckResult> {
    let mut cli = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["check", "--input-format=jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`lockstep check` runs");
    let mut input = cli.stdin.take().expect("a pipe to standard input");
    let lines: Vec<_> = samples
        .iter()
        .map(|sample| serde_json::to_string(&sample.sent).expect("a line"))
        .collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(input, "{line}").expect("`lockstep check` reads its input");
        }
    });
    let output = cli.wait_with_output().expect("validation results");
    writer.join().expect("everything was written");
    let text = String::from_utf8(output.stdout).expect("text");
    let results: Vec<_> = text
        .lines()
        .zip(samples)
        .map(|(line, sample)| {
            let result: Value = serde_json::from_str(line).expect("a validation result");
            assert_eq!(result["id"], sample.sent.id);
            let findings = serde_json::from_value(result["errors"].clone());
            CheckResult::new(findings.unwrap_or_else(|error| panic!("{error}: {line}")))
        })
        .collect();
    assert_eq!(results.len(), samples.len());
    results
}

async fn through_the_api_server(server: &Server, sample: &Sample, result: &CheckResult) {
    let Sample { sent, case } = sample;
    let Response {
        valid,
        code,
        causes,
    } = server.send_case(sent).await.expect("a response");
    assert_eq!(
        valid,
        result.is_valid(),
        "{case} through the API server: {causes:?}"
    );
    // A decoding error of the API server names no field.
    if code == 400 {
        assert!(
            result.has(is_about_the_text),
            "{case} through the API server: {causes:?}"
        );
        return;
    }
    let causes: Vec<_> = causes
        .into_iter()
        .map(|cause| StatusCause {
            reason: cause.reason,
            message: cause.message,
            field: cause.field,
        })
        .collect();
    assert_eq!(
        result.essences_of(&causes),
        result.through_api_server(),
        "{case} through the API server, {code}"
    );
}
