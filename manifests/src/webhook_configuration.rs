//! Webhook configurations. They match registered kinds only, so they need no exclusions.

use serde_json::{Value, json};
use shared_validation::ValidatorRegistry;

use crate::names;

/// Match condition that excludes updates that only finalize an object. They are never validated, and must succeed
/// while the webhook is down.
const NOT_ONLY_FINALIZING: &str = "!(request.operation == 'UPDATE' && has(object.metadata.deletionTimestamp) \
     && has(object.spec) == has(oldObject.spec) && (!has(object.spec) || object.spec == oldObject.spec))";

pub(crate) fn validating(validators: &ValidatorRegistry) -> Value {
    // The controller sets it to `Fail` once the webhook has denied an admission probe.
    let webhook = webhook(names::VALIDATING_WEBHOOK, "/validate", "Ignore", validators);
    configuration("ValidatingWebhookConfiguration", &webhook)
}

pub(crate) fn mutating(validators: &ValidatorRegistry) -> Value {
    // `Ignore` is enough: the controller sets the same defaults, and the final object is validated anyway.
    let mut webhook = webhook(names::MUTATING_WEBHOOK, "/mutate", "Ignore", validators);
    webhook["reinvocationPolicy"] = json!("Never");
    configuration("MutatingWebhookConfiguration", &webhook)
}

fn configuration(kind: &str, webhook: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {
            "name": names::WEBHOOK_CONFIGURATION,
            "labels": {"app.kubernetes.io/name": names::APP},
        },
        "webhooks": [webhook],
    })
}

fn webhook(name: &str, path: &str, failure_policy: &str, validators: &ValidatorRegistry) -> Value {
    let rules: Vec<_> = validators
        .iter()
        .map(|ruleset| {
            json!({
                "apiGroups": [ruleset.group()],
                "apiVersions": [ruleset.version()],
                "operations": ["CREATE", "UPDATE"],
                "resources": [ruleset.crd()["spec"]["names"]["plural"]],
                "scope": ruleset.crd()["spec"]["scope"],
            })
        })
        .collect();
    json!({
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {"name": names::SERVICE, "namespace": names::NAMESPACE, "path": path, "port": 443},
        },
        "failurePolicy": failure_policy,
        "matchConditions": [{"name": "not-only-finalizing", "expression": NOT_ONLY_FINALIZING}],
        "matchPolicy": "Equivalent",
        "rules": rules,
        "sideEffects": "None",
        "timeoutSeconds": 5,
    })
}
