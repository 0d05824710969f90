//! Every value of the chart has an effect.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use super::{chart, documents, objects};

/// Values, and what one object then contains.
struct Knob {
    values: Value,
    /// Kind and name.
    object: &'static str,
    /// JSON pointer. If its last element is `*`, one of the elements of the list must be equal.
    pointer: &'static str,
    expected: Value,
}

fn knob(values: Value, object: &'static str, pointer: &'static str, expected: Value) -> Knob {
    Knob {
        values,
        object,
        pointer,
        expected,
    }
}

const DEPLOYMENT: &str = "Deployment/lockstep";
const CONTROLLER_ARGS: &str = "/spec/template/spec/containers/1/args/*";

fn names() -> Vec<Knob> {
    let overridden = || json!({"fullnameOverride": "guard"});
    let args = |name: &str, value: &str| json!(format!("--{name}={value}"));
    let role = "Role/guard";
    vec![
        knob(
            overridden(),
            "Service/guard-webhook",
            "/spec/ports/0/port",
            json!(443),
        ),
        knob(
            overridden(),
            "Deployment/guard",
            CONTROLLER_ARGS,
            args("webhook-service", "guard-webhook"),
        ),
        knob(
            overridden(),
            "Deployment/guard",
            CONTROLLER_ARGS,
            args("tls-secret", "guard-webhook-tls"),
        ),
        knob(
            overridden(),
            "Deployment/guard",
            CONTROLLER_ARGS,
            args("webhook-configuration", "guard"),
        ),
        knob(
            overridden(),
            "Deployment/guard",
            CONTROLLER_ARGS,
            args("webhook-deployment", "guard"),
        ),
        knob(
            overridden(),
            "Deployment/guard",
            CONTROLLER_ARGS,
            args("leader-election-id", "guard-controller"),
        ),
        knob(
            overridden(),
            role,
            "/rules/1/resourceNames/0",
            json!("guard-webhook-tls"),
        ),
        knob(
            overridden(),
            role,
            "/rules/2/resourceNames/0",
            json!("guard"),
        ),
        knob(
            overridden(),
            role,
            "/rules/5/resourceNames/0",
            json!("guard-controller"),
        ),
        knob(
            overridden(),
            "ValidatingWebhookConfiguration/guard",
            "/webhooks/0/clientConfig/service/name",
            json!("guard-webhook"),
        ),
        knob(
            overridden(),
            "CustomResourceDefinition/clouddatabases.database.example.com",
            "/spec/conversion/webhook/clientConfig/service/name",
            json!("guard-webhook"),
        ),
        knob(
            json!({"nameOverride": "guard"}),
            "Deployment/lockstep-guard",
            "/metadata/labels/app.kubernetes.io~1name",
            json!("guard"),
        ),
        knob(
            json!({"commonLabels": {"team": "a"}}),
            DEPLOYMENT,
            "/spec/template/metadata/labels/team",
            json!("a"),
        ),
        knob(
            json!({"commonAnnotations": {"team": "a"}}),
            "Service/lockstep-webhook",
            "/metadata/annotations/team",
            json!("a"),
        ),
    ]
}

fn containers() -> Vec<Knob> {
    let container = |index: usize, values: Value, pointer: &'static str, expected: Value| {
        let pointer = match index {
            0 => format!("/spec/template/spec/containers/0{pointer}"),
            _ => format!("/spec/template/spec/containers/1{pointer}"),
        };
        knob(values, DEPLOYMENT, pointer.leak(), expected)
    };
    let digest = format!("sha256:{}", "0".repeat(64));
    let mut knobs = vec![
        container(
            0,
            json!({"image": {"registry": "r.example.com", "repository": "a/b", "tag": "v2", "digest": digest}}),
            "/image",
            json!(format!("r.example.com/a/b:v2@{digest}")),
        ),
        container(
            1,
            json!({"image": {"tag": "v2"}}),
            "/image",
            json!("lockstep:v2"),
        ),
        container(
            1,
            json!({"image": {"pullPolicy": "Always"}}),
            "/imagePullPolicy",
            json!("Always"),
        ),
        container(
            0,
            json!({"webhook": {"port": 10250}}),
            "/ports/0/containerPort",
            json!(10250),
        ),
        container(
            0,
            json!({"webhook": {"healthPort": 8090}}),
            "/ports/1/containerPort",
            json!(8090),
        ),
        container(
            1,
            json!({"controller": {"healthPort": 8091}}),
            "/ports/0/containerPort",
            json!(8091),
        ),
        container(
            0,
            json!({"logLevel": "debug"}),
            "/env/*",
            json!({"name": "RUST_LOG", "value": "debug"}),
        ),
        container(
            1,
            json!({"logLevel": "debug"}),
            "/env/*",
            json!({"name": "RUST_LOG", "value": "debug"}),
        ),
        container(
            0,
            json!({"containerSecurityContext": {"readOnlyRootFilesystem": false}}),
            "/securityContext/readOnlyRootFilesystem",
            json!(false),
        ),
        container(
            0,
            json!({"webhook": {"readinessProbe": {"failureThreshold": 9}}}),
            "/readinessProbe/failureThreshold",
            json!(9),
        ),
    ];
    for (index, name) in [(0, "webhook"), (1, "controller")] {
        let of = |field: &str, value: Value| json!({name: {field: value}});
        let mount = json!({"name": "more", "mountPath": "/more"});
        let resources = json!({
            "requests": {"cpu": "1", "memory": "2Gi"},
            "limits": {"memory": "3Gi"},
        });
        knobs.extend([
            container(
                index,
                of("extraArgs", json!(["--a=b"])),
                "/args/*",
                json!("--a=b"),
            ),
            container(
                index,
                of("extraEnv", json!([{"name": "A", "value": "b"}])),
                "/env/*",
                json!({"name": "A", "value": "b"}),
            ),
            container(
                index,
                of("extraEnvFrom", json!([{"secretRef": {"name": "a"}}])),
                "/envFrom/*",
                json!({"secretRef": {"name": "a"}}),
            ),
            container(
                index,
                of("extraVolumeMounts", json!([mount])),
                "/volumeMounts/*",
                mount.clone(),
            ),
            container(
                index,
                of("resources", resources.clone()),
                "/resources",
                resources.clone(),
            ),
            container(
                index,
                of("livenessProbe", json!({"periodSeconds": 99})),
                "/livenessProbe/periodSeconds",
                json!(99),
            ),
        ]);
    }
    knobs
}

fn pods() -> Vec<Knob> {
    let pod = |values: Value, field: &str| {
        let name = values
            .as_object()
            .and_then(|fields| fields.keys().next().cloned());
        let expected = values[name.unwrap_or_default()].clone();
        knob(
            values,
            DEPLOYMENT,
            format!("/spec/template/spec/{field}").leak(),
            expected,
        )
    };
    let volume = json!({"name": "more", "emptyDir": {}});
    let spread =
        json!([{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]);
    vec![
        pod(
            json!({"imagePullSecrets": [{"name": "pull"}]}),
            "imagePullSecrets",
        ),
        pod(json!({"nodeSelector": {"disk": "ssd"}}), "nodeSelector"),
        pod(json!({"affinity": {"nodeAffinity": {}}}), "affinity"),
        pod(json!({"tolerations": [{"key": "a"}]}), "tolerations"),
        pod(
            json!({"topologySpreadConstraints": spread}),
            "topologySpreadConstraints",
        ),
        knob(
            json!({"topologySpreadConstraints": []}),
            DEPLOYMENT,
            "/spec/template/spec/topologySpreadConstraints",
            Value::Null,
        ),
        pod(
            json!({"priorityClassName": "system-cluster-critical"}),
            "priorityClassName",
        ),
        pod(json!({"runtimeClassName": "gvisor"}), "runtimeClassName"),
        pod(json!({"schedulerName": "other"}), "schedulerName"),
        pod(json!({"hostNetwork": true}), "hostNetwork"),
        pod(json!({"dnsPolicy": "Default"}), "dnsPolicy"),
        pod(
            json!({"dnsConfig": {"nameservers": ["1.1.1.1"]}}),
            "dnsConfig",
        ),
        pod(
            json!({"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}]}),
            "hostAliases",
        ),
        pod(json!({"enableServiceLinks": false}), "enableServiceLinks"),
        pod(
            json!({"terminationGracePeriodSeconds": 90}),
            "terminationGracePeriodSeconds",
        ),
        knob(
            json!({"podSecurityContext": {"runAsUser": 1000, "runAsNonRoot": false}}),
            DEPLOYMENT,
            "/spec/template/spec/securityContext/runAsNonRoot",
            json!(false),
        ),
        knob(
            json!({"extraVolumes": [volume]}),
            DEPLOYMENT,
            "/spec/template/spec/volumes/*",
            volume.clone(),
        ),
        knob(
            json!({"podLabels": {"a": "b"}}),
            DEPLOYMENT,
            "/spec/template/metadata/labels/a",
            json!("b"),
        ),
        knob(
            json!({"podAnnotations": {"a": "b"}}),
            DEPLOYMENT,
            "/spec/template/metadata/annotations/a",
            json!("b"),
        ),
        knob(
            json!({"replicas": 5}),
            DEPLOYMENT,
            "/spec/replicas",
            json!(5),
        ),
        knob(
            json!({"controller": {"replicas": 5}, "webhook": {"mode": "split"}}),
            "Deployment/lockstep-controller",
            "/spec/replicas",
            json!(5),
        ),
        knob(
            json!({"deployment": {"annotations": {"a": "b"}}}),
            DEPLOYMENT,
            "/metadata/annotations/a",
            json!("b"),
        ),
        knob(
            json!({"deployment": {"strategy": {"type": "Recreate", "rollingUpdate": null}}}),
            DEPLOYMENT,
            "/spec/strategy",
            json!({"type": "Recreate"}),
        ),
        knob(
            json!({"deployment": {"strategy": {"rollingUpdate": {"maxSurge": 2}}}}),
            DEPLOYMENT,
            "/spec/strategy/rollingUpdate/maxSurge",
            json!(2),
        ),
        knob(
            json!({"deployment": {"strategy": {"rollingUpdate": {"maxUnavailable": 1}}}}),
            DEPLOYMENT,
            "/spec/strategy/rollingUpdate/maxUnavailable",
            json!(1),
        ),
        knob(
            json!({"deployment": {"revisionHistoryLimit": 0}}),
            DEPLOYMENT,
            "/spec/revisionHistoryLimit",
            json!(0),
        ),
    ]
}

fn webhook() -> Vec<Knob> {
    let validating = "ValidatingWebhookConfiguration/lockstep";
    let service = "Service/lockstep-webhook";
    let certificate = "Certificate/lockstep-webhook";
    let issuer = json!({"name": "corporate", "kind": "ClusterIssuer"});
    let managed = |more: Value| {
        let mut values = json!({"certificates": {"source": "certManager"}});
        values["certificates"]["certManager"] = more;
        values
    };
    vec![
        knob(
            json!({"webhook": {"timeoutSeconds": 9}}),
            validating,
            "/webhooks/0/timeoutSeconds",
            json!(9),
        ),
        knob(
            json!({"webhook": {"mode": "only"}}),
            DEPLOYMENT,
            CONTROLLER_ARGS,
            json!("--webhook-only"),
        ),
        knob(
            json!({"service": {"annotations": {"a": "b"}}}),
            service,
            "/metadata/annotations/a",
            json!("b"),
        ),
        knob(
            json!({"service": {"labels": {"a": "b"}}}),
            service,
            "/metadata/labels/a",
            json!("b"),
        ),
        knob(
            json!({"service": {"ipFamilyPolicy": "PreferDualStack"}}),
            service,
            "/spec/ipFamilyPolicy",
            json!("PreferDualStack"),
        ),
        knob(
            json!({"service": {"ipFamilies": ["IPv6"]}}),
            service,
            "/spec/ipFamilies",
            json!(["IPv6"]),
        ),
        knob(
            json!({"certificates": {"source": "secret", "secretName": "mine"}}),
            DEPLOYMENT,
            CONTROLLER_ARGS,
            json!("--tls-secret=mine"),
        ),
        knob(
            json!({"certificates": {"source": "secret", "secretName": "mine"}}),
            DEPLOYMENT,
            CONTROLLER_ARGS,
            json!("--cert-source=secret"),
        ),
        knob(
            json!({"certificates": {"extraDnsNames": ["a.example.com"]}}),
            DEPLOYMENT,
            CONTROLLER_ARGS,
            json!("--cert-extra-dns-name=a.example.com"),
        ),
        knob(
            managed(json!({})),
            certificate,
            "/spec/dnsNames/0",
            json!("lockstep-webhook.lockstep-system.svc"),
        ),
        knob(
            managed(json!({})),
            certificate,
            "/spec/secretName",
            json!("lockstep-webhook-tls"),
        ),
        knob(
            managed(json!({})),
            "Issuer/lockstep-ca",
            "/spec/ca/secretName",
            json!("lockstep-ca"),
        ),
        knob(
            managed(json!({"issuerRef": issuer})),
            certificate,
            "/spec/issuerRef",
            issuer.clone(),
        ),
        knob(
            managed(json!({"duration": "48h"})),
            certificate,
            "/spec/duration",
            json!("48h"),
        ),
        knob(
            managed(json!({"renewBefore": "9h"})),
            certificate,
            "/spec/renewBefore",
            json!("9h"),
        ),
        knob(
            managed(json!({"annotations": {"a": "b"}})),
            certificate,
            "/metadata/annotations/a",
            json!("b"),
        ),
        knob(
            json!({"podDisruptionBudget": {"minAvailable": "50%"}}),
            "PodDisruptionBudget/lockstep",
            "/spec/minAvailable",
            json!("50%"),
        ),
        knob(
            json!({"podDisruptionBudget": {"maxUnavailable": 1}}),
            "PodDisruptionBudget/lockstep",
            "/spec",
            json!({"maxUnavailable": 1, "selector": {"matchLabels": {
                "app.kubernetes.io/name": "lockstep", "app.kubernetes.io/instance": "lockstep",
            }}}),
        ),
        knob(
            json!({"podDisruptionBudget": {"enabled": false}}),
            "PodDisruptionBudget/lockstep",
            "/spec",
            Value::Null,
        ),
    ]
}

fn rights() -> Vec<Knob> {
    let account = "ServiceAccount/lockstep";
    let namespaces =
        || json!({"webhook": {"mode": "off"}, "namespaces": ["a"], "rbac": {"userRoles": false}});
    let crd = "CustomResourceDefinition/clouddatabases.database.example.com";
    let role = "arn:aws:iam::123456789012:role/lockstep";
    let irsa = || json!({"aws": {"credentials": {"source": "irsa", "roleArn": role}}});
    let skip = "/spec/template/metadata/annotations/eks.amazonaws.com~1skip-containers";
    vec![
        knob(
            json!({"crds": {"enabled": false}}),
            crd,
            "/spec",
            Value::Null,
        ),
        knob(
            json!({"crds": {"annotations": {"a": "b"}}}),
            crd,
            "/metadata/annotations/a",
            json!("b"),
        ),
        knob(
            json!({"crds": {"keep": false}}),
            crd,
            "/metadata/annotations",
            json!({"lockstep.dev/allow-deletion": "true"}),
        ),
        knob(
            json!({"crds": {"keep": false}}),
            "ValidatingAdmissionPolicy/lockstep-crd-deletion",
            "/spec",
            Value::Null,
        ),
        knob(namespaces(), "ClusterRole/lockstep", "/rules", Value::Null),
        knob(
            namespaces(),
            "ClusterRole/lockstep-edit",
            "/rules",
            Value::Null,
        ),
        knob(
            namespaces(),
            "Role/lockstep",
            "/metadata/namespace",
            json!("a"),
        ),
        knob(
            namespaces(),
            DEPLOYMENT,
            "/spec/template/spec/containers/0/args/*",
            json!("--watch-namespaces=a"),
        ),
        knob(
            json!({"rbac": {"create": false}}),
            "ClusterRole/lockstep",
            "/rules",
            Value::Null,
        ),
        knob(
            json!({"serviceAccount": {"create": false}}),
            account,
            "/metadata",
            Value::Null,
        ),
        knob(
            json!({"serviceAccount": {"name": "other"}}),
            DEPLOYMENT,
            "/spec/template/spec/serviceAccountName",
            json!("other"),
        ),
        knob(
            json!({"serviceAccount": {"name": "other"}}),
            "ClusterRoleBinding/lockstep",
            "/subjects/0/name",
            json!("other"),
        ),
        knob(
            json!({"serviceAccount": {"annotations": {"a": "b"}}}),
            account,
            "/metadata/annotations/a",
            json!("b"),
        ),
        knob(
            json!({"serviceAccount": {"labels": {"a": "b"}}}),
            account,
            "/metadata/labels/a",
            json!("b"),
        ),
        knob(
            irsa(),
            account,
            "/metadata/annotations/eks.amazonaws.com~1role-arn",
            json!(role),
        ),
        // The webhook gets no AWS credentials.
        knob(irsa(), DEPLOYMENT, skip, json!("webhook")),
        knob(
            json!({"aws": {"credentials": {"source": "podIdentity"}}}),
            DEPLOYMENT,
            skip,
            json!("webhook"),
        ),
        knob(
            json!({"aws": {"credentials": {"source": "secret", "secretName": "keys"}}}),
            DEPLOYMENT,
            "/spec/template/spec/containers/1/envFrom/*",
            json!({"secretRef": {"name": "keys"}}),
        ),
        knob(
            json!({"aws": {"region": "eu-west-1", "endpointUrl": "http://moto:5000"}}),
            "ConfigMap/lockstep-aws",
            "/data",
            json!({"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL": "http://moto:5000"}),
        ),
        knob(
            json!({"policy": {"CloudDatabase": {"username-reserved": "audit"}}}),
            "ConfigMap/lockstep-policy",
            "/data/policy.yaml",
            json!("rules:\n  CloudDatabase:\n    username-reserved: audit\n"),
        ),
        knob(
            json!({"policyConfigMap": "shared"}),
            DEPLOYMENT,
            "/spec/template/spec/volumes/1/configMap/name",
            json!("shared"),
        ),
    ]
}

fn network() -> Vec<Knob> {
    let policy = "NetworkPolicy/lockstep";
    let on = |name: &str, value: Value| json!({"networkPolicy": {"enabled": true, name: value}});
    let block = json!({"ipBlock": {"cidr": "10.0.0.1/32"}});
    let own = json!({"podSelector": {"matchLabels": {
        "app.kubernetes.io/name": "lockstep", "app.kubernetes.io/instance": "lockstep",
    }}});
    vec![
        knob(
            on("metricsFrom", json!([])),
            policy,
            "/spec/ingress",
            json!([
                {"ports": [{"protocol": "TCP", "port": "webhook"}]},
            ]),
        ),
        knob(
            on("metricsFrom", json!([block])),
            policy,
            "/spec/ingress/1/from",
            json!([block]),
        ),
        // The controllers of this release verify the certificates of the replicas.
        knob(
            on("webhookFrom", json!([block])),
            policy,
            "/spec/ingress/0/from",
            json!([block, own]),
        ),
        knob(
            on("egress", json!([])),
            policy,
            "/spec/policyTypes",
            json!(["Ingress", "Egress"]),
        ),
        knob(
            json!({"networkPolicy": {"enabled": true}, "webhook": {"mode": "split"}}),
            "NetworkPolicy/lockstep-controller",
            "/spec/ingress/0/ports/0/port",
            json!("metrics"),
        ),
    ]
}

fn monitoring() -> Vec<Knob> {
    let mut knobs = vec![
        knob(
            json!({"metrics": {"podMonitor": {"enabled": true}}}),
            "PodMonitor/lockstep",
            "/spec/podMetricsEndpoints/1/relabelings/0/replacement",
            json!("lockstep-controller"),
        ),
        knob(
            json!({"metrics": {"serviceMonitor": {"enabled": true}}}),
            "Service/lockstep-metrics",
            "/spec/ports/1/targetPort",
            json!("metrics"),
        ),
        knob(
            json!({"extraObjects": [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-{{ .Release.Name }}"}},
            ]}),
            "ConfigMap/of-lockstep",
            "/apiVersion",
            json!("v1"),
        ),
    ];
    let monitors = [
        (
            "podMonitor",
            "PodMonitor/lockstep",
            "/spec/podMetricsEndpoints/0",
        ),
        (
            "serviceMonitor",
            "ServiceMonitor/lockstep",
            "/spec/endpoints/0",
        ),
        ("prometheusRule", "PrometheusRule/lockstep", ""),
    ];
    for (name, object, endpoint) in monitors {
        let on =
            |field: &str, value: Value| json!({"metrics": {name: {"enabled": true, field: value}}});
        knobs.extend([
            knob(
                on("namespace", json!("monitoring")),
                object,
                "/metadata/namespace",
                json!("monitoring"),
            ),
            knob(
                on("labels", json!({"release": "p"})),
                object,
                "/metadata/labels/release",
                json!("p"),
            ),
            knob(
                on("annotations", json!({"a": "b"})),
                object,
                "/metadata/annotations/a",
                json!("b"),
            ),
        ]);
        if !endpoint.is_empty() {
            knobs.extend([
                knob(
                    on("interval", json!("7s")),
                    object,
                    format!("{endpoint}/interval").leak(),
                    json!("7s"),
                ),
                knob(
                    on("scrapeTimeout", json!("3s")),
                    object,
                    format!("{endpoint}/scrapeTimeout").leak(),
                    json!("3s"),
                ),
            ]);
        }
    }
    knobs
}

fn secure_metrics() -> Vec<Knob> {
    let on = |name: &str, value: Value| {
        let mut values = json!({
            "metrics": {"secure": {"enabled": true}, "podMonitor": {"enabled": true}, "serviceMonitor": {"enabled": true}},
            "networkPolicy": {"enabled": true},
        });
        values["metrics"]["secure"][name] = value;
        values
    };
    let port = || on("port", json!(9999));
    let webhook_port = || on("webhookPort", json!(9998));
    let reader = json!({"credentials": {"name": "lockstep-metrics-reader", "key": "token"}});
    let endpoint = "/spec/podMetricsEndpoints/0";
    vec![
        knob(
            port(),
            DEPLOYMENT,
            CONTROLLER_ARGS,
            json!("--metrics-secure"),
        ),
        knob(
            port(),
            DEPLOYMENT,
            CONTROLLER_ARGS,
            json!("--metrics-bind-address=0.0.0.0:9999"),
        ),
        knob(
            port(),
            DEPLOYMENT,
            "/spec/template/spec/containers/1/ports/*",
            json!({"name": "https-metrics", "containerPort": 9999}),
        ),
        knob(
            webhook_port(),
            DEPLOYMENT,
            CONTROLLER_ARGS,
            json!("--webhook-metrics-url=http://127.0.0.1:9998"),
        ),
        knob(
            webhook_port(),
            DEPLOYMENT,
            "/spec/template/spec/containers/0/args/*",
            json!("--metrics-bind-address=127.0.0.1:9998"),
        ),
        knob(
            port(),
            "PodMonitor/lockstep",
            format!("{endpoint}/authorization").leak(),
            reader,
        ),
        knob(
            port(),
            "PodMonitor/lockstep",
            format!("{endpoint}/path").leak(),
            json!("/metrics/webhook"),
        ),
        knob(
            port(),
            "Service/lockstep-metrics",
            "/spec/ports/0/port",
            json!(9999),
        ),
        knob(
            port(),
            "NetworkPolicy/lockstep",
            "/spec/ingress/1/ports",
            json!([
                {"protocol": "TCP", "port": "https-metrics"},
            ]),
        ),
        knob(
            port(),
            "ClusterRoleBinding/lockstep-metrics-auth",
            "/subjects/0/name",
            json!("lockstep"),
        ),
    ]
}

fn knobs() -> Vec<Knob> {
    [
        names(),
        containers(),
        pods(),
        webhook(),
        rights(),
        network(),
        monitoring(),
        secure_metrics(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn each_value_has_its_effect() {
    // Many knobs have the same values.
    let mut rendered: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut failures = Vec::new();
    for knob in knobs() {
        let objects = rendered
            .entry(knob.values.to_string())
            .or_insert_with(|| objects("lockstep", &knob.values));
        failures.extend(failure(&knob, objects));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn failure(knob: &Knob, objects: &[Value]) -> Option<String> {
    let (kind, name) = knob.object.split_once('/').expect("a kind and a name");
    let mut found = objects
        .iter()
        .filter(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    let object = found.next().cloned().unwrap_or_default();
    let (pointer, is_element) = match knob.pointer.strip_suffix("/*") {
        Some(list) => (list, true),
        None => (knob.pointer, false),
    };
    let value = object.pointer(pointer).cloned().unwrap_or_default();
    let is_so = if is_element {
        let items = value.as_array();
        items.is_some_and(|items| items.contains(&knob.expected))
    } else {
        value == knob.expected
    };
    let expected = &knob.expected;
    (!is_so).then(|| {
        format!(
            "{}: {} {pointer} is {value}, not {expected}",
            knob.values, knob.object
        )
    })
}

/// Adds the paths of all values that are not objects themselves, or are empty objects.
fn leaves(value: &Value, path: &str, all: &mut BTreeSet<String>) {
    match value.as_object().filter(|fields| !fields.is_empty()) {
        Some(fields) => {
            for (name, value) in fields {
                leaves(value, &format!("{path}.{name}"), all);
            }
        }
        None => {
            all.insert(path.to_owned());
        }
    }
}

#[test]
fn each_value_of_the_chart_is_tested() {
    let text = fs::read_to_string(chart("lockstep").join("values.yaml")).expect("the values");
    let mut known = BTreeSet::new();
    leaves(&documents(&text)[0], "", &mut known);
    let mut tested = BTreeSet::new();
    for knob in knobs() {
        leaves(&knob.values, "", &mut tested);
    }
    // The chart does not read the first two. The dashboards are tested with their files.
    let exceptions = [".enabled", ".global", ".metrics.dashboards"];
    let missing: Vec<_> = known
        .iter()
        .filter(|path| {
            !exceptions
                .iter()
                .any(|exception| path.starts_with(exception))
        })
        .filter(|path| {
            let within = |test: &String| test == *path || test.starts_with(&format!("{path}."));
            // A value that replaces a whole object covers its fields.
            !tested
                .iter()
                .any(|test| within(test) || path.starts_with(&format!("{test}.")))
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The rules in the README and the schema cannot drift from the values.
#[test]
fn the_schema_knows_each_value_of_the_chart() {
    for name in ["lockstep", "lockstep-crds"] {
        let read = |file: &str| fs::read_to_string(chart(name).join(file)).expect("a file");
        let values = documents(&read("values.yaml")).remove(0);
        let schema: Value = serde_json::from_str(&read("values.schema.json")).expect("a schema");
        let mut unknown = Vec::new();
        compare(&values, &schema, name, &mut unknown);
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

/// Adds the properties that only one of the values and the schema has.
fn compare(values: &Value, schema: &Value, path: &str, unknown: &mut Vec<String>) {
    let (Some(fields), Some(properties)) = (values.as_object(), schema["properties"].as_object())
    else {
        return;
    };
    for name in fields.keys().chain(properties.keys()) {
        let path = format!("{path}.{name}");
        match (fields.get(name), properties.get(name)) {
            (Some(value), Some(schema)) => compare(value, schema, &path, unknown),
            // Free-form objects, whose defaults are empty or those of Kubernetes.
            _ if fields.is_empty() || path.ends_with(".resources.claims") => {}
            _ => unknown.push(path),
        }
    }
}
