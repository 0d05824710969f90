//! All owned objects of typical workloads, compared with files. `LOCKSTEP_UPDATE=1` writes the files.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::owned::tests::{Input, Kind, event_pipeline, listener};

/// Compares all children with those of a file.
fn compare(file: &str, input: &Input<'_>) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/owned/tests");
    let path = path.join(file);
    let objects = input.objects();
    assert_eq!(objects.notices, [""; 0]);
    let documents = objects.children.iter();
    let documents = documents.map(|child| serde_saphyr::to_string(child).expect("YAML"));
    let written = documents.collect::<Vec<_>>().join("---\n");
    if std::env::var_os("LOCKSTEP_UPDATE").is_some() {
        fs::write(&path, &written).expect("the file can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == written,
        "{file} is not current: run this test with LOCKSTEP_UPDATE=1 and read the difference. Children:\n{written}"
    );
}

#[test]
fn a_minimal_vector() {
    compare("vector.yaml", &Input::new(Kind::Vector));
}

#[test]
fn a_minimal_aggregator() {
    let mut input = Input::new(Kind::VectorAggregator);
    input.publication.services = vec![listener("app", "httpIn", 9000)];
    compare("aggregator.yaml", &input);
}

#[test]
fn an_aggregator_with_persistent_storage() {
    let input = Input::new(Kind::VectorAggregator)
        .with("persistence.enabled", json!(true))
        .with("replicas", json!(2))
        .with("podDisruptionBudget.enabled", json!(true));
    compare("aggregator-persistent.yaml", &input);
}

#[test]
fn a_cluster_scoped_aggregator_with_autoscaling_and_event_collector() {
    let mut input = Input::new(Kind::ClusterVectorAggregator)
        .with("autoscaling.enabled", json!(true))
        .with("api", json!({"enabled": true, "healthcheck": true}))
        .with("internalMetrics", json!(true));
    input.publication.services = vec![event_pipeline(None)];
    compare("aggregator-autoscaling.yaml", &input);
}
