//! Both webhook configurations. Only registered kinds match, so nothing needs to be excluded.

use serde_json::{Value, json};
use shared_validation::ValidatorRegistry;

use crate::names;

/// The API server asks the gate nothing about a change that only finalizes an object: such a change is
/// never judged, and must go through when the gate is down.
const NOT_ONLY_FINALIZING: &str = "!(request.operation == 'UPDATE' && has(object.metadata.deletionTimestamp) \
     && has(object.spec) == has(oldObject.spec) && (!has(object.spec) || object.spec == oldObject.spec))";

pub(crate) fn validating(rulesets: &ValidatorRegistry) -> Value {
    // Until the controller has seen the gate refuse: then it becomes `Fail`.
    let webhook = webhook(names::VALIDATING_WEBHOOK, "/validate", "Ignore", rulesets);
    configuration("ValidatingWebhookConfiguration", &webhook)
}

pub(crate) fn mutating(rulesets: &ValidatorRegistry) -> Value {
    // Whatever it would have added, the loop adds, and the final state is judged anyway.
    let mut webhook = webhook(names::MUTATING_WEBHOOK, "/mutate", "Ignore", rulesets);
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

fn webhook(name: &str, path: &str, failure_policy: &str, rulesets: &ValidatorRegistry) -> Value {
    let rules: Vec<_> = rulesets
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
