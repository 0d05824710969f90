//! Reviews of pipelines that the benchmark sends.

use serde_json::{Map, Value, json};

use crate::admission_review::{ObjectType, review};

/// Placeholder in the reviews of pipelines. A client replaces its digits to make each review new.
pub const NONCE: &str = "nonce-00000000";

/// Returns a review of a pipeline with three components and a program of thirty lines.
pub(crate) fn typical() -> Value {
    pipeline(&json!({
        "sources": {"pods": {"type": "kubernetes_logs", "extra_label_selector": "app=shop"}},
        "transforms": {"parse": {"type": "remap", "inputs": ["pods"], "source": program(0)}},
        "sinks": {"out": sink("parse")},
    }))
}

/// Returns a review of a pipeline with fifty components, twenty-four of which have such a program.
pub(crate) fn large() -> Value {
    let mut transforms = Map::new();
    let mut sinks = Map::new();
    for index in 0..24 {
        let name = format!("parse-{index}");
        let transform = json!({"type": "remap", "inputs": ["pods"], "source": program(index)});
        sinks.insert(format!("out-{index}"), sink(&name));
        transforms.insert(name, transform);
    }
    transforms.insert(
        "errors".to_owned(),
        json!({"type": "filter", "inputs": ["parse-0"], "condition": ".level == \"error\""}),
    );
    sinks.insert("errors-out".to_owned(), sink("errors"));
    let sources = json!({"pods": {"type": "kubernetes_logs"}});
    pipeline(&json!({"sources": sources, "transforms": transforms, "sinks": sinks}))
}

fn sink(input: &str) -> Value {
    json!({
        "type": "elasticsearch", "inputs": [input], "endpoints": ["https://logs.example.com:9200"],
        "mode": "bulk", "bulk": {"index": "shop-%Y-%m-%d"}, "compression": "gzip",
        "buffer": {"type": "memory", "max_events": 5_000, "when_full": "drop_newest"},
    })
}

fn pipeline(spec: &Value) -> Value {
    let kind = ObjectType {
        group: "observability.kaasops.io",
        kind: "VectorPipeline",
        resource: "vectorpipelines",
    };
    let object = json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": kind.kind,
        "metadata": {"name": "orders", "namespace": "shop"},
        "spec": spec,
    });
    review(kind, "CREATE", &object, None)
}

/// Returns a program of thirty lines that is typical for the logs of a service.
fn program(index: usize) -> String {
    format!(
        r#"# {NONCE}, {index}
structured, err = parse_json(.message)
if err != null {{
    structured, err = parse_regex(.message, r'^(?P<time>\S+) (?P<level>\w+) (?P<text>.*)$')
}}
if err != null {{
    .unparsed = true
    .level = "unknown"
}} else {{
    fields = object(structured) ?? {{}}
    . = merge(., fields)
    .level = downcase(string(.level) ?? "info")
}}
.service = string(.kubernetes.pod_labels.app) ?? "none"
.namespace = string(.kubernetes.pod_namespace) ?? "none"
.pod = .kubernetes.pod_name
.duration_ms = to_int(.duration) ?? 0
if .duration_ms > 1000 {{
    .slow = true
}}
del(.kubernetes)
del(.file)
if exists(.user.email) {{
    .user.email = redact(string(.user.email) ?? "", filters: [r'[^@]+@'])
}}
.status_class = if match(string(.status) ?? "", r'^5') {{ "error" }} else {{ "fine" }}
.tags = split(string(.tags) ?? "", ",")
.timestamp = parse_timestamp(.time, format: "%+") ?? now()
.fingerprint = encode_base16(string(.message) ?? "")
.size = length(string(.message) ?? "")
.message = truncate(string(.message) ?? "", 4096)
"#
    )
}
