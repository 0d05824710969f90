//! Decisions, and requests to the API server.

use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use kube::client::Body;
use kube::core::{ObjectMeta, Status};

use super::*;

fn secret(name: &str, value: &str, version: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": "n", "resourceVersion": version},
        "data": {"key": value},
    })
}

fn child(object: Value) -> DynamicObject {
    serde_json::from_value(object).expect("an object")
}

#[test]
fn versions_are_new_once_all_secrets_have_their_desired_content() {
    let config = child(secret("logs-agent", "a", Some("7")));
    let assets = child(secret("logs-agent-secret-assets", "b", Some("12")));
    let parts = child(secret("logs-agent-parts", "c", Some("9")));
    let mut elsewhere = child(secret("logs-agent", "a", Some("8")));
    elsewhere.metadata.namespace = Some("other".to_owned());
    let children = [&elsewhere, &config, &assets, &parts];
    let desired = [
        json!({"kind": "DaemonSet", "metadata": {"name": "logs-agent", "namespace": "n"}}),
        secret("logs-agent", "a", None),
        secret("logs-agent-secret-assets", "b", None),
    ];
    let new = |desired: &[Value], refreshed| new_versions(desired, &children, refreshed);
    assert_eq!(new(&desired, None).as_deref(), Some("7-12"));
    assert_eq!(new(&desired, Some("7-11")).as_deref(), Some("7-12"));
    assert_eq!(new(&desired, Some("7-12")), None);
    // Another client has changed the content, or the next publication is about to be written.
    let drifted = [secret("logs-agent", "changed", None)];
    assert_eq!(new(&drifted, Some("6")), None);
    assert_eq!(new(&[secret("logs-agent-1", "a", None)], None), None);
    assert_eq!(new(&[], None), None);
}

#[test]
fn pods_that_have_the_annotation_or_are_being_deleted_are_not_patched() {
    let pod = |name: &str, versions: Option<&str>, is_deleted: bool| {
        let metadata = json!({
            "name": name,
            "annotations": versions.map(|it| json!({ANNOTATION: it, "other": "x"})),
            "deletionTimestamp": is_deleted.then_some("2026-01-05T10:00:00Z"),
        });
        let metadata: ObjectMeta = serde_json::from_value(metadata).expect("metadata");
        PartialObjectMeta {
            metadata,
            ..PartialObjectMeta::default()
        }
    };
    let pods = [
        pod("new", None, false),
        pod("old", Some("6"), false),
        pod("current", Some("7"), false),
        pod("deleted", Some("6"), true),
    ];
    assert_eq!(outdated(&pods, "7"), ["new", "old"]);
}

#[test]
fn a_lost_pod_is_no_error_and_a_denial_is_not_repeated() {
    let error = |code: u16, reason: &str| {
        let status = Status::failure(reason, reason).with_code(code);
        kube::Error::Api(Box::new(status))
    };
    for (error, expected) in [
        (error(404, "NotFound"), Refresh::Done),
        (error(403, "Forbidden"), Refresh::Denied),
        (error(422, "Invalid"), Refresh::Denied),
        (error(429, "TooManyRequests"), Refresh::Incomplete),
        (error(500, "InternalError"), Refresh::Incomplete),
    ] {
        assert_eq!(result_of(&error), expected, "{error}");
    }
    let all = [Refresh::Done, Refresh::Incomplete, Refresh::Denied];
    assert_eq!(all.into_iter().max(), Some(Refresh::Incomplete));
}

/// Refreshes these Pods, of which `rejected` gets this error response. Returns the result and the requests.
async fn requests_for(
    pods: &[&str],
    rejected: &str,
    code: u16,
    why: &'static str,
) -> (Refresh, Vec<String>) {
    let items = pods.iter().map(|name| {
        json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": name},
        })
    });
    let list = json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {},
        "items": items.collect::<Vec<_>>(),
    });
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (seen, rejected) = (Arc::clone(&requests), format!("/{rejected}"));
    let server = tower::service_fn(move |request: Request<Body>| {
        let (method, uri) = (request.method(), request.uri());
        seen.lock()
            .expect("no panic")
            .push(format!("{method} {uri}"));
        let (code, body) = if *method == Method::GET {
            (200, list.clone())
        } else if uri.path().ends_with(&rejected) {
            (code, json!(Status::failure("", why).with_code(code)))
        } else {
            (200, list["items"][0].clone())
        };
        let body = Body::from(body.to_string().into_bytes());
        let response = Response::builder().status(code).body(body);
        async { Ok::<_, std::io::Error>(response.expect("a response")) }
    });
    let client = Client::new(server, "n");
    let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    let result = refresh(&client, "n", &labels, "7-12", MAX_PODS).await;
    let mut requests = requests.lock().expect("no panic").clone();
    requests[1..].sort();
    (result, requests)
}

#[tokio::test]
async fn a_limited_number_of_pods_is_listed_by_labels_and_patched() {
    let (result, requests) = requests_for(&["one", "lost", "two"], "lost", 404, "NotFound").await;
    assert_eq!(result, Refresh::Done);
    let expected = [
        "GET /api/v1/namespaces/n/pods?&labelSelector=a%3Db&limit=500",
        "PATCH /api/v1/namespaces/n/pods/lost?",
        "PATCH /api/v1/namespaces/n/pods/one?",
        "PATCH /api/v1/namespaces/n/pods/two?",
    ];
    assert_eq!(requests, expected);
    let (result, requests) = requests_for(&["one", "two"], "one", 500, "InternalError").await;
    assert_eq!((result, requests.len()), (Refresh::Incomplete, 3));
}

#[test]
fn many_sources_that_watch_pods_limit_the_number_of_refreshed_pods() {
    let configuration = |watching: usize| {
        let source = |at| (format!("in-{at}"), json!({"type": "kubernetes_logs"}));
        let mut sources: serde_json::Map<_, _> = (0..watching).map(source).collect();
        sources.insert("metrics".to_owned(), json!({"type": "internal_metrics"}));
        json!({"sources": sources})
    };
    assert_eq!(max_pods(&configuration(0)), MAX_PODS);
    assert_eq!(max_pods(&configuration(20)), MAX_PODS);
    assert_eq!(max_pods(&configuration(500)), 20);
    assert_eq!(max_pods(&configuration(20_000)), 0);
}
