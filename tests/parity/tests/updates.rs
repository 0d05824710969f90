//! Updates whose old object comes from a file: the file lacks what the API server adds to a stored object.

use lockstep_shared_validation::CrdValidator;
use parity::server::Server;
use parity::{Case, Summary};
use serde_json::{Value, json};

/// Cluster-scoped kind with a rule on the whole object, a rule on a field and a maximum.
fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gauges.updates.test"},
        "spec": {
            "group": "updates.test",
            "names": {"kind": "Gauge", "listKind": "GaugeList", "plural": "gauges", "singular": "gauge"},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {
                    // Described, so that the metadata of a file can count as unchanged.
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
                    "spec": {
                    "type": "object",
                    "properties": {
                        "level": {"type": "integer"},
                        "ratio": {"type": "number", "maximum": 0.5},
                        "note": {"type": "string"},
                    },
                }},
                "x-kubernetes-validations": [
                    {"rule": "!has(self.spec.level) || self.spec.level <= 10", "message": "is too high"},
                ],
            }}}],
        },
    })
}

fn gauge(name: &str, metadata: &Value, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "updates.test/v1", "kind": "Gauge", "metadata": metadata, "spec": spec,
    });
    object["metadata"]["name"] = json!(name);
    object
}

/// Raw text of an object with a number that `serde_json` would print differently.
fn with_text(object: &Value, number: &str) -> String {
    object.to_string().replace("\"RATIO\"", number)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_object_from_a_file_is_compared_as_the_api_server_stores_it() {
    let crd = crd();
    let validator = CrdValidator::compile(&crd, "v1").expect("the CRD compiles");
    let server = Server::start(&crd, "v1").await.expect("the server starts");
    let stored = server
        .store_without_validation(vec![
            gauge("high", &json!({}), &json!({"level": 11})),
            gauge("ratio", &json!({}), &json!({"ratio": 1})),
        ])
        .await
        .expect("the objects are stored");
    let version = |name: &str| {
        let found = stored.iter().find(|one| one["metadata"]["name"] == name);
        let found = found.expect("the object is stored");
        json!({"resourceVersion": found["metadata"]["resourceVersion"]})
    };
    let (high, ratio) = (version("high"), version("ratio"));
    let texts = [
        // A rule on the whole object fails again, although the spec is unchanged.
        (
            "unchanged",
            "high",
            &high,
            json!({"level": 11}),
            json!({"level": 11}),
            "0",
        ),
        (
            "changed",
            "high",
            &high,
            json!({"level": 11}),
            json!({"level": 11, "note": "a"}),
            "0",
        ),
        // The file says `1.0`, and the API server has stored `1`.
        (
            "whole",
            "ratio",
            &ratio,
            json!({"ratio": "RATIO"}),
            json!({"ratio": 1, "note": "a"}),
            "1.0",
        ),
        (
            "float",
            "ratio",
            &ratio,
            json!({"ratio": "RATIO"}),
            json!({"ratio": "RATIO", "note": "a"}),
            "1.0",
        ),
    ];
    let mut summary = Summary::default();
    let mut valid = Vec::new();
    for (id, name, metadata, old, new, number) in texts {
        let mut case = Case::update(id, &Value::Null, &Value::Null);
        case.object = with_text(&gauge(name, metadata, &new), number);
        let response = server.send_case(&case).await.expect("the server responds");
        // The files have no resource version, which a write needs.
        case.object = with_text(&gauge(name, &json!({}), &new), number);
        case.old_object = Some(with_text(&gauge(name, &json!({}), &old), number));
        valid.extend(response.valid.then_some(id));
        case.response = Some(response);
        summary
            .count(&case, &validator)
            .expect("the case has a response");
    }
    for (id, namespace) in [("namespaced", "default"), ("misnamed", "No_Name")] {
        let mut case = Case::create(id, &gauge(id, &json!({"namespace": namespace}), &json!({})));
        case.response = Some(server.send_case(&case).await.expect("the server responds"));
        summary
            .count(&case, &validator)
            .expect("the case has a response");
    }
    assert!(summary.is_equal(), "{summary}");
    // Some of each, so that the comparison proves something.
    assert_eq!(
        (summary.cases, summary.rejected),
        (6, 3),
        "valid: {valid:?}"
    );
}
