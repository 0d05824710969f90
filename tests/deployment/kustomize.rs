//! The shipped kustomize base.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};

use crate::installation::{
    becomes_ready, create_credentials, database, denies_a_reserved_name, install_by, is_deleted,
};
use crate::site::{NAMESPACE, Site, root};

/// Applies the committed manifests without any change, in the order of the documentation.
pub async fn apply_base(site: &Site) {
    for base in ["crds", "crd-protection", "."] {
        let base = root().join("manifests/config").join(base);
        site.kubectl(&["apply", "-k", &base.to_string_lossy()]);
    }
}

pub async fn installs(site: &Site) {
    install_by(site, apply_base).await;

    let pods: Api<Pod> = Api::namespaced(site.cluster().client(), NAMESPACE);
    let pods = pods.list(&ListParams::default()).await.expect("a list");
    assert_eq!(pods.items.len(), 2);
    for pod in &pods.items {
        let statuses = pod
            .status
            .as_ref()
            .and_then(|status| status.container_statuses.as_ref());
        let statuses = statuses.expect("the kubelet reports the containers");
        let ready = statuses.iter().filter(|status| status.ready).count();
        assert_eq!(ready, 2, "both containers are ready: {statuses:?}");
        let image = &statuses[0].image_id;
        println!(
            "{}: {image}",
            pod.metadata.name.as_deref().unwrap_or_default()
        );
    }
    let name = pods.items[0].metadata.name.as_deref().unwrap_or_default();
    let exec = ["exec", name, "-n", NAMESPACE, "-c", "webhook", "--"];
    let version = site.kubectl(&[&exec[..], &["lockstep", "--version"]].concat());
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
    for shell in ["sh", "bash", "/bin/busybox"] {
        let run = site.cluster().run_kubectl(&[&exec[..], &[shell]].concat());
        let error = run.expect_err("the image has no shell").to_string();
        assert!(
            error.contains("not found") || error.contains("no such file"),
            "{error}"
        );
    }

    denies_a_reserved_name(site);
    create_credentials(site, "default").await;
    let applied = site.apply(&database("orders"));
    applied.unwrap_or_else(|error| site.fail(&error));
    becomes_ready(site, "default", "orders").await;
    is_deleted(site, "default", "orders").await;
}
