//! The corpus: every case judged at the desk, at the gate over HTTPS, through the API server, and in the
//! loop with the gate removed. The four answers must agree.

use std::collections::BTreeSet;
use std::fs;

use kube::api::{DynamicObject, PostParams};
use kube::core::response::StatusCause;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::gate::Gate;
use crate::world::{World, check, root};

/// One file of the corpus.
#[derive(Deserialize)]
struct Case {
    #[serde(skip)]
    name: String,
    object: Value,
    #[serde(default)]
    old: Option<Value>,
    #[serde(default)]
    errors: Vec<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    rule: String,
    #[serde(rename = "type")]
    error_type: String,
    field: String,
    /// The message; for the structural layer it is the API server's own and not compared.
    #[serde(default)]
    detail: Option<String>,
}

impl Expected {
    fn is_structural(&self) -> bool {
        self.rule.contains('/')
    }
}

/// What the desk says: the verdict that the other places are compared with.
struct Verdict {
    findings: Vec<Finding>,
}

#[derive(Clone, Debug, Deserialize)]
struct Finding {
    #[serde(rename = "type")]
    error_type: String,
    field: String,
    message: String,
    rule: String,
    layer: String,
}

impl Finding {
    /// What has to be equal elsewhere: for structural errors type and path, else the message too.
    fn essence(&self) -> (String, String, String) {
        let body = self
            .message
            .strip_prefix(&format!("{}: ", self.field))
            .unwrap_or(&self.message);
        let body = if self.layer == "structural" { "" } else { body };
        (self.error_type.clone(), self.field.clone(), body.to_owned())
    }
}

impl Verdict {
    fn essences(&self, wanted: impl Fn(&Finding) -> bool) -> BTreeSet<(String, String, String)> {
        self.findings
            .iter()
            .filter(|finding| wanted(finding))
            .map(Finding::essence)
            .collect()
    }

    /// What reaches a user through the API server: it asks the gate only when it has nothing to say.
    fn through_api_server(&self) -> BTreeSet<(String, String, String)> {
        let own = self.essences(|finding| finding.layer != "rust");
        if own.is_empty() {
            self.essences(|_| true)
        } else {
            own
        }
    }

    /// Whether only the gate would refuse it, so that the API server alone stores it.
    fn is_for_rust_alone(&self) -> bool {
        self.findings.iter().all(|finding| finding.layer == "rust")
    }

    /// The message of a condition.
    fn message(&self) -> String {
        let messages: Vec<_> = self
            .findings
            .iter()
            .map(|finding| finding.message.as_str())
            .collect();
        match messages.as_slice() {
            [one] => (*one).to_owned(),
            many => format!("[{}]", many.join(", ")),
        }
    }

    /// The same for causes, which name no layer: the body counts where the desk says it counts.
    fn essences_of(&self, causes: &[StatusCause]) -> BTreeSet<(String, String, String)> {
        let structural = |cause: &StatusCause| {
            let same = |f: &&Finding| {
                f.error_type == cause.reason && f.field == cause.field && f.layer == "structural"
            };
            self.findings.iter().any(|finding| same(&finding))
        };
        causes
            .iter()
            // A remark of the API server's own, which does not count.
            .filter(|cause| {
                !cause
                    .message
                    .contains("some validation rules were not checked")
            })
            .map(|cause| {
                let body = if structural(cause) {
                    String::new()
                } else {
                    cause.message.clone()
                };
                (cause.reason.clone(), cause.field.clone(), body)
            })
            .collect()
    }
}

fn corpus() -> Vec<Case> {
    let folder = root().join("tests/cases/cloud-database");
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    assert!(paths.len() > 40, "the corpus has lost its cases");
    let read = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path).expect("a case");
        let mut case: Case = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        case.name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        case
    };
    paths.iter().map(read).collect()
}

/// Judges a case at the desk and compares with what the case expects.
fn at_the_desk(case: &Case) -> Verdict {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, object: &Value| {
        let path = directory.path().join(name);
        fs::write(&path, object.to_string()).expect("a file");
        path
    };
    let object = file("object.json", &case.object);
    let verdict = match &case.old {
        Some(old) => check(
            &["--old", &file("old.json", old).to_string_lossy()],
            &object,
        ),
        None => check(&[], &object),
    };
    let findings: Vec<Finding> =
        serde_json::from_value(verdict["errors"].clone()).expect("findings");
    let expected: Vec<_> = case
        .errors
        .iter()
        .map(|e| (&e.rule, &e.error_type, &e.field))
        .collect();
    let found: Vec<_> = findings
        .iter()
        .map(|f| (&f.rule, &f.error_type, &f.field))
        .collect();
    assert_eq!(found, expected, "{} at the desk", case.name);
    assert_eq!(
        verdict["valid"],
        json!(expected.is_empty()),
        "{} at the desk",
        case.name
    );
    for (expected, finding) in case.errors.iter().zip(&findings) {
        assert_eq!(
            expected.is_structural(),
            finding.layer == "structural",
            "{} at the desk",
            case.name
        );
        if let Some(detail) = &expected.detail {
            assert!(
                finding.message.ends_with(detail.as_str()),
                "{} at the desk: {}",
                case.name,
                finding.message
            );
        } else {
            assert!(
                expected.is_structural(),
                "{}: a detail is expected of {}",
                case.name,
                expected.rule
            );
        }
    }
    Verdict { findings }
}

async fn at_the_gate(gate: &Gate, case: &Case, verdict: &Verdict) {
    let answer = gate
        .review("/validate", &case.object, case.old.as_ref())
        .await;
    assert_eq!(
        answer["allowed"],
        json!(verdict.findings.is_empty()),
        "{} at the gate",
        case.name
    );
    let causes = answer
        .pointer("/status/details/causes")
        .cloned()
        .unwrap_or_else(|| json!([]));
    let causes: Vec<StatusCause> = serde_json::from_value(causes).expect("causes");
    assert_eq!(
        verdict.essences_of(&causes),
        verdict.essences(|_| true),
        "{} at the gate",
        case.name
    );
}

async fn through_the_api_server(world: &World, case: &Case, verdict: &Verdict) {
    let databases = world.databases();
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let answer = match &case.old {
        None => {
            databases
                .create(&dry_run, &named(&case.object, &case.name))
                .await
        }
        Some(old) => {
            databases
                .create(&PostParams::default(), &named(old, &case.name))
                .await
                .expect("the old object is stored");
            // The controller writes to the object too; then what was read is no longer what stands.
            loop {
                let mut object = databases.get(&case.name).await.expect("the old object");
                object.data["spec"] = case.object["spec"].clone();
                match databases.replace(&case.name, &dry_run, &object).await {
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    answer => break answer,
                }
            }
        }
    };
    let causes = match answer {
        Ok(_) => Vec::new(),
        Err(kube::Error::Api(status)) if status.code == 422 => {
            status.details.expect("details").causes
        }
        Err(error) => panic!("{} through the API server: {error:?}", case.name),
    };
    assert_eq!(
        verdict.essences_of(&causes),
        verdict.through_api_server(),
        "{} through the API server",
        case.name
    );
}

async fn in_the_loop(world: &World, case: &Case, verdict: &Verdict) {
    let databases = world.databases();
    let name = format!("loop-{}", case.name);
    match &case.old {
        None => {
            databases
                .create(&PostParams::default(), &named(&case.object, &name))
                .await
                .expect("stored");
        }
        Some(old) => {
            databases
                .create(&PostParams::default(), &named(old, &name))
                .await
                .expect("stored");
            world.condition(&name, "Valid", "True").await;
            loop {
                let mut object = databases.get(&name).await.expect("the old object");
                object.data["spec"] = case.object["spec"].clone();
                match databases
                    .replace(&name, &PostParams::default(), &object)
                    .await
                {
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    answer => break drop(answer.expect("stored")),
                }
            }
        }
    }
    let valid = if verdict.findings.is_empty() {
        "True"
    } else {
        "False"
    };
    let condition = world.condition(&name, "Valid", valid).await;
    if valid == "False" {
        assert_eq!(
            condition.message,
            verdict.message(),
            "{} in the loop",
            case.name
        );
    }
}

fn named(object: &Value, name: &str) -> DynamicObject {
    let mut object = object.clone();
    object["metadata"] = json!({"name": name, "namespace": crate::world::NAMESPACE});
    serde_json::from_value(object).expect("an object")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_gets_the_same_verdict_everywhere() {
    let cases: Vec<_> = corpus()
        .into_iter()
        .map(|case| (at_the_desk(&case), case))
        .collect();
    let world = World::start().await;
    let gate = Gate::of(&world).await;
    for (verdict, case) in &cases {
        at_the_gate(&gate, case, verdict).await;
        through_the_api_server(&world, case, verdict).await;
    }
    world
        .installation
        .remove_gate(&world.cluster)
        .expect("the configurations go");
    let (alone, others): (Vec<_>, Vec<_>) = cases
        .iter()
        .partition(|(verdict, _)| verdict.is_for_rust_alone());
    assert!(!alone.is_empty() && !others.is_empty());
    for (verdict, case) in alone {
        in_the_loop(&world, case, verdict).await;
    }
    // What the API server would refuse by itself gets in only where the CRD has lost its schema.
    world.empty_crd().await;
    for (verdict, case) in others {
        in_the_loop(&world, case, verdict).await;
    }
}
