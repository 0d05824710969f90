//! Releases of the chart on a real control plane.

use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::ByteString;
use lockstep_envtest::{Cluster, eventually, third_party_crds};
use serde_json::{Value, json};

use super::{RELEASE, chart, result};
use crate::env::database;
use crate::standalone_webhook::new_ca;

const CRD: &str = "clouddatabases.database.example.com";

/// Cluster with a node, on which Helm installs.
struct Site {
    cluster: Cluster,
}

impl Site {
    async fn start() -> Self {
        let cluster = Cluster::start().await.expect("a cluster");
        cluster.add_node("node-0").await.expect("a node");
        Self { cluster }
    }

    fn helm(&self, arguments: &[&str]) -> Result<String, String> {
        let mut helm = lockstep_envtest::helm().expect("helm is built");
        let helm = helm.arg("--kubeconfig").arg(self.cluster.kubeconfig());
        result(&helm.args(arguments).output().expect("helm runs"))
    }

    fn release(&self, command: &str, arguments: &[&str]) {
        let done = self.helm(&[&[command], &RELEASE[..], arguments].concat());
        done.unwrap_or_else(|error| panic!("helm {command}: {error}"));
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        result(
            &self
                .cluster
                .kubectl()
                .args(arguments)
                .output()
                .expect("kubectl runs"),
        )
    }

    fn get(&self, resource: &str, path: &str) -> String {
        let output = format!("jsonpath={{{path}}}");
        let namespace = ["--namespace", "lockstep-system"];
        let got = self.kubectl(&[&["get", resource, "--output", &output], &namespace[..]].concat());
        got.unwrap_or_else(|error| panic!("{resource}: {error}"))
    }

    fn exists(&self, resource: &str) -> bool {
        self.kubectl(&["get", resource, "--namespace", "lockstep-system"])
            .is_ok()
    }

    /// Changes the configuration as the controller does when the webhook has denied an admission probe.
    fn arm(&self, ca_bundle: &str) {
        let patch = json!([
            {"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"},
            {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": ca_bundle},
        ]);
        let patch = patch.to_string();
        let arguments = ["patch", WEBHOOK, "--type=json", "--patch", &patch];
        self.kubectl(&arguments)
            .expect("the configuration is patched");
    }

    fn failure_policy(&self) -> String {
        self.get(WEBHOOK, ".webhooks[0].failurePolicy")
    }

    /// Stores a database. The webhook does not run here, and its failure policy is still `Ignore`.
    async fn store_a_database(&self) {
        let file = self.cluster.directory().join("database.json");
        fs::write(&file, database("orders").to_string()).expect("a file");
        let file = file.to_string_lossy();
        let stored = eventually("the kind to be served", async || {
            self.kubectl(&["apply", "--filename", &file]).ok()
        });
        stored.await.expect("the database is stored");
    }
}

const WEBHOOK: &str = "validatingwebhookconfiguration/lockstep";

/// Copies the chart as an earlier release, whose CRD lacks a field.
fn earlier_chart(folder: &Path) -> PathBuf {
    let to = folder.join("lockstep");
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .arg(chart("lockstep"))
        .arg(&to)
        .status();
    assert!(copied.expect("cp runs").success());
    let file = to.join("files/crds/clouddatabases.yaml");
    let mut crd: Value =
        serde_saphyr::from_str(&fs::read_to_string(&file).expect("a CRD")).expect("YAML");
    let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let field = spec["properties"]
        .as_object_mut()
        .expect("fields")
        .remove("maintenanceWindow");
    assert!(field.is_some(), "the CRD has the field");
    // Rules on the field would not compile without it.
    spec.as_object_mut()
        .expect("a schema")
        .remove("x-kubernetes-validations");
    fs::write(&file, crd.to_string()).expect("the CRD is written");
    to
}

const FIELD: &str =
    ".spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.maintenanceWindow.type";

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_installed_upgraded_rolled_back_and_uninstalled_without_loss() {
    let site = Site::start().await;
    let earlier = earlier_chart(site.cluster.directory());
    let current = chart("lockstep");
    let (earlier, current) = (earlier.to_string_lossy(), current.to_string_lossy());
    let crd = format!("crd/{CRD}");

    site.release(
        "install",
        &[&earlier, "--create-namespace", "--wait", "--timeout=2m"],
    );
    assert_eq!(site.get(&crd, FIELD), "");
    site.store_a_database().await;

    // An upgrade updates the CRD, and changes nothing that the controller manages.
    let ca = ByteString(new_ca().certificate.into_bytes());
    let ca_bundle: String = serde_json::from_value(json!(ca)).expect("base64");
    site.arm(&ca_bundle);
    site.release(
        "upgrade",
        &[&current, "--set=replicas=3", "--wait", "--timeout=2m"],
    );
    assert_eq!(site.get(&crd, FIELD), "string");
    assert_eq!(
        site.get("deployment/lockstep", ".status.readyReplicas"),
        "3"
    );
    assert_eq!(site.failure_policy(), "Fail");
    assert_eq!(
        site.get(WEBHOOK, ".webhooks[0].clientConfig.caBundle"),
        ca_bundle
    );

    site.release("rollback", &["1", "--wait", "--timeout=2m"]);
    assert_eq!(site.get("deployment/lockstep", ".spec.replicas"), "2");
    assert_eq!(site.get(&crd, FIELD), "");

    eventually("the policy to be enforced", async || {
        let deletion = ["delete", "crd", CRD, "--dry-run=server"];
        site.kubectl(&deletion).err()
    })
    .await
    .expect("the deletion is denied");
    // The deletion of the CRD would delete all databases.
    let error = site
        .kubectl(&["delete", "crd", CRD])
        .expect_err("the deletion is denied");
    assert!(
        error.contains("deletes every CloudDatabase in the cluster"),
        "{error}"
    );
    assert!(
        error.contains(&format!(
            "kubectl annotate crd {CRD} lockstep.dev/allow-deletion=true"
        )),
        "{error}"
    );

    site.release("uninstall", &["--wait"]);
    assert!(!site.exists("deployment/lockstep") && !site.exists(WEBHOOK));
    assert!(site.exists(&crd) && site.kubectl(&["get", "clouddatabase", "orders"]).is_ok());
    let error = site
        .kubectl(&["delete", "crd", CRD])
        .expect_err("the deletion is denied");
    assert!(error.contains("lockstep.dev/allow-deletion"), "{error}");

    // A release of another name can take the CRDs over.
    let install = ["install", "other", &current, "--namespace=lockstep-system"];
    let error = site
        .helm(&install)
        .expect_err("the CRDs belong to another release");
    assert!(error.contains("invalid ownership metadata"), "{error}");
    let install = [&install[..], &["--take-ownership"]].concat();
    site.helm(&install).expect("the CRDs are taken over");
    let uninstall = ["uninstall", "other", "--namespace=lockstep-system"];
    site.helm(&uninstall)
        .expect("the other release is uninstalled");

    let install = [&current, "--take-ownership", "--wait", "--timeout=2m"];
    site.release("install", &install);
    assert_eq!(site.get(&crd, FIELD), "string");
    site.release("upgrade", &[&current, "--set=crds.enabled=false"]);
    assert!(site.exists(&crd));
    // Without `keep`, the release deletes the CRDs.
    site.release(
        "upgrade",
        &[&current, "--set=crds.keep=false", "--wait", "--timeout=2m"],
    );
    assert!(site.kubectl(&["get", "clouddatabase", "orders"]).is_ok());
    site.release("uninstall", &["--wait"]);
    assert!(!site.exists(&crd));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mode_is_accepted_by_the_api_server() {
    let site = Site::start().await;
    site.kubectl(&["create", "namespace", "lockstep-system"])
        .expect("a namespace");
    site.kubectl(&["create", "namespace", "team-a"])
        .expect("a namespace");
    let crds = third_party_crds().expect("the modules are downloaded");
    for file in &crds {
        let create = ["create", "--filename", &file.to_string_lossy()];
        site.kubectl(&create).expect("a CRD");
    }
    let established = ["wait", "--for=condition=Established", "crd", "--all"];
    site.kubectl(&established)
        .expect("the CRDs are established");
    let on = json!({"enabled": true});
    let monitored =
        json!({"podMonitor": on, "serviceMonitor": on, "prometheusRule": on, "dashboards": on});
    let modes = [
        json!({}),
        json!({"webhook": {"mode": "split"}, "networkPolicy": {"enabled": true}}),
        json!({"webhook": {"mode": "only"}, "networkPolicy": {"enabled": true, "webhookFrom": [
            {"ipBlock": {"cidr": "10.0.0.0/8"}},
        ]}}),
        json!({"webhook": {"mode": "off"}, "networkPolicy": {"enabled": true, "metricsFrom": []}}),
        json!({"webhook": {"mode": "off"}, "namespaces": ["team-a"]}),
        json!({"crds": {"keep": false}, "policy": {"CloudDatabase": {"username-reserved": "warn"}}}),
        json!({"certificates": {"source": "certManager"}, "metrics": monitored.clone()}),
        json!({"networkPolicy": {"enabled": true}, "metrics": {
            "secure": on, "podMonitor": on, "serviceMonitor": on,
        }}),
        json!({"webhook": {"mode": "split"}, "metrics": monitored, "certificates": {
            "source": "certManager",
            "certManager": {"issuerRef": {"name": "corporate", "kind": "ClusterIssuer", "group": "cert-manager.io"}},
        }}),
        json!({
            "aws": {"region": "eu-west-1", "credentials": {"source": "secret", "secretName": "keys"}},
            "affinity": {"podAntiAffinity": {}},
            "tolerations": [{"operator": "Exists"}],
            "podDisruptionBudget": {"maxUnavailable": "50%"},
            "certificates": {"source": "secret", "secretName": "mine"},
            "enableServiceLinks": false,
            "logLevel": "debug",
            "deployment": {"strategy": {"type": "Recreate", "rollingUpdate": null}},
        }),
    ];
    for values in modes {
        let file = site.cluster.directory().join("rendered.yaml");
        let rendered = super::template("lockstep", &values).expect("the chart renders");
        fs::write(&file, rendered).expect("a file");
        // Unknown fields are errors, not warnings.
        let dry_run = [
            "apply",
            "--dry-run=server",
            "--validate=strict",
            "--filename",
        ];
        let applied = site.kubectl(&[&dry_run[..], &[&file.to_string_lossy()]].concat());
        applied.unwrap_or_else(|error| panic!("{values}: {error}"));
    }
}
