//! Children that an admission policy of the cluster denies.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::api::{Api, DeleteParams, PostParams};
use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::children::fixture_kind::Toys;

const NAME: &str = "deny-config-maps";

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_a_policy_denied_is_created_when_the_policy_is_gone() {
    let toys = Toys::start().await;
    let client = toys.cluster.client();
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client);
    let policy = json!({"metadata": {"name": NAME}, "spec": {
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["configmaps"],
        }]},
        // The default reason is `Invalid`, with the status code 422.
        "validations": [{"expression": "!object.metadata.name.startsWith('denied')", "message": "not today"}],
    }});
    let binding = json!({"metadata": {"name": NAME}, "spec": {
        "policyName": NAME, "validationActions": ["Deny"],
    }});
    let params = PostParams::default();
    let policy = serde_json::from_value(policy).expect("a policy");
    policies.create(&params, &policy).await.expect("created");
    let binding = serde_json::from_value(binding).expect("a binding");
    bindings.create(&params, &binding).await.expect("created");
    let maps = toys.of("ConfigMap", Some("default"));
    let probe: Value =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "denied-probe"}});
    let probe = serde_json::from_value(probe).expect("a ConfigMap");
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let denies = eventually("the policy to be in force", async || {
        maps.create(&dry_run, &probe).await.is_err().then_some(())
    });
    denies.await.expect("in force");

    let child =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "denied-child"}});
    toys.apply("Family", "quota", &json!({"children": [child]}))
        .await;
    let families = toys.families("default");
    let (reason, message) = toys
        .wait_for_condition(&families, "quota", "Stalled", "True")
        .await;
    assert_eq!(reason, "ChildInvalid", "{message}");
    assert!(message.contains("not today"), "{message}");

    let params = DeleteParams::default();
    bindings.delete(NAME, &params).await.expect("deleted");
    toys.wait_for_condition(&families, "quota", "Ready", "True")
        .await;
    assert!(
        maps.get_opt("denied-child")
            .await
            .expect("an answer")
            .is_some()
    );
}
