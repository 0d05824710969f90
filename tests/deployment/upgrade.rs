//! Upgrade from the previous release to this one, and back.
//!
//! Until the project has released a version, a stand-in represents the previous release: the same program under another
//! image tag, and a CRD whose lower limit of `sizeGib` is 5 instead of 20. The stricter limit is what this release adds.

use std::path::PathBuf;
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use lockstep_envtest::{eventually_within, wait_until_fail_closed};
use serde_json::{Value, json};

use crate::installation::{
    becomes_ready, create_credentials, database, denies_a_reserved_name, install_by, is_deleted,
    wait_for_pods,
};
use crate::kustomize::apply_base;
use crate::load::Load;
use crate::overlay::{apply, overlay, patch};
use crate::rollout::{report, stop};
use crate::site::{NAMESPACE, PODS, PREVIOUS, Site};

const CRD: &str = "clouddatabases.database.example.com";

/// JSON pointer to the lower limit of `sizeGib` in the CRD.
pub const LEAST: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/storage/properties/sizeGib/minimum";

pub async fn there_and_back(site: &Site) {
    let previous = previous_release(site);
    install_by(site, async |site| apply(site, &previous)).await;
    assert_eq!(images(site).await, [PREVIOUS; 4]);
    create_credentials(site, "default").await;
    // Valid in the previous release only.
    site.apply(&small("early")).expect("the object is admitted");
    site.apply(&database("orders"))
        .expect("the object is admitted");
    becomes_ready(site, "default", "orders").await;

    let load = Load::start(site.cluster()).await;
    let started = Instant::now();
    apply_base(site).await;
    wait_for_pods(site, NAMESPACE, "deployment/lockstep");
    closes(site).await;
    assert_eq!(images(site).await, [env!("CARGO_PKG_VERSION"); 4]);
    let denied = site
        .apply(&small("late"))
        .expect_err("the stricter rule holds");
    assert!(denied.contains("spec.storage.sizeGib"), "{denied}");
    denies_a_reserved_name(site);
    // An object that was stored before the rule existed can still be changed elsewhere.
    site.kubectl(&["label", "clouddatabase", "early", "team=orders"]);
    becomes_ready(site, "default", "orders").await;

    apply(site, &previous);
    wait_for_pods(site, NAMESPACE, "deployment/lockstep");
    closes(site).await;
    assert_eq!(images(site).await, [PREVIOUS; 4]);
    let admitted = eventually_within(PODS, "the previous rule", async || {
        site.apply(&small("late")).ok()
    });
    let admitted = admitted.await;
    admitted.unwrap_or_else(|error| site.fail(&error.to_string()));
    denies_a_reserved_name(site);
    becomes_ready(site, "default", "orders").await;
    let counts = stop(site, load).await;
    report("an upgrade and its rollback", started.elapsed(), &counts);
    for name in ["orders", "early", "late"] {
        is_deleted(site, "default", name).await;
    }
}

/// Applying the manifests again resets the failure policy; the controller sets it after the next probe.
async fn closes(site: &Site) {
    let closed = wait_until_fail_closed(site.cluster()).await;
    closed.unwrap_or_else(|error| site.fail(&error.to_string()));
}

fn previous_release(site: &Site) -> PathBuf {
    let operations = json!([{"op": "replace", "path": LEAST, "value": 5}]);
    let fields = json!({
        "images": [{"name": "lockstep", "newTag": PREVIOUS}],
        "patches": [patch("CustomResourceDefinition", CRD, &operations)],
    });
    overlay(site, "previous", fields)
}

pub fn small(name: &str) -> Value {
    let mut object = database(name);
    object["spec"]["storage"]["sizeGib"] = json!(10);
    object
}

/// Returns the image tag of each container that is not being terminated.
pub async fn images(site: &Site) -> Vec<String> {
    let pods: Api<Pod> = Api::namespaced(site.cluster().client(), NAMESPACE);
    let pods = pods.list(&ListParams::default()).await.expect("a list");
    let running = pods.items.into_iter();
    let running = running.filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let containers = running.flat_map(|pod| pod.spec.expect("a spec").containers);
    let images = containers.filter_map(|container| container.image);
    images
        .map(|image| image.rsplit(':').next().unwrap_or_default().to_owned())
        .collect()
}
