//! Echo: the smallest operator. It serves a text over HTTP, with a Deployment and a Service.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::{CustomResource, KubeSchema, ResourceExt};
use lockstep_controller::{
    OwnedType, ReconcileError, Reconciler, SyncReconciler, SyncRequest, SyncResponse,
};
use lockstep_shared_validation::{
    Diagnostics, Rule, RuleContext, Severity, ValidatedResource, field, fields,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Text to serve over HTTP.
#[derive(CustomResource, KubeSchema, ValidatedResource, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "demo.example.com", version = "v1alpha1", kind = "Echo")]
#[kube(plural = "echoes", namespaced, status = "EchoStatus")]
#[validated(example = example, rules = rules)]
pub struct EchoSpec {
    /// Text of the HTTP response.
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(validation = Rule::new("!self.contains('\\n')").message("must be one line [single-line]"))]
    pub text: String,
    /// Number of Pods that serve the text.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 10))]
    pub replicas: i32,
}

/// Address at which the text is served.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct EchoStatus {
    /// URL inside the cluster.
    pub address: String,
}

fn one() -> i32 {
    1
}

fn example() -> Value {
    json!({"spec": {"text": "hello"}})
}

fn rules() -> Vec<Rule<Echo>> {
    vec![Rule {
        id: "service-name",
        description: "The name must be a valid Service name: at most 63 characters, first a letter, no dots.",
        severity: Severity::Error,
        reference: "https://kubernetes.io/docs/concepts/overview/working-with-objects/names/",
        fields: fields!(Echo, "metadata.name"),
        validate: is_service_name,
    }]
}

fn is_service_name(context: &RuleContext<'_, Echo>, diagnostics: &mut Diagnostics) {
    let name = context.object.name_any();
    if name.len() > 63 || name.contains('.') || !name.starts_with(|c: char| c.is_alphabetic()) {
        let detail = "must begin with a letter, have no dots and at most 63 characters";
        diagnostics.invalid(field!(Echo, "metadata.name"), name, detail);
    }
}

/// Returns the operator.
pub fn operator() -> impl Reconciler<Kind = Echo> {
    let service = OwnedType::namespaced::<Service>();
    SyncReconciler::new(sync).owns([OwnedType::namespaced::<Deployment>(), service])
}

fn sync(request: &SyncRequest<'_, Echo>) -> Result<SyncResponse, ReconcileError> {
    let Echo { metadata, spec, .. } = request.parent();
    let labels = json!({"app": metadata.name});
    let pod = json!({
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": "echo", "image": "hashicorp/http-echo", "args": ["-listen=:8080", "-text", spec.text],
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        }],
    });
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": metadata.name},
        "spec": {"replicas": spec.replicas, "selector": {"matchLabels": labels}, "template": template},
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": metadata.name},
        "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
    });
    let address = format!("http://{}", request.parent().name_any());
    let response = SyncResponse::new().status(&EchoStatus { address })?;
    response.child(&deployment)?.child(&service)
}
