//! Webhook configurations. They match registered kinds only, so they need no exclusions.

use lockstep_shared_validation::ValidatorRegistry;
use serde_json::{Value, json};

use crate::names::Names;
use crate::options::InstallOptions;

/// Match condition that excludes updates that only finalize an object. They are never validated, and must succeed
/// while the webhook is down.
const NOT_ONLY_FINALIZING: &str = "!(request.operation == 'UPDATE' && has(object.metadata.deletionTimestamp) \
     && has(object.spec) == has(oldObject.spec) && (!has(object.spec) || object.spec == oldObject.spec))";

pub(crate) fn validating(install: &InstallOptions<'_>) -> Value {
    let webhook = validating_webhook(install.validators, &install.names);
    configuration(&install.names, "ValidatingWebhookConfiguration", &webhook)
}

pub(crate) fn mutating(install: &InstallOptions<'_>) -> Value {
    let webhook = mutating_webhook(install.validators, &install.names);
    configuration(&install.names, "MutatingWebhookConfiguration", &webhook)
}

pub(crate) fn validating_webhook(validators: &ValidatorRegistry, names: &Names) -> Value {
    // The controller sets it to `Fail` once the webhook has denied an admission probe.
    let mut webhook = webhook("/validate", "Ignore", validators, names);
    webhook["name"] = json!(names.validating_webhook);
    webhook
}

pub(crate) fn mutating_webhook(validators: &ValidatorRegistry, names: &Names) -> Value {
    // `Ignore` is enough: the controller sets the same defaults, and the final object is validated anyway.
    let mut webhook = webhook("/mutate", "Ignore", validators, names);
    webhook["name"] = json!(names.mutating_webhook);
    webhook["reinvocationPolicy"] = json!("Never");
    webhook
}

fn configuration(names: &Names, kind: &str, webhook: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {
            "name": names.webhook_configuration,
            "labels": {"app.kubernetes.io/name": names.program},
        },
        "webhooks": [webhook],
    })
}

fn webhook(
    path: &str,
    failure_policy: &str,
    validators: &ValidatorRegistry,
    names: &Names,
) -> Value {
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
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {"name": names.service, "namespace": names.namespace, "path": path, "port": 443},
        },
        "failurePolicy": failure_policy,
        "matchConditions": [{"name": "not-only-finalizing", "expression": NOT_ONLY_FINALIZING}],
        "matchPolicy": "Equivalent",
        "rules": rules,
        "sideEffects": "None",
        "timeoutSeconds": 5,
    })
}
