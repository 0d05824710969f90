//! `lockstep uninstall`: removal of an installation and its objects.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lockstep_envtest::{Cluster, Installation, Moto, Options, eventually};
use serde_json::json;

use crate::env::{TestEnv, database};

pub fn lockstep(kubeconfig: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .output()
        .expect("the program runs")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Output of a process, and its exit code.
fn both(output: &Output) -> (Option<i32>, String) {
    let all = format!("{}{}", text(&output.stdout), text(&output.stderr));
    (output.status.code(), all)
}

impl TestEnv {
    fn uninstall(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let arguments = [&["uninstall", "--timeout=60s"], arguments].concat();
        both(&lockstep(&self.cluster.kubeconfig(), &arguments))
    }

    /// Creates a database with a deletion policy and waits until it is ready.
    async fn ready_database(&self, name: &str, policy: &str) {
        let mut object = database(name);
        object["spec"]["deletionPolicy"] = json!(policy);
        self.kubectl_apply(&object).expect("stored");
        self.condition(name, "Ready", "True").await;
    }

    fn exists(&self, what: &[&str]) -> bool {
        let found = self.kubectl(&[&["get", "--ignore-not-found", "-o", "name"], what].concat());
        !found.unwrap_or_else(|error| self.fail(&error)).is_empty()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_removed_in_order_and_the_deletion_policies_decide_about_the_instances() {
    let env = TestEnv::start_with_workloads().await;
    env.ready_database("orders", "Delete").await;
    env.ready_database("invoices", "Retain").await;

    let (code, said) = env.uninstall(&[]);
    assert_eq!(code, Some(3), "{said}");
    for line in [
        "all its data",
        "is retained",
        "ValidatingWebhookConfiguration",
        "`--crds`",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let (code, said) = env.uninstall(&["--dry-run"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(env.has_database("orders").await && env.has_database("invoices").await);

    let (code, said) = env.uninstall(&["--yes", "--crds"]);
    assert_eq!(code, Some(0), "{said}{}", env.installation.output());
    let instances = env.instances().await;
    assert_eq!(instances.len(), 1, "the retained one");
    let first = said
        .find("2 of 2 objects are deleted")
        .expect("the objects");
    let second = said.find("deleted the MutatingWebhookConfiguration");
    let third = said.find("deleted the Namespace").expect("the namespace");
    let last = said
        .find("deleted the CustomResourceDefinition")
        .expect("the CRDs");
    let second = second.expect("the configurations");
    assert!(first < second && second < third && third < last, "{said}");
    for what in [
        &["crd", "clouddatabases.database.example.com"][..],
        &["namespace", "lockstep-system"],
        &["clusterrole,clusterrolebinding", "lockstep"],
        &["clusterrole", "lockstep-secret-viewer"],
        &["clusterrole", "lockstep-secret-editor"],
        &["clusterrole", "lockstep-secret-reader"],
        &[
            "validatingwebhookconfiguration,mutatingwebhookconfiguration",
            "lockstep",
        ],
    ] {
        assert!(!env.exists(what), "{what:?}");
    }
    let (code, said) = env.uninstall(&["--yes", "--crds"]);
    assert_eq!((code, said.as_str()), (Some(0), "nothing to remove\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_controller_only_orphaning_removes_the_objects_and_every_instance_stays() {
    let mut env = TestEnv::start_with_workloads().await;
    env.ready_database("orders", "Delete").await;

    // A running controller would delete the instance: it must stop first.
    eventually("the command to wait for the controller", async || {
        let (code, said) = env.uninstall(&["--yes", "--cascade=orphan", "--timeout=2s"]);
        assert_eq!(code, Some(1), "{said}");
        said.contains("pod-0 still renews the Lease").then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert!(env.has_database("orders").await);

    let controller = env.installation.controller();
    controller.terminate().expect("a signal");
    controller.ended().await;
    let (code, said) = env.uninstall(&["--yes"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("no controller runs") && said.contains("install again"),
        "{said}"
    );

    let (code, said) = env.uninstall(&["--yes", "--cascade=orphan", "--crds"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("what it manages stays"), "{said}");
    assert!(!env.exists(&["crd", "clouddatabases.database.example.com"]));
    assert_eq!(env.instances().await.len(), 1, "the instance stays");
}

/// Creates a user who may read everything that an installation consists of, and delete nothing.
async fn reader(env: &TestEnv) -> PathBuf {
    let readable = [
        "secrets",
        "clusterroles",
        "clusterrolebindings",
        "roles",
        "rolebindings",
        "customresourcedefinitions",
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "leases.coordination.k8s.io",
    ];
    let readable = format!("--resource={}", readable.join(","));
    for args in [
        &["create", "serviceaccount", "guest"][..],
        &[
            "create",
            "clusterrolebinding",
            "guest",
            "--clusterrole=view",
            "--serviceaccount=default:guest",
        ],
        &[
            "create",
            "clusterrole",
            "reader",
            "--verb=get,list",
            &readable,
        ],
        &[
            "create",
            "clusterrolebinding",
            "reader",
            "--clusterrole=reader",
            "--serviceaccount=default:guest",
        ],
    ] {
        env.kubectl(args).expect("created");
    }
    let guest = env
        .cluster
        .service_account_kubeconfig("default", "guest", None)
        .await;
    guest.expect("a kubeconfig")
}

/// Pauses the database, checks that this is reported, and resumes it.
async fn a_paused_object_is_reported(env: &TestEnv) {
    env.kubectl(&[
        "annotate",
        "clouddatabase",
        "orders",
        "lockstep.dev/paused=true",
    ])
    .expect("paused");
    eventually("the condition Paused", async || {
        let (code, said) = env.uninstall(&["--yes"]);
        (code == Some(2) && said.contains("lockstep.dev/paused")).then_some(())
    })
    .await
    .expect("the paused object is reported");
    env.kubectl(&[
        "annotate",
        "clouddatabase",
        "orders",
        "lockstep.dev/paused-",
    ])
    .expect("resumed");
    let resumed = eventually("the end of the pause", async || {
        let (code, _) = env.uninstall(&["--dry-run"]);
        (code == Some(0)).then_some(())
    });
    resumed.await.expect("the object is no longer paused");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_prevents_the_removal_is_reported_and_a_second_run_continues() {
    let env = TestEnv::start_with_workloads().await;
    env.ready_database("orders", "Delete").await;

    // Missing rights.
    let guest = reader(&env).await;
    eventually("the aggregation of the role", async || {
        let (code, said) = both(&lockstep(&guest, &["uninstall", "--yes"]));
        assert_eq!(code, Some(2), "{said}");
        let is_reported = [
            "delete clouddatabases.database.example.com in the namespace default",
            "delete deployments.apps lockstep in the namespace lockstep-system",
            "delete namespaces lockstep-system",
        ];
        is_reported
            .iter()
            .all(|right| said.contains(right))
            .then_some(())
    })
    .await
    .expect("the missing rights are reported");
    assert!(env.has_database("orders").await);

    // An object whose deletion would wait for a user.
    a_paused_object_is_reported(&env).await;

    // An object that another client keeps.
    let keep =
        r#"[{"op": "add", "path": "/metadata/finalizers/-", "value": "example.org/backup"}]"#;
    let patch = ["patch", "clouddatabase", "orders", "--type=json", "-p"];
    env.kubectl(&[&patch[..], &[keep]].concat())
        .expect("patched");
    let (code, said) = env.uninstall(&["--yes", "--timeout=10s"]);
    assert_eq!(code, Some(1), "{said}");
    for part in [
        "CloudDatabase default/orders: ",
        "kubectl describe clouddatabases.database.example.com orders --namespace default",
        "Repeat the command",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(
        env.exists(&["deployment", "lockstep", "-n", "lockstep-system"]),
        "it still runs"
    );
    let release = r#"[{"op": "replace", "path": "/metadata/finalizers", "value": []}]"#;
    eventually("the removal of the instance", async || {
        env.instances().await.is_empty().then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    env.kubectl(&[&patch[..], &[release]].concat())
        .expect("patched");
    let (code, said) = env.uninstall(&["--yes"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        env.exists(&["crd", "clouddatabases.database.example.com"]),
        "without --crds"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespaced_installation_is_removed_from_its_namespaces_only() {
    let cluster = Cluster::start().await.expect("a cluster");
    let moto = Moto::start().await.expect("moto");
    let folder = cluster.directory().join("manifests");
    let folder_name = folder.to_string_lossy().into_owned();
    let written = ["manifests", "--watch-namespaces=team-a", &folder_name];
    let written = lockstep(&cluster.kubeconfig(), &written);
    assert!(written.status.success(), "{}", text(&written.stderr));
    for namespace in ["team-a", "team-c"] {
        cluster
            .run_kubectl(&["create", "namespace", namespace])
            .expect("a namespace");
    }
    let of_cluster = folder.join("cluster");
    let of_cluster = ["apply", "-k", &of_cluster.to_string_lossy()];
    cluster
        .run_kubectl(&of_cluster)
        .expect("the cluster-scoped objects");
    let options = Options {
        program: env!("CARGO_BIN_EXE_lockstep").into(),
        controller_env: moto.environment(),
        controller_args: vec!["--rds-not-found-grace-period=200ms".to_owned()],
        controller_server: None,
    };
    let installation = Installation::apply_without_webhook(&cluster, &folder, options).await;
    let mut installation = installation.expect("manifests");
    installation.start_controller().expect("a controller");
    for namespace in ["team-a", "team-c"] {
        let mut object = database("orders");
        object["metadata"]["namespace"] = json!(namespace);
        let file = cluster.directory().join("database.json");
        std::fs::write(&file, object.to_string()).expect("a file");
        cluster
            .run_kubectl(&["apply", "-f", &file.to_string_lossy()])
            .expect("stored");
    }
    eventually("the finalizer of the object", async || {
        let path = "jsonpath={.metadata.finalizers}";
        let get = ["get", "clouddatabase", "orders", "-n", "team-a", "-o", path];
        let finalizers = cluster.run_kubectl(&get).ok()?;
        finalizers.contains("finalizer").then_some(())
    })
    .await
    .unwrap_or_else(|error| panic!("{error}: {}", installation.output()));

    let arguments = ["uninstall", "--namespace=team-a", "--yes", "--timeout=60s"];
    let (code, said) = both(&lockstep(&cluster.kubeconfig(), &arguments));
    assert_eq!(code, Some(0), "{said}{}", installation.output());
    let left = |kinds: &str, namespace: &str| {
        let get = [
            "get",
            kinds,
            "-n",
            namespace,
            "-o",
            "name",
            "--ignore-not-found",
        ];
        cluster.run_kubectl(&get).expect("a list")
    };
    assert_eq!(
        left(
            "clouddatabases,deployments,leases,roles,rolebindings",
            "team-a"
        ),
        ""
    );
    assert_eq!(left("clouddatabases", "team-c").lines().count(), 1);
    for kept in ["namespace/team-a", "clusterrole/lockstep-edit"] {
        cluster.run_kubectl(&["get", kept]).expect("it stays");
    }
}
