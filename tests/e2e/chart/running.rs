//! The program with the arguments, names and permissions of the chart.

use std::fs;
use std::path::PathBuf;

use lockstep_envtest::{Cluster, Moto, eventually};
use serde_json::{Value, json};

use super::{chart, documents, helm, result};
use crate::env::{EnvOptions, TestEnv, database};

/// Renders a release as a kustomize base, in the form of those of the repository.
fn base_of(cluster: &Cluster, release: &str, namespace: &str, settings: &[&str]) -> PathBuf {
    let path = chart("lockstep");
    let path = path.to_string_lossy();
    let arguments = ["template", release, &path, "--namespace", namespace];
    let rendered = helm(&[&arguments[..], settings].concat()).expect("the chart renders");
    let (deployments, mut others): (Vec<_>, Vec<_>) = documents(&rendered)
        .into_iter()
        .partition(|object| object["kind"] == "Deployment");
    others.insert(
        0,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
    );
    let folder = cluster.directory().join("chart");
    fs::create_dir(&folder).expect("a folder");
    let write = |name: &str, objects: &[Value]| {
        let documents: Vec<_> = objects.iter().map(Value::to_string).collect();
        fs::write(folder.join(name), documents.join("\n---\n")).expect("a file");
    };
    write("deployment.yaml", &deployments);
    write("others.yaml", &others);
    let kustomization = json!({"resources": ["others.yaml", "deployment.yaml"]});
    write("kustomization.yaml", &[kustomization]);
    folder
}

/// Names of objects appear in arguments, in permissions and in the configurations: all have to agree.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_another_name_validates_and_reconciles() {
    let cluster = Cluster::start().await.expect("a cluster");
    let moto = Moto::start().await.expect("moto");
    let readable = "rbac.secretNamespaces={default}";
    let manifests = base_of(&cluster, "prod", "guards", &["--set", readable]);
    let options = EnvOptions {
        manifests: Some(manifests),
        ..EnvOptions::default()
    };
    // `install` returns after an admission probe was denied and `failurePolicy` is `Fail`.
    let env = TestEnv::install(cluster, moto, options).await;
    let mut invalid = database("invalid");
    invalid["spec"]["credentials"]["username"] = json!("user");
    let denial = env
        .kubectl_apply(&invalid)
        .expect_err("the object is denied");
    assert!(denial.contains("[username-reserved]"), "{denial}");
    env.kubectl_apply(&database("orders"))
        .expect("the object is stored");
    env.condition("orders", "Ready", "True").await;
    let names = [
        "lease/prod-lockstep-controller",
        "secret/prod-lockstep-webhook-tls",
    ];
    let found = env.kubectl(&[&["get", "--namespace=guards"], &names[..]].concat());
    found.unwrap_or_else(|error| env.fail(&error));
    let forbidden = env.installation.output().matches("forbidden").count();
    assert_eq!(forbidden, 0, "{}", env.installation.output());
}

/// An administrator installs the CRDs, and a user without rights in the cluster installs the controller.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_installs_the_controller_in_its_namespaces() {
    let cluster = Cluster::start().await.expect("a cluster");
    let helm = |arguments: &[&str]| {
        let mut helm = lockstep_envtest::helm().expect("helm is built");
        let helm = helm.arg("--kubeconfig").arg(cluster.kubeconfig());
        result(&helm.args(arguments).output().expect("helm runs"))
    };
    let crds = chart("lockstep-crds");
    let crds = crds.to_string_lossy();
    let settings = "conversion.enabled=false,userRoles.enabled=true,userRoles.tenants=true";
    let place = ["--namespace", "lockstep-system", "--create-namespace"];
    let install = [
        &["install", "lockstep-crds", &crds, "--set", settings],
        &place[..],
    ]
    .concat();
    helm(&install).expect("the CRDs are installed");
    let versions = "jsonpath={.spec.versions[*].name}";
    let crd = "clouddatabases.database.example.com";
    let versions = cluster.run_kubectl(&["get", "crd", crd, "--output", versions]);
    assert_eq!(versions.expect("the CRD"), "v1alpha1");

    for namespace in ["team-a", "team-b"] {
        let bind = [
            "--clusterrole=admin",
            "--user=tenant",
            "--namespace",
            namespace,
        ];
        let bind = [&["create", "rolebinding", "tenant"], &bind[..]].concat();
        for command in [&["create", "namespace", namespace][..], &bind] {
            cluster
                .run_kubectl(command)
                .expect("a namespace of the tenant");
        }
    }
    let lockstep = chart("lockstep");
    let lockstep = lockstep.to_string_lossy();
    let settings =
        "webhook.mode=off,crds.enabled=false,rbac.userRoles=false,namespaces={team-a,team-b}";
    let place = ["--namespace", "team-a", "--kube-as-user", "tenant"];
    let install = [
        &["install", "lockstep", &lockstep, "--set", settings],
        &place[..],
    ]
    .concat();
    // The rules of the ClusterRole `admin` are aggregated asynchronously. A failed attempt leaves a release.
    let installed = eventually("the tenant's installation", async || {
        let uninstall = [&["uninstall", "lockstep", "--ignore-not-found"], &place[..]].concat();
        helm(&install).map_err(|_| helm(&uninstall)).ok()
    });
    installed.await.expect("the tenant has the permissions");
    for (namespace, may) in [("team-a", true), ("team-b", true), ("default", false)] {
        let account = "--as=system:serviceaccount:team-a:lockstep";
        let question = [
            "auth",
            "can-i",
            "patch",
            "clouddatabases",
            account,
            "--namespace",
            namespace,
        ];
        assert_eq!(cluster.run_kubectl(&question).is_ok(), may, "{namespace}");
    }
    helm(&[&["uninstall", "lockstep"], &place[..]].concat()).expect("the tenant uninstalls it");
}
