//! Manifests for some namespaces: the controller has no permissions elsewhere.

use std::process::Command;

use serde_json::json;

use crate::installation::{
    becomes_ready, configure_aws, create_namespace, create_secret, database, has_condition,
    is_deleted, wait_for_pods,
};
use crate::site::{OTHER_TEAM, Site, TEAM};

pub async fn runs(site: &Site) {
    let folder = site.node.directory().join("namespaced");
    let written = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["manifests", &format!("--watch-namespaces={TEAM}")])
        .arg(&folder)
        .status();
    assert!(written.expect("the program runs").success());
    for namespace in [TEAM, OTHER_TEAM] {
        create_namespace(site, namespace);
        create_secret(site, namespace);
    }
    configure_aws(site, TEAM);
    for base in ["crds", "crd-protection", "cluster"] {
        site.kubectl(&["apply", "-k", &folder.join(base).to_string_lossy()]);
    }
    site.kubectl(&["wait", "--for=condition=Established", "crd", "--all"]);
    site.kubectl(&["apply", "-k", &folder.to_string_lossy()]);
    wait_for_pods(site, TEAM, "deployment/lockstep");

    for namespace in [OTHER_TEAM, TEAM] {
        let mut object = database("orders");
        object["metadata"]["namespace"] = json!(namespace);
        site.apply(&object).expect("no webhook denies the object");
    }
    becomes_ready(site, TEAM, "orders").await;
    let elsewhere = site.databases(OTHER_TEAM);
    let is_touched = has_condition(&elsewhere, "orders", "Valid").await;
    assert!(!is_touched, "the controller reconciles another namespace");
    is_deleted(site, TEAM, "orders").await;
}
