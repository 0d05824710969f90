//! `lockstep uninstall`: removal of an installation and its objects.

use std::path::Path;
use std::process::{Command, Output};

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
    let env = TestEnv::start().await;
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
