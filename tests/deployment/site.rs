//! The node that all trials share, moto, and the image of the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use lockstep_envtest::{Cluster, Moto, Node, eventually_within};
use lockstep_image::{CA_CERTIFICATES, Compression, Image, Metadata};
use serde_json::{Value, json};

/// Time for Pods to start on a busy machine.
pub const PODS: Duration = Duration::from_mins(5);

/// Namespace of the manifests.
pub const NAMESPACE: &str = "lockstep-system";

/// Namespaces of users.
pub const TEAM: &str = "team-a";
pub const OTHER_TEAM: &str = "team-b";

/// Tag of the image that represents the previous release.
pub const PREVIOUS: &str = "0.0.0-previous";

/// Kinds of the trials whose objects can have a finalizer.
const WITH_FINALIZERS: [(&str, &str, &str, &str); 3] = [
    (
        "database.example.com",
        "v1alpha1",
        "CloudDatabase",
        "clouddatabases",
    ),
    ("observability.kaasops.io", "v1alpha1", "Vector", "vectors"),
    (
        "observability.kaasops.io",
        "v1alpha1",
        "VectorAggregator",
        "vectoraggregators",
    ),
];

pub struct Site {
    // In the order of shutdown.
    pub moto: Moto,
    pub node: Node,
}

impl Site {
    /// Starts a node and imports the image of this build under both tags.
    pub async fn start() -> Self {
        let started = Instant::now();
        let node = Node::start().await;
        let node = node.unwrap_or_else(|error| panic!("{error}"));
        println!("node ready after {:.1} s", started.elapsed().as_secs_f64());
        let moto = Moto::start_on(&node).await.expect("moto");
        let started = Instant::now();
        let program = node.directory().join("lockstep");
        strip(Path::new(env!("CARGO_BIN_EXE_lockstep")), &program);
        let image = Image::of_program(&program, Path::new(CA_CERTIFICATES), metadata());
        let image = image.unwrap_or_else(|error| panic!("{error}"));
        import(&node, &image);
        let name = format!("docker.io/library/{}", image.name());
        let previous = name.replace(env!("CARGO_PKG_VERSION"), PREVIOUS);
        let tagged = node.tag_image(&name, &previous);
        tagged.unwrap_or_else(|error| panic!("{error}"));
        println!(
            "image imported after {:.1} s",
            started.elapsed().as_secs_f64()
        );
        Self { moto, node }
    }

    pub fn cluster(&self) -> &Cluster {
        self.node.cluster()
    }

    /// Runs `kubectl`, which must succeed.
    pub fn kubectl(&self, args: &[&str]) -> String {
        let output = self.cluster().run_kubectl(args);
        output.unwrap_or_else(|error| self.fail(&error.to_string()))
    }

    /// Applies an object with `kubectl`.
    pub fn apply(&self, object: &Value) -> Result<String, String> {
        let file = self.node.directory().join("object.json");
        fs::write(&file, object.to_string()).expect("a file");
        let applied = self
            .cluster()
            .run_kubectl(&["apply", "-f", &file.to_string_lossy()]);
        applied.map_err(|error| error.to_string())
    }

    pub fn databases(&self, namespace: &str) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk("database.example.com", "v1alpha1", "CloudDatabase");
        let resource = ApiResource::from_gvk_with_plural(&gvk, "clouddatabases");
        Api::namespaced_with(self.cluster().client(), namespace, &resource)
    }

    /// Removes what an earlier trial has left, whatever state it is in.
    pub async fn clean(&self) {
        self.remove_webhook_configurations();
        for (group, version, kind, plural) in WITH_FINALIZERS {
            let gvk = GroupVersionKind::gvk(group, version, kind);
            self.remove_all(&ApiResource::from_gvk_with_plural(&gvk, plural))
                .await;
        }
        self.kubectl(&["delete", "secret", "credentials", "--ignore-not-found"]);
        let allow = "lockstep.dev/allow-deletion=true";
        self.kubectl(&["annotate", "crd", "--all", "--overwrite", allow]);
        let labelled = "--selector=app.kubernetes.io/name in (lockstep, lockstep-uninstall)";
        self.kubectl(&["delete", "crd", "--all"]);
        let client = self.cluster().client();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        for name in [NAMESPACE, TEAM, OTHER_TEAM] {
            self.kubectl(&["delete", "namespace", name, "--ignore-not-found"]);
        }
        let rights = "clusterrole,clusterrolebinding,rolebinding";
        self.kubectl(&["delete", rights, "--namespace=default", labelled]);
        let of_vector = "--selector=app.kubernetes.io/managed-by=vector-operator";
        self.kubectl(&["delete", "clusterrole,clusterrolebinding", of_vector]);
        let protection = "validatingadmissionpolicy,validatingadmissionpolicybinding";
        self.kubectl(&["delete", protection, labelled]);
        let crds: Api<CustomResourceDefinition> = Api::all(client);
        let gone = eventually_within(PODS, "a clean cluster", async || {
            for name in [NAMESPACE, TEAM, OTHER_TEAM] {
                if namespaces.get_opt(name).await.ok()?.is_some() {
                    return None;
                }
            }
            let crds = crds.list(&ListParams::default()).await.ok()?;
            crds.items.is_empty().then_some(())
        });
        gone.await
            .unwrap_or_else(|error| self.fail(&error.to_string()));
    }

    fn remove_webhook_configurations(&self) {
        for kind in [
            "validatingwebhookconfiguration",
            "mutatingwebhookconfiguration",
        ] {
            self.kubectl(&["delete", kind, "--all"]);
        }
    }

    /// Deletes objects without their controller: nothing else removes the finalizers.
    async fn remove_all(&self, resource: &ApiResource) {
        let client = self.cluster().client();
        let all: Api<DynamicObject> = Api::all_with(client.clone(), resource);
        // Without the CRD, the list is an error, and no object exists.
        let Ok(objects) = all.list(&ListParams::default()).await else {
            return;
        };
        for object in objects {
            let name = object.metadata.name.unwrap_or_default();
            let namespace = object.metadata.namespace.unwrap_or_default();
            let api: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), &namespace, resource);
            let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let _ = api.delete(&name, &Default::default()).await;
            let _ = api.patch(&name, &PatchParams::default(), &patch).await;
        }
    }

    /// Panics with the state of the Pods and the end of the logs.
    pub fn fail(&self, why: &str) -> ! {
        let show = |args: &[&str]| {
            let shown = self.cluster().run_kubectl(args);
            shown.unwrap_or_else(|error| error.to_string())
        };
        let pods = show(&["get", "pods", "--all-namespaces", "--output=wide"]);
        let events = show(&["get", "events", "--all-namespaces"]);
        let events: Vec<_> = events.lines().rev().take(30).collect();
        let selector = "--selector=app.kubernetes.io/name=lockstep";
        let all = ["--all-containers", "--prefix", "--tail=15", "--namespace"];
        let logs = |namespace| show(&[&["logs", selector][..], &all, &[namespace]].concat());
        let logs = [NAMESPACE, TEAM].map(logs).concat();
        panic!(
            "{why}\n{pods}\n{}\n{logs}\n{}",
            events.join("\n"),
            self.node.tails()
        );
    }
}

/// Returns the repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Copies a program without its symbols, which are most of a debug build.
pub fn strip(program: &Path, to: &Path) {
    let stripped = Command::new("strip")
        .arg("-o")
        .arg(to)
        .arg(program)
        .status();
    assert!(
        stripped
            .expect("binutils are installed with the linker")
            .success()
    );
}

fn metadata() -> Metadata {
    Metadata {
        repository: "lockstep".to_owned(),
        tag: env!("CARGO_PKG_VERSION").to_owned(),
        revision: None,
    }
}

/// Imports an image.
pub fn import(node: &Node, image: &Image) {
    let archive = node.directory().join("image.tar");
    // The archive never leaves this machine.
    let written = image.write_archive(&archive, Compression::none());
    let written = written.unwrap_or_else(|error| panic!("{error}"));
    println!("{} {}", image.name(), written.digest);
    let imported = node.import_image(&archive);
    imported.unwrap_or_else(|error| panic!("{error}"));
    fs::remove_file(&archive).expect("the archive exists");
}
