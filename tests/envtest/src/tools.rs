//! External programs: each is built once from a named module, under a lock, and cached below `target/`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::cache::{self, asset, on_path};
use crate::components::{Components, Download};
use crate::error::Error;
use crate::go_build::{build, build_all, built};
use crate::process::run;
use crate::setup_envtest;

/// Kubernetes version that the Go module pins. Without these flags, the API server would report v0.0.0.
const KUBERNETES_LDFLAGS: &str = "-s -w \
    -X k8s.io/component-base/version.gitVersion=v1.36.3 \
    -X k8s.io/component-base/version.gitMajor=1 \
    -X k8s.io/component-base/version.gitMinor=36";

const PLAIN_LDFLAGS: &str = "-s -w";

/// Kubernetes version that `helm template` and `helm lint` assume. Without these flags, it would be v1.20.0.
const HELM_LDFLAGS: &str = "-s -w \
    -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 \
    -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=36 \
    -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1 \
    -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=36";

const APISERVER: &str = "k8s.io/kubernetes/cmd/kube-apiserver";
const CONTROLLER_MANAGER: &str = "k8s.io/kubernetes/cmd/kube-controller-manager";
const SCHEDULER: &str = "k8s.io/kubernetes/cmd/kube-scheduler";
#[cfg(feature = "node")]
const KUBELET: &str = "k8s.io/kubernetes/cmd/kubelet";
#[cfg(feature = "node")]
const KUBE_PROXY: &str = "k8s.io/kubernetes/cmd/kube-proxy";
const KUBECTL: &str = "k8s.io/kubernetes/cmd/kubectl";
const ETCD: &str = "go.etcd.io/etcd/server/v3";

/// Paths of the programs.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    pub(crate) etcd: PathBuf,
    pub(crate) apiserver: PathBuf,
    pub(crate) kubectl: PathBuf,
    /// Programs that run workloads, if the cluster has them.
    pub(crate) workloads: Option<WorkloadTools>,
}

/// Paths of the programs that create, schedule and simulate Pods and collect garbage.
#[derive(Clone, Debug)]
pub(crate) struct WorkloadTools {
    pub(crate) controller_manager: PathBuf,
    pub(crate) scheduler: PathBuf,
    pub(crate) kwok: PathBuf,
    pub(crate) kwok_stages: PathBuf,
}

impl Tools {
    /// Finds the programs in `KUBEBUILDER_ASSETS`, in the cache and on the `PATH`. The missing ones are downloaded, if
    /// that is permitted, or built, those of different Go modules at the same time.
    pub(crate) fn find_or_build(
        components: Components,
        download: Option<&Download>,
    ) -> Result<Self, Error> {
        let downloaded = download.map(downloaded).transpose()?.flatten();
        let ready = |name: &str| {
            let downloaded = downloaded.as_ref().map(|folder| folder.join(name));
            asset(name).or(downloaded)
        };
        let (etcd, apiserver) = (ready("etcd"), ready("kube-apiserver"));
        let kubectl = ready("kubectl").or_else(|| on_path("kubectl"));
        let mut kubernetes = Vec::new();
        let mut build_unless = |found: bool, package: &'static str| {
            if !found {
                kubernetes.push(package);
            }
        };
        build_unless(apiserver.is_some(), APISERVER);
        build_unless(kubectl.is_some(), KUBECTL);
        // envtest contains neither of them.
        build_unless(components == Components::ApiServer, CONTROLLER_MANAGER);
        build_unless(components == Components::ApiServer, SCHEDULER);
        thread::scope(|scope| {
            let etcd = scope.spawn(|| etcd.map_or_else(|| build("etcd", ETCD, PLAIN_LDFLAGS), Ok));
            let kwok = (components == Components::All).then(|| scope.spawn(kwok));
            let built = build_all("kubernetes", &kubernetes, KUBERNETES_LDFLAGS)?;
            let path = |found: Option<PathBuf>, package| {
                let index = kubernetes.iter().position(|built| *built == package);
                let path = found.or_else(|| Some(built[index?].clone()));
                path.expect("every program that was not found has been built")
            };
            let panicked = "a build does not panic";
            let workloads = kwok.map(|kwok| {
                let (kwok, kwok_stages) = kwok.join().expect(panicked)?;
                Ok::<_, Error>(WorkloadTools {
                    controller_manager: path(None, CONTROLLER_MANAGER),
                    scheduler: path(None, SCHEDULER),
                    kwok,
                    kwok_stages,
                })
            });
            Ok(Self {
                etcd: etcd.join().expect(panicked)?,
                apiserver: path(apiserver, APISERVER),
                kubectl: path(kubectl, KUBECTL),
                workloads: workloads.transpose()?,
            })
        })
    }
}

/// Paths of the programs of a node.
#[cfg(feature = "node")]
#[derive(Clone, Debug)]
pub(crate) struct NodeTools {
    pub(crate) kubelet: PathBuf,
    pub(crate) kube_proxy: PathBuf,
    /// Process of a Pod's sandbox.
    pub(crate) pause: PathBuf,
}

#[cfg(feature = "node")]
impl NodeTools {
    /// Finds the programs, and builds the missing ones.
    pub(crate) fn find_or_build() -> Result<Self, Error> {
        let mut built =
            build_all("kubernetes", &[KUBELET, KUBE_PROXY], KUBERNETES_LDFLAGS)?.into_iter();
        let mut next = || built.next().expect("every program has been built");
        Ok(Self {
            kubelet: next(),
            kube_proxy: next(),
            pause: build("checks", "./pause", PLAIN_LDFLAGS)?,
        })
    }
}

/// Returns the folder with the downloaded programs, or `None` if the same programs have been built already.
fn downloaded(download: &Download) -> Result<Option<PathBuf>, Error> {
    let is_ready = |name: &str, module: &str, package: &str, flags: &str| {
        Ok::<_, Error>(asset(name).is_some() || built(module, package, flags)?.is_some())
    };
    if is_ready("etcd", "etcd", ETCD, PLAIN_LDFLAGS)?
        && is_ready(
            "kube-apiserver",
            "kubernetes",
            APISERVER,
            KUBERNETES_LDFLAGS,
        )?
    {
        return Ok(None);
    }
    setup_envtest::download(download).map(Some)
}

fn kwok() -> Result<(PathBuf, PathBuf), Error> {
    let kwok = build("kwok", "sigs.k8s.io/kwok/cmd/kwok", PLAIN_LDFLAGS)?;
    let stages = kwok_stages(&kwok)?;
    Ok((kwok, stages))
}

/// Builds the program that calls the libraries of Kubernetes.
pub(crate) fn oracle() -> Result<PathBuf, Error> {
    build("kubernetes", "./oracle", "-s -w")
}

/// Builds the program that checks metrics as Prometheus does.
pub(crate) fn promlint() -> Result<PathBuf, Error> {
    build("checks", "./promlint", PLAIN_LDFLAGS)
}

/// Builds the tool of Prometheus that checks and tests rules.
pub(crate) fn promtool() -> Result<PathBuf, Error> {
    build(
        "prometheus",
        "github.com/prometheus/prometheus/cmd/promtool",
        PLAIN_LDFLAGS,
    )
}

/// Builds the program that evaluates queries with the engine of Prometheus.
pub(crate) fn promql() -> Result<PathBuf, Error> {
    build("prometheus", "./promql", PLAIN_LDFLAGS)
}

/// Builds the program that computes the status of an object with kstatus.
pub(crate) fn kstatus() -> Result<PathBuf, Error> {
    build("checks", "./kstatus", PLAIN_LDFLAGS)
}

/// Builds the program that checks servers against the specification of HTTP/2.
pub(crate) fn h2spec() -> Result<PathBuf, Error> {
    build(
        "checks",
        "github.com/summerwind/h2spec/cmd/h2spec",
        PLAIN_LDFLAGS,
    )
}

/// Builds Helm.
pub(crate) fn helm() -> Result<PathBuf, Error> {
    build("helm", "helm.sh/helm/v3/cmd/helm", HELM_LDFLAGS)
}

/// Returns the stages that kwok simulates: those of its own module that make nodes and Pods ready.
fn kwok_stages(kwok: &Path) -> Result<PathBuf, Error> {
    let stages = kwok.with_file_name("stages.yaml");
    if stages.is_file() {
        return Ok(stages);
    }
    let module = cache::source().join("go/kwok");
    let root = run(Command::new("go").current_dir(module).args([
        "list",
        "-m",
        "-f",
        "{{.Dir}}",
        "sigs.k8s.io/kwok",
    ]))?;
    let mut documents = Vec::new();
    for folder in ["node/fast", "pod/fast"] {
        let folder = Path::new(root.trim()).join("kustomize/stage").join(folder);
        let entries = fs::read_dir(&folder).map_err(Error::file(&folder))?;
        let mut paths: Vec<_> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        paths.sort();
        for path in paths {
            let is_stage = path.extension() == Some(OsStr::new("yaml"))
                && !path.ends_with("kustomization.yaml");
            if is_stage {
                documents.push(fs::read_to_string(&path).map_err(Error::file(&path))?);
            }
        }
    }
    let _lock = cache::lock("kwok-stages")?;
    fs::write(&stages, documents.join("\n---\n")).map_err(Error::file(&stages))?;
    Ok(stages)
}
