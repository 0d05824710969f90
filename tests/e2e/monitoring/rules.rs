//! The alerting rules: their syntax, their tests, their runbooks, and the object for the Prometheus Operator.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lockstep_envtest::promtool;
use serde_json::{Value, json};

use crate::env::root;

/// Beginning of every link to a runbook.
const RUNBOOKS: &str = "https://github.com/platform/lockstep/blob/main/docs/runbooks.md#";

/// Folder of the rules.
fn folder() -> PathBuf {
    root().join("manifests/monitoring")
}

/// Alerting rule.
pub struct Alert {
    pub name: String,
    pub expr: String,
    runbook: String,
}

/// Test of a rule.
pub struct RuleTest {
    pub alert: String,
    pub fires: bool,
    pub series: Vec<String>,
}

fn read(path: &Path) -> Value {
    let shown = path.display();
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{shown}: {error}"));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{shown}: {error}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

pub fn alerts() -> Vec<Alert> {
    let file = read(&folder().join("rules.yaml"));
    let rules = list(&file["groups"])
        .iter()
        .flat_map(|group| list(&group["rules"]));
    let alerts = rules.map(|rule| Alert {
        name: text(&rule["alert"]),
        expr: text(&rule["expr"]),
        runbook: text(&rule["annotations"]["runbook_url"]),
    });
    alerts.collect()
}

pub fn tests() -> Vec<RuleTest> {
    let file = read(&root().join("tests/e2e/monitoring/alerts.yaml"));
    let tests = list(&file["tests"]).iter().map(|test| {
        let cases = list(&test["alert_rule_test"]);
        let fires = |case: &Value| !list(&case["exp_alerts"]).is_empty();
        RuleTest {
            alert: text(&cases[0]["alertname"]),
            fires: cases.iter().any(fires),
            series: list(&test["input_series"])
                .iter()
                .map(|one| text(&one["series"]))
                .collect(),
        }
    });
    tests.collect()
}

#[test]
fn promtool_finds_no_error_in_the_rules() {
    let said = promtool(
        &folder(),
        &["check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"],
    )
    .unwrap_or_else(|error| panic!("{error}"));
    assert!(said.contains("SUCCESS"), "{said}");
}

#[test]
fn alerts_fire_and_stay_silent_as_their_tests_expect() {
    let folder = root().join("tests/e2e/monitoring");
    promtool(&folder, &["test", "rules", "alerts.yaml"]).unwrap_or_else(|error| panic!("{error}"));
}

/// `WRITE=1 cargo test --test e2e -- the_prometheus_rule` writes the object.
#[test]
fn the_prometheus_rule_has_the_same_groups() {
    let path = folder().join("prometheus-rule.yaml");
    let rules = read(&folder().join("rules.yaml"));
    let object = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": "lockstep",
            "namespace": "lockstep-system",
            "labels": {"app.kubernetes.io/name": "lockstep"},
        },
        "spec": rules,
    });
    let yaml = serde_saphyr::to_string(&object).expect("YAML");
    let expected = format!("# Written from rules.yaml by a test; do not edit.\n{yaml}");
    if std::env::var_os("WRITE").is_some() {
        fs::write(&path, &expected).expect("the file is written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "run this test with WRITE=1");
}

#[test]
fn every_alert_has_a_section_in_the_runbooks_and_every_section_an_alert() {
    let runbooks = fs::read_to_string(root().join("docs/runbooks.md")).expect("the runbooks");
    let sections: BTreeSet<&str> = runbooks
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    let alerts = alerts();
    for alert in &alerts {
        let anchor = format!("{RUNBOOKS}{}", alert.name.to_lowercase());
        assert_eq!(alert.runbook, anchor, "{}", alert.name);
    }
    let names: BTreeSet<&str> = alerts.iter().map(|alert| alert.name.as_str()).collect();
    assert_eq!(sections, names);
}

#[test]
fn every_metric_that_the_documents_advise_to_alert_on_has_an_alert() {
    let alerts = alerts();
    let mut found = 0;
    for entry in fs::read_dir(root().join("docs")).expect("the documents") {
        let path = entry.expect("a document").path();
        let document = fs::read_to_string(&path).unwrap_or_default();
        let advising = document
            .split("\n\n")
            .filter(|paragraph| paragraph.to_lowercase().contains("alert on"));
        for paragraph in advising {
            found += 1;
            let words = paragraph
                .split('`')
                .map(|word| word.split('{').next().unwrap_or(word));
            let mut metrics = words.filter(|word| word.starts_with("lockstep_"));
            let is_used =
                metrics.any(|metric| alerts.iter().any(|alert| alert.expr.contains(metric)));
            assert!(is_used, "{}: no alert for: {paragraph}", path.display());
        }
    }
    assert!(found >= 2, "the documents advise to alert on metrics");
}
