//! An uninstallation keeps the CRDs, and with them all objects. Their deletion is denied until it is allowed.

use lockstep_envtest::{Cluster, Error, eventually};

use crate::env::{database, root};
use crate::install::apply_manifests;

const CRD: &str = "clouddatabases.database.example.com";

/// Waits until the API server enforces the policy, which it does some time after the policy is stored.
async fn wait_for_the_policy(cluster: &Cluster) {
    eventually("the denial of a deletion", async || {
        let deletion = ["delete", "crd", CRD, "--dry-run=server"];
        cluster.run_kubectl(&deletion).err().map(drop)
    })
    .await
    .expect("the policy is enforced");
}

fn denied(attempt: Result<String, Error>) {
    let error = attempt.expect_err("the deletion is denied").to_string();
    for part in [
        "deletes every CloudDatabase in the cluster",
        "kubectl get clouddatabases.database.example.com --all-namespaces",
        "kubectl annotate crd clouddatabases.database.example.com lockstep.dev/allow-deletion=true",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_deletion_of_manifests_deletes_the_objects() {
    let cluster = Cluster::start().await.expect("a cluster");
    apply_manifests(&cluster);
    let file = cluster.directory().join("database.json");
    std::fs::write(&file, database("orders").to_string()).expect("a file");
    let file = file.to_string_lossy();
    let stored = eventually("the kind to be served", async || {
        cluster.run_kubectl(&["apply", "--filename", &file]).ok()
    });
    stored.await.expect("the database is stored");
    wait_for_the_policy(&cluster).await;
    let has_database = || {
        cluster
            .run_kubectl(&["get", "clouddatabase", "orders"])
            .is_ok()
    };
    let delete = |base: &str| {
        let base = root().join("manifests/config").join(base);
        cluster.run_kubectl(&["delete", "-k", &base.to_string_lossy(), "--timeout=60s"])
    };

    // Also while the namespace, in which Lockstep ran, is already deleted.
    delete("").expect("the installation is deleted");
    assert!(has_database());
    // A tool that retries does not succeed either.
    denied(delete("crds"));
    denied(delete("crds"));
    let all = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    denied(cluster.run_kubectl(&["delete", "--raw", all]));
    let other_value = ["annotate", "crd", CRD, "lockstep.dev/allow-deletion=yes"];
    cluster
        .run_kubectl(&other_value)
        .expect("the CRD is annotated");
    denied(cluster.run_kubectl(&["delete", "crd", CRD]));
    assert!(has_database());

    let allow = [
        "annotate",
        "--overwrite",
        "crd",
        CRD,
        "lockstep.dev/allow-deletion=true",
    ];
    cluster.run_kubectl(&allow).expect("the CRD is annotated");
    delete("crds").expect("the CRD is deleted");
    delete("crd-protection").expect("the policy is deleted");
    assert!(!has_database());
}

#[tokio::test(flavor = "multi_thread")]
async fn crds_of_others_can_be_deleted() {
    let cluster = Cluster::start().await.expect("a cluster");
    apply_manifests(&cluster);
    let other = root().join("tests/e2e/kaasops/crds.yaml");
    let other = other.to_string_lossy();
    cluster
        .run_kubectl(&["apply", "--filename", &other])
        .expect("the CRDs are applied");
    wait_for_the_policy(&cluster).await;
    cluster
        .run_kubectl(&["delete", "--filename", &other])
        .expect("the CRDs are deleted");
}
