//! The Helm chart, with a release whose name is not that of the kustomize base.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Instant;

use kube::api::ListParams;
use lockstep_envtest::wait_until_fail_closed;
use serde_json::{Value, json};

use crate::installation::{
    becomes_ready, create_namespace, create_secret, database, denies_a_reserved_name, wait_for_pods,
};
use crate::load::Load;
use crate::rollout::{report, stop};
use crate::site::{NAMESPACE, PODS, PREVIOUS, Site, root};
use crate::upgrade::{LEAST, images, small};

const RELEASE: &str = "prod";
const DEPLOYMENT: &str = "deployment/prod-lockstep";

pub async fn release(site: &Site) {
    create_namespace(site, NAMESPACE);
    create_secret(site, "default");
    let (previous, current) = (
        previous_chart(site),
        root().join("manifests/chart/lockstep"),
    );
    let (previous, current) = (previous.to_string_lossy(), current.to_string_lossy());
    let values = values(site).to_string_lossy().into_owned();
    let values = ["--values", &values];
    let tag = format!("image.tag={PREVIOUS}");
    helm(
        site,
        "install",
        &[&[&previous, "--set", &tag], &values[..]].concat(),
    );
    is_running(site, PREVIOUS).await;
    let invalid = site.apply(&small("early"));
    invalid.unwrap_or_else(|error| site.fail(&error));
    site.apply(&database("orders"))
        .expect("the object is admitted");
    becomes_ready(site, "default", "orders").await;

    let load = Load::start(site.cluster()).await;
    let started = Instant::now();
    helm(site, "upgrade", &[&[&*current], &values[..]].concat());
    is_running(site, env!("CARGO_PKG_VERSION")).await;
    let denied = site
        .apply(&small("late"))
        .expect_err("the stricter rule holds");
    assert!(denied.contains("spec.storage.sizeGib"), "{denied}");
    helm(site, "rollback", &["1"]);
    is_running(site, PREVIOUS).await;
    helm(site, "rollback", &["2"]);
    is_running(site, env!("CARGO_PKG_VERSION")).await;
    denies_a_reserved_name(site);
    becomes_ready(site, "default", "orders").await;
    let counts = stop(site, load).await;
    let what = "an upgrade of the chart, its rollback, and the upgrade again";
    report(what, started.elapsed(), &counts);

    finds_the_release(site);
    is_uninstalled(site).await;
}

/// The subcommands read the names from the Deployment, and leave what Helm manages to Helm.
fn finds_the_release(site: &Site) {
    let status = lockstep(site, &["status"]);
    let text = String::from_utf8_lossy(&status.stdout);
    println!("{text}");
    // The only problem is the object that was stored before the stricter rule existed.
    let mut problems = text.lines().filter(|line| line.starts_with("  - "));
    assert!(
        problems.all(|problem| problem.contains("default/early")),
        "{text}"
    );
    let found = [
        " prod-lockstep  ",
        "validate.lockstep.dev  Fail",
        "serving certificate",
    ];
    assert!(found.iter().all(|part| text.contains(part)), "{text}");
    let uninstall = lockstep(site, &["uninstall", "--yes"]);
    let text = String::from_utf8_lossy(&uninstall.stderr);
    assert_eq!(uninstall.status.code(), Some(2), "{text}");
    assert!(
        text.contains("`helm uninstall prod --namespace=lockstep-system`"),
        "{text}"
    );
}

/// The hook deletes the objects while the controller runs. Only the CRDs stay.
async fn is_uninstalled(site: &Site) {
    helm(site, "uninstall", &["--wait"]);
    let databases = site.databases("default").list(&ListParams::default()).await;
    let databases = databases.expect("the CRD stays").items;
    assert!(databases.is_empty(), "{databases:?}");
    let selector = "--selector=app.kubernetes.io/instance=prod";
    let everything = "deployment,service,serviceaccount,role,rolebinding,clusterrole,clusterrolebinding,job,\
                      validatingwebhookconfiguration,mutatingwebhookconfiguration";
    let left = site.kubectl(&[
        "get",
        everything,
        selector,
        "--all-namespaces",
        "--output=name",
    ]);
    assert_eq!(left, "", "the release and its hook leave nothing");
    let left = ["get", "crd", "--output=name"];
    assert!(
        site.kubectl(&left)
            .contains("clouddatabases.database.example.com")
    );
}

/// Waits until only Pods of this version run, and their webhook fails closed.
async fn is_running(site: &Site, tag: &str) {
    wait_for_pods(site, NAMESPACE, DEPLOYMENT);
    let closed = wait_until_fail_closed(site.cluster()).await;
    closed.unwrap_or_else(|error| site.fail(&error.to_string()));
    assert_eq!(images(site).await, [tag; 4]);
}

fn helm(site: &Site, command: &str, arguments: &[&str]) {
    let mut helm = lockstep_envtest::helm().expect("helm is built");
    let output = helm
        .arg("--kubeconfig")
        .arg(site.cluster().kubeconfig())
        .args([command, RELEASE, "--namespace", NAMESPACE])
        .arg(format!("--timeout={}s", PODS.as_secs()))
        .args(arguments)
        .output()
        .expect("helm runs");
    if !output.status.success() {
        site.fail(&format!(
            "helm {command}: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
}

fn lockstep(site: &Site, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(arguments)
        .arg("--kubeconfig")
        .arg(site.cluster().kubeconfig())
        .output()
        .expect("the program runs")
}

/// Writes the values of the release: AWS settings for moto, and the optional parts that a test needs.
fn values(site: &Site) -> PathBuf {
    let environment: Vec<Value> = site
        .moto
        .environment()
        .into_iter()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    let values = json!({
        "controller": {"extraEnv": environment},
        "rbac": {"secretNamespaces": ["default"]},
        "uninstall": {"deleteObjects": true, "timeout": "4m"},
    });
    let file = site.node.directory().join("values.json");
    fs::write(&file, values.to_string()).expect("a file");
    file
}

/// Copies the chart as the previous release, whose CRD is less strict.
fn previous_chart(site: &Site) -> PathBuf {
    let folder = site.node.directory().join("previous-chart");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(root().join("manifests/chart/lockstep"))
        .arg(&folder)
        .status();
    assert!(copied.expect("cp runs").success());
    let file = folder.join("files/crds/clouddatabases.yaml");
    let crd = fs::read_to_string(&file).expect("a CRD");
    let mut crd: Value = serde_saphyr::from_str(&crd).expect("YAML");
    *crd.pointer_mut(LEAST).expect("the CRD has the limit") = json!(5);
    fs::write(&file, crd.to_string()).expect("the CRD is written");
    folder
}
