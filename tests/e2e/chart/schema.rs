//! Values that the schema of the chart rejects.

use serde_json::{Value, json};

use super::template;

#[test]
fn wrong_values_are_rejected_with_the_name_of_the_field() {
    let digest = "sha256:12";
    // Values, and what the message contains.
    let cases: Vec<(Value, &str)> = vec![
        (json!({"replicaCount": 3}), "replicaCount"),
        (json!({"replicas": "two"}), "/replicas"),
        (json!({"replicas": -1}), "/replicas"),
        (json!({"image": {"name": "x"}}), "/image"),
        (json!({"image": {"repository": ""}}), "/image/repository"),
        (json!({"image": {"digest": digest}}), "/image/digest"),
        (
            json!({"image": {"pullPolicy": "Sometimes"}}),
            "/image/pullPolicy",
        ),
        (json!({"imagePullSecrets": ["pull"]}), "/imagePullSecrets/0"),
        (json!({"webhook": {"mode": "both"}}), "/webhook/mode"),
        (
            json!({"webhook": {"timeoutSeconds": 31}}),
            "/webhook/timeoutSeconds",
        ),
        (json!({"webhook": {"port": 443}}), "/webhook/port"),
        (
            json!({"webhook": {"extraArgs": ["verbose"]}}),
            "/webhook/extraArgs/0",
        ),
        (
            json!({"webhook": {"extraEnv": [{"value": "1"}]}}),
            "/webhook/extraEnv/0",
        ),
        (
            json!({"webhook": {"resources": {"memory": "1Gi"}}}),
            "/webhook/resources",
        ),
        (json!({"controller": {"workers": 3}}), "/controller"),
        (json!({"crds": {"install": true}}), "/crds"),
        (json!({"crds": {"keep": "yes"}}), "/crds/keep"),
        (json!({"namespaces": "team-a"}), "/namespaces"),
        (
            json!({"namespaces": ["a", "a"], "webhook": {"mode": "off"}}),
            "/namespaces",
        ),
        (
            json!({"namespaces": ["Team"], "webhook": {"mode": "off"}}),
            "/namespaces/0",
        ),
        // Webhook configurations are cluster-scoped.
        (json!({"namespaces": ["team-a"]}), "/webhook/mode"),
        (
            json!({"certificates": {"source": "vault"}}),
            "/certificates/source",
        ),
        (
            json!({"certificates": {"source": "secret"}}),
            "/certificates/secretName",
        ),
        (
            json!({"certificates": {"certManager": {"duration": "30 days"}}}),
            "/certificates/certManager/duration",
        ),
        (json!({"aws": {"region": "Frankfurt"}}), "/aws/region"),
        (json!({"aws": {"endpointUrl": "moto"}}), "/aws/endpointUrl"),
        (
            json!({"aws": {"credentials": {"source": "irsa"}}}),
            "/aws/credentials/roleArn",
        ),
        (
            json!({"aws": {"credentials": {"source": "irsa", "roleArn": "lockstep"}}}),
            "/aws/credentials/roleArn",
        ),
        (
            json!({"aws": {"credentials": {"source": "secret"}}}),
            "/aws/credentials/secretName",
        ),
        (
            json!({"policy": {"CloudDatabase": {"username-reserved": "off"}}}),
            "/policy/CloudDatabase/username-reserved",
        ),
        (
            json!({"podDisruptionBudget": {"minAvailable": "half"}}),
            "/podDisruptionBudget/minAvailable",
        ),
        (
            json!({"terminationGracePeriodSeconds": 10}),
            "/terminationGracePeriodSeconds",
        ),
        (
            json!({"commonLabels": {"cost-centre": 7}}),
            "/commonLabels/cost-centre",
        ),
        (
            json!({"metrics": {"podMonitor": {"interval": "often"}}}),
            "/metrics/podMonitor/interval",
        ),
        // The controller forwards the metrics of the webhook in its Pod.
        (
            json!({"metrics": {"secure": {"enabled": true}}, "webhook": {"mode": "split"}}),
            "/webhook/mode",
        ),
        (json!({"networkPolicy": {"from": []}}), "/networkPolicy"),
        (
            json!({"serviceAccount": {"name": "Lock step"}}),
            "/serviceAccount/name",
        ),
        (
            json!({"service": {"ipFamilies": ["IPv5"]}}),
            "/service/ipFamilies/0",
        ),
        (json!({"fullnameOverride": "Lockstep"}), "/fullnameOverride"),
    ];
    for (values, field) in cases {
        let error = template("lockstep", &values).expect_err(&values.to_string());
        assert!(
            error.contains("don't meet the specifications of the schema") && error.contains(field),
            "{values}: {error}"
        );
    }
    let error = template("lockstep-crds", &json!({"crds": {"keep": true}}));
    let error = error.expect_err("the value belongs to the other chart");
    assert!(error.contains("crds"), "{error}");
}
