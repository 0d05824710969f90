//! What is no review gets a defined answer: never a hang, never an allow.

use http::Request;
use serde_json::{Value, json};

use crate::gate::{Gate, review};
use crate::world::{World, database};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_review_gets_a_defined_answer() {
    let mut world = World::start().await;
    let gate = Gate::of(&world).await;
    let json_post = |path: &str, body: Vec<u8>| {
        Request::post(path)
            .header("content-type", "application/json; charset=utf-8")
            .body(body)
            .expect("a request")
    };
    let valid = review(&database("a"), None);
    let without = |pointer: &str, field: &str| {
        let mut review = valid.clone();
        review
            .pointer_mut(pointer)
            .and_then(Value::as_object_mut)
            .expect("an object")
            .remove(field);
        review.to_string().into_bytes()
    };
    let with = |pointer: &str, value: Value| {
        let mut review = valid.clone();
        *review.pointer_mut(pointer).expect("a field") = value;
        review.to_string().into_bytes()
    };
    let requests = [
        (
            400,
            "malformed JSON",
            json_post("/validate", b"{\"apiVersion\": ".to_vec()),
        ),
        (400, "an empty body", json_post("/validate", Vec::new())),
        (
            400,
            "not UTF-8",
            json_post("/mutate", b"{\"kind\": \"\xff\"}".to_vec()),
        ),
        (
            400,
            "another kind",
            json_post("/validate", with("/kind", json!("TokenReview"))),
        ),
        (
            400,
            "another version",
            json_post(
                "/validate",
                with("/apiVersion", json!("admission.k8s.io/v1beta1")),
            ),
        ),
        (
            400,
            "no request",
            json_post("/validate", without("", "request")),
        ),
        (
            400,
            "no object",
            json_post("/validate", without("/request", "object")),
        ),
        (
            400,
            "a null object",
            json_post("/mutate", with("/request/object", Value::Null)),
        ),
        (
            400,
            "no uid",
            json_post("/validate", without("/request", "uid")),
        ),
        (
            400,
            "an empty uid",
            json_post("/validate", with("/request/uid", json!(""))),
        ),
        (
            400,
            "nesting beyond reason",
            json_post(
                "/validate",
                [vec![b'['; 100_000], vec![b']'; 100_000]].concat(),
            ),
        ),
        (
            413,
            "an oversized body",
            json_post("/validate", vec![b' '; 7 * 1024 * 1024 + 1]),
        ),
        (
            415,
            "another content type",
            Request::post("/validate")
                .header("content-type", "text/plain")
                .body(b"{}".to_vec())
                .expect("a request"),
        ),
        (
            415,
            "no content type",
            Request::post("/validate")
                .body(b"{}".to_vec())
                .expect("a request"),
        ),
        (
            405,
            "another method",
            Request::get("/validate")
                .body(Vec::new())
                .expect("a request"),
        ),
        (
            404,
            "another path",
            json_post("/", valid.to_string().into_bytes()),
        ),
    ];
    for (code, what, request) in requests {
        let answer = gate.send(request).await;
        let body = String::from_utf8_lossy(answer.body()).into_owned();
        assert_eq!(answer.status(), code, "{what}: {body}");
        let status: Value =
            serde_json::from_str(&body).unwrap_or_else(|error| panic!("{what}: {error}: {body}"));
        assert_eq!(
            (&status["kind"], &status["status"], &status["code"]),
            (&json!("Status"), &json!("Failure"), &json!(code)),
            "{what}"
        );
        assert!(
            status["message"]
                .as_str()
                .is_some_and(|message| message.len() > 10),
            "{what}: {body}"
        );
        assert!(!body.contains("allowed"), "{what}: {body}");
    }

    // A review of a kind that is not registered is answered as one, and refused.
    let mut unknown = valid.clone();
    unknown["request"]["kind"]["kind"] = json!("Widget");
    let answer = gate.post("/validate", &unknown).await;
    let answered: Value = serde_json::from_slice(answer.body()).expect("JSON");
    assert_eq!(answered["response"]["allowed"], false);
    assert_eq!(answered["response"]["uid"], valid["request"]["uid"]);
    assert!(
        answered["response"]["status"]["message"]
            .as_str()
            .is_some_and(|m| m.contains("Widget")),
        "{answered}"
    );

    // Two objects of the API server's limit fit into one review.
    let mut large = database("a");
    large["metadata"]["annotations"] = json!({"large": "x".repeat(3 * 1024 * 1024 - 2048)});
    assert_eq!(
        gate.review("/validate", &large, Some(&large)).await["allowed"],
        true
    );

    // Defaults come as a patch, warnings beside the verdict.
    let mut object = database("a");
    object["spec"]["storage"]["maxSizeGib"] = json!(115);
    let warned = gate.review("/validate", &object, None).await;
    assert_eq!(warned["allowed"], true);
    assert!(
        warned["warnings"][0]
            .as_str()
            .is_some_and(|w| w.contains("[autoscaling-headroom]")),
        "{warned}"
    );
    assert_eq!(
        gate.review("/mutate", &object, None).await["patchType"],
        "JSONPatch"
    );

    let metrics = world
        .metrics(&world.installation.webhook_health_url())
        .await;
    assert!(
        metrics.contains(
            r#"controller_runtime_webhook_requests_total{webhook="/validate",code="413"} 1"#
        ),
        "{metrics}"
    );

    // SIGTERM: what is under way is finished, and the process ends well.
    let webhook = world.installation.webhook();
    webhook.terminate().expect("a signal");
    let status = control_plane::eventually("the gate ending", async || webhook.exit_status())
        .await
        .expect("it ends");
    assert!(status.success(), "{status}");
}
