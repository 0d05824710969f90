//! CRDs, and the policy that denies their deletion. Both are apart from all other objects, so that an uninstallation
//! deletes neither: with a CRD, the API server deletes every object of its kind.

use serde_json::{Value, json};

use crate::crds;
use crate::kustomization::base;
use crate::manifest::{Manifest, crd_file, manifest};
use crate::names::{self, Names};
use crate::options::InstallOptions;

/// Returns the kustomize bases `crds/` and `crd-protection/`. They are separate, because the deletion of one base with
/// both would be denied for the CRDs, but would delete the policy, so that a second attempt would succeed.
pub(crate) fn bases(install: &InstallOptions<'_>) -> impl Iterator<Item = Manifest> {
    let files = install.validators.iter().map(|ruleset| {
        let ruleset = ruleset.as_ref();
        let crd = if install.webhook_changes_objects() {
            crds::crd(&install.names, ruleset)
        } else {
            crds::stored_version_only(&install.names, ruleset)
        };
        crd_file(ruleset, &crd)
    });
    let policy = manifest("policy.yaml", &[policy(install), binding(&install.names)]);
    base("crds", files.collect()).chain(base("crd-protection", vec![policy]))
}

fn policy(install: &InstallOptions<'_>) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata(&install.names),
        "spec": policy_spec(install),
    })
}

/// Returns the specification of the policy.
pub(crate) fn policy_spec(install: &InstallOptions<'_>) -> Value {
    let names: Vec<_> = install
        .validators
        .iter()
        .map(|ruleset| format!("'{}'", crds::name(ruleset.as_ref())))
        .collect();
    let message = format!(
        "'deleting the CRD ' + oldObject.metadata.name + ' deletes every ' + oldObject.spec.names.kind \
         + ' in the cluster, and what each of them manages; list them with `kubectl get ' \
         + oldObject.spec.names.plural + '.' + oldObject.spec.group + ' --all-namespaces`. \
         To allow the deletion: `kubectl annotate crd ' + oldObject.metadata.name + ' {}=true`'",
        names::ALLOW_DELETION
    );
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [{
                "apiGroups": ["apiextensions.k8s.io"],
                "apiVersions": ["*"],
                "operations": ["DELETE"],
                "resources": ["customresourcedefinitions"],
                "scope": "Cluster",
            }],
        },
        // By the name of the object: `resourceNames` would not match the deletion of a whole collection.
        "matchConditions": [{
            "name": "is-ours",
            "expression": format!("oldObject.metadata.name in [{}]", names.join(", ")),
        }],
        "validations": [{
            "expression": format!(
                "oldObject.metadata.?annotations[?'{}'].orValue('') == 'true'",
                names::ALLOW_DELETION
            ),
            "reason": "Forbidden",
            "message": format!("the deletion of a CRD needs the annotation `{}: \"true\"`", names::ALLOW_DELETION),
            "messageExpression": message,
        }],
    })
}

fn binding(names: &Names) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata(names),
        "spec": {"policyName": names.crd_deletion_policy, "validationActions": ["Deny"]},
    })
}

fn metadata(names: &Names) -> Value {
    json!({
        "name": names.crd_deletion_policy,
        "labels": {"app.kubernetes.io/name": names.program},
        "annotations": crds::kept(),
    })
}
