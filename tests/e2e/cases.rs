//! The corpus: every case judged at the desk, at the gate over HTTPS, through the API server, and in the
//! loop with the gate removed. The four answers must agree.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::future::Future;

use futures::StreamExt;
use kube::api::{DynamicObject, PostParams};
use kube::core::response::StatusCause;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::crd_in_sync;
use crate::gate::Gate;
use crate::world::{Detours, NAMESPACE, VECTOR, World, check, is_in_no_namespace, root};

/// One file of the corpus.
#[derive(Deserialize)]
pub struct Case {
    #[serde(skip)]
    pub name: String,
    pub object: Value,
    #[serde(default)]
    pub old: Option<Value>,
    #[serde(default)]
    pub errors: Vec<Expected>,
    /// The rules that warn, where the case is about that.
    #[serde(default)]
    pub warnings: Option<Vec<String>>,
}

impl Case {
    pub fn new(name: String, object: Value, old: Option<Value>) -> Self {
        Self {
            name,
            object,
            old,
            errors: Vec::new(),
            warnings: None,
        }
    }

    /// The name of the object where the case is about names, else another one.
    fn name_or(&self, other: &str) -> String {
        let own = self.object["metadata"]["name"].as_str();
        let own = own.filter(|_| self.name.starts_with("name-"));
        own.unwrap_or(other).to_owned()
    }

    /// Whether nothing is wrong with the object.
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        // Some are huge.
        let mut write = |value: &Value| write!(f, " {:.2000}", value["spec"].to_string());
        write(&self.object)?;
        self.old.as_ref().map_or(Ok(()), write)
    }
}

#[derive(Deserialize)]
pub struct Expected {
    pub rule: String,
    #[serde(rename = "type")]
    error_type: String,
    field: String,
    /// The message; for the structural layer it is the API server's own and not compared.
    #[serde(default)]
    detail: Option<String>,
}

impl Expected {
    pub fn is_structural(&self) -> bool {
        self.rule.contains('/')
    }
}

/// What the desk says: the verdict that the other places are compared with.
pub struct Verdict {
    findings: Vec<Finding>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Finding {
    #[serde(rename = "type")]
    error_type: String,
    field: String,
    message: String,
    pub rule: String,
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
    pub fn new(findings: Vec<Finding>) -> Self {
        Self { findings }
    }

    pub fn is_valid(&self) -> bool {
        self.findings.is_empty()
    }

    pub fn has(&self, what: impl Fn(&Finding) -> bool) -> bool {
        self.findings.iter().any(what)
    }

    fn essences(&self, wanted: impl Fn(&Finding) -> bool) -> BTreeSet<(String, String, String)> {
        self.findings
            .iter()
            .filter(|finding| wanted(finding))
            .map(Finding::essence)
            .collect()
    }

    /// What reaches a user through the API server: it asks the gate only when it has nothing to say.
    pub fn through_api_server(&self) -> BTreeSet<(String, String, String)> {
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

    /// The same for causes, which name no layer: the message does not count where the desk has a
    /// structural error there, and none that says the same.
    pub fn essences_of(&self, causes: &[StatusCause]) -> BTreeSet<(String, String, String)> {
        let at_desk = self.essences(|_| true);
        let is_own_wording = |cause: &StatusCause| {
            let essence = |message: &str| {
                (
                    cause.reason.clone(),
                    cause.field.clone(),
                    message.to_owned(),
                )
            };
            !at_desk.contains(&essence(&cause.message)) && at_desk.contains(&essence(""))
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
                let body = if is_own_wording(cause) {
                    String::new()
                } else {
                    cause.message.clone()
                };
                (cause.reason.clone(), cause.field.clone(), body)
            })
            .collect()
    }
}

/// The cases of `CloudDatabase`.
pub fn corpus() -> Vec<Case> {
    let cases = corpus_of("cloud-database");
    assert!(cases.len() > 150, "the corpus has lost its cases");
    cases
}

/// The cases of one kind.
pub fn corpus_of(kind: &str) -> Vec<Case> {
    let folder = root().join("tests/cases").join(kind);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
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
    if let Some(warnings) = &case.warnings {
        let found: Vec<Finding> =
            serde_json::from_value(verdict["warnings"].clone()).expect("findings");
        let found: Vec<_> = found.into_iter().map(|finding| finding.rule).collect();
        assert_eq!(&found, warnings, "{} at the desk", case.name);
    }
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
    Verdict::new(findings)
}

pub async fn at_the_gate(gate: &Gate, case: &Case, verdict: &Verdict) {
    let answer = gate
        .review("/validate", &case.object, case.old.as_ref())
        .await;
    assert_eq!(
        answer["allowed"],
        json!(verdict.findings.is_empty()),
        "{case} at the gate"
    );
    if let Some(warnings) = &case.warnings {
        let texts = answer["warnings"].as_array().cloned().unwrap_or_default();
        assert_eq!(texts.len(), warnings.len(), "{case} at the gate");
        for (text, rule) in texts.iter().zip(warnings) {
            let text = text.as_str().unwrap_or_default();
            assert!(text.contains(&format!("[{rule}]")), "{case}: {text}");
        }
    }
    let causes = answer
        .pointer("/status/details/causes")
        .cloned()
        .unwrap_or_else(|| json!([]));
    let causes: Vec<StatusCause> = serde_json::from_value(causes).expect("causes");
    assert_eq!(
        verdict.essences_of(&causes),
        verdict.essences(|_| true),
        "{case} at the gate"
    );
}

async fn through_the_api_server(world: &World, case: &Case, verdict: &Verdict) {
    let objects = world.objects(&case.object);
    let name = &case.name_or(&case.name);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let answer = match &case.old {
        None => objects.create(&dry_run, &named(&case.object, name)).await,
        Some(old) => {
            objects
                .create(&PostParams::default(), &named(old, name))
                .await
                .expect("the old object is stored");
            // The controller writes to the object too; then what was read is no longer what stands.
            loop {
                let mut object = objects.get(name).await.expect("the old object");
                object.data["spec"] = case.object["spec"].clone();
                match objects.replace(name, &dry_run, &object).await {
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
        "{case} through the API server"
    );
}

pub async fn in_the_loop(world: &World, case: &Case, verdict: &Verdict) {
    let objects = world.objects(&case.object);
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
            world.condition_of(&objects, &name, "Valid", "True").await;
            loop {
                let mut object = objects.get(&name).await.expect("the old object");
                object.data["spec"] = case.object["spec"].clone();
                match objects
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
    let condition = world.condition_of(&objects, &name, "Valid", valid).await;
    if valid == "False" {
        let (said, whole) = (condition.message, verdict.message());
        // A condition holds 32 KiB at most; the beginning stands.
        let said = said.strip_suffix('…').unwrap_or(&said);
        let same = said == whole || (said.len() > 32_000 && whole.starts_with(said));
        assert!(
            same,
            "{case} in the loop: {said:.3000} and not {whole:.3000}"
        );
    }
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
async fn every_case_gets_the_same_verdict_everywhere() {
    let cases: Vec<_> = corpus()
        .into_iter()
        .chain(corpus_of("echo"))
        .chain(corpus_of("vector-pipeline"))
        .chain(corpus_of("cluster-vector-pipeline"))
        .chain(corpus_of("vector"))
        .chain(corpus_of("vector-aggregator"))
        .chain(corpus_of("cluster-vector-aggregator"))
        .map(|case| (at_the_desk(&case), case))
        .collect();
    // Hundreds of instances, looked at all the time, would keep the controller from the next case.
    let seldom = Detours {
        controller_args: vec!["--rds-resync=1h".to_owned()],
        kinds: Some(
            "*,Echo,VectorPipeline,ClusterVectorPipeline,Vector,VectorAggregator,ClusterVectorAggregator",
        ),
        ..Detours::default()
    };
    let mut world = World::start_with(seldom).await;
    let gate = &Gate::of(&world).await;
    each(&cases, async |(verdict, case)| {
        at_the_gate(gate, case, verdict).await;
    })
    .await;
    // From now on the gate leaves to the API server what that has judged.
    world
        .installation
        .restart_controller_with(&["--crd-settle=0s"])
        .expect("it starts");
    crd_in_sync::is_known(&world, gate).await;
    let before = crd_in_sync::rust_only(&world).await;
    each(&cases, async |(verdict, case)| {
        through_the_api_server(&world, case, verdict).await;
    })
    .await;
    let least = cases
        .iter()
        .filter(|(verdict, _)| verdict.is_valid())
        .count() as u64;
    let rust_only = crd_in_sync::rust_only(&world).await - before;
    assert!(rust_only > least, "{rust_only} of at least {least}");
    world
        .installation
        .remove_gate(&world.cluster)
        .expect("the configurations go");
    let (alone, others): (Vec<_>, Vec<_>) = cases
        .into_iter()
        .partition(|(verdict, _)| verdict.is_for_rust_alone());
    assert!(!alone.is_empty() && !others.is_empty());
    each(&alone, async |(verdict, case)| {
        in_the_loop(&world, case, verdict).await;
    })
    .await;
    // What the API server would refuse by itself gets in only where the CRD has lost its schema.
    world.empty_crd().await;
    let mut echo = corpus_of("echo").remove(0).object;
    echo["spec"]["replicas"] = json!("no number");
    world.empty_crd_of("echoes.demo.example.com", &echo).await;
    for (kind, plural) in VECTOR {
        let probe = json!({
            "apiVersion": "observability.kaasops.io/v1alpha1",
            "kind": kind,
            "metadata": {},
            "spec": {"skipPrefix": "no boolean", "selector": "no object"},
        });
        let name = format!("{plural}.observability.kaasops.io");
        world.empty_crd_of(&name, &probe).await;
    }
    each(&others, async |(verdict, case)| {
        in_the_loop(&world, case, verdict).await;
    })
    .await;
}

/// Some cases at a time: most of a case is waiting.
async fn each<'a, F>(cases: &'a [(Verdict, Case)], judge: impl Fn(&'a (Verdict, Case)) -> F)
where
    F: Future<Output = ()>,
{
    futures::stream::iter(cases)
        .for_each_concurrent(8, judge)
        .await;
}
