//! External programs: each is built once from a named module, under a lock, and cached below `target/`.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::process::run;

/// Kubernetes version that the Go module pins. Without these flags, the API server would report v0.0.0.
const KUBERNETES_LDFLAGS: &str = "-s -w \
    -X k8s.io/component-base/version.gitVersion=v1.36.3 \
    -X k8s.io/component-base/version.gitMajor=1 \
    -X k8s.io/component-base/version.gitMinor=36";

const PLAIN_LDFLAGS: &str = "-s -w";

/// Paths of the programs.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    pub(crate) etcd: PathBuf,
    pub(crate) apiserver: PathBuf,
    pub(crate) controller_manager: PathBuf,
    pub(crate) scheduler: PathBuf,
    pub(crate) kubectl: PathBuf,
    pub(crate) kwok: PathBuf,
    pub(crate) kwok_stages: PathBuf,
}

impl Tools {
    /// Finds the programs in `KUBEBUILDER_ASSETS` and on the `PATH`, and builds the missing ones.
    pub(crate) fn find_or_build() -> Result<Self, Error> {
        let _lock = lock()?;
        let asset = |name: &str| {
            let path = PathBuf::from(env::var_os("KUBEBUILDER_ASSETS")?).join(name);
            path.is_file().then_some(path)
        };
        let kubernetes = |name: &str| {
            build(
                "kubernetes",
                &format!("k8s.io/kubernetes/cmd/{name}"),
                KUBERNETES_LDFLAGS,
            )
        };
        let kwok = build("kwok", "sigs.k8s.io/kwok/cmd/kwok", PLAIN_LDFLAGS)?;
        Ok(Self {
            etcd: asset("etcd").map_or_else(
                || build("etcd", "go.etcd.io/etcd/server/v3", PLAIN_LDFLAGS),
                Ok,
            )?,
            apiserver: asset("kube-apiserver").map_or_else(|| kubernetes("kube-apiserver"), Ok)?,
            // envtest contains neither of them.
            controller_manager: kubernetes("kube-controller-manager")?,
            scheduler: kubernetes("kube-scheduler")?,
            kubectl: asset("kubectl")
                .or_else(|| on_path("kubectl"))
                .map_or_else(|| kubernetes("kubectl"), Ok)?,
            kwok_stages: kwok_stages(&kwok)?,
            kwok,
        })
    }
}

/// Installs moto in a virtual environment, if needed, and returns the path of its server.
pub(crate) fn moto_server() -> Result<PathBuf, Error> {
    let _lock = lock()?;
    let requirements = source().join("python/requirements.txt");
    let environment = cache().join(format!(
        "moto-{}",
        fingerprint(std::slice::from_ref(&requirements), "")?
    ));
    let server = environment.join("bin/moto_server");
    let complete = environment.join("complete");
    if !complete.is_file() {
        eprintln!("installing moto (once)");
        run(Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&environment))?;
        run(Command::new(environment.join("bin/pip"))
            .args([
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--requirement",
            ])
            .arg(&requirements))?;
        fs::write(&complete, "").map_err(Error::file(&complete))?;
    }
    Ok(server)
}

/// Builds the program that calls the libraries of Kubernetes.
pub(crate) fn oracle() -> Result<PathBuf, Error> {
    let _lock = lock()?;
    build("kubernetes", "./oracle", "-s -w")
}

/// Builds the program that checks metrics as Prometheus does.
pub(crate) fn promlint() -> Result<PathBuf, Error> {
    let _lock = lock()?;
    build("checks", "./promlint", PLAIN_LDFLAGS)
}

/// Builds the program that computes the status of an object with kstatus.
pub(crate) fn kstatus() -> Result<PathBuf, Error> {
    let _lock = lock()?;
    build("checks", "./kstatus", PLAIN_LDFLAGS)
}

/// Builds the program that checks servers against the specification of HTTP/2.
pub(crate) fn h2spec() -> Result<PathBuf, Error> {
    let _lock = lock()?;
    build(
        "checks",
        "github.com/summerwind/h2spec/cmd/h2spec",
        PLAIN_LDFLAGS,
    )
}

/// Builds one program of one of the Go modules, unless this exact version has been built already.
fn build(module: &str, package: &str, ldflags: &str) -> Result<PathBuf, Error> {
    let source = source().join("go").join(module);
    let mut made_of = vec![source.join("go.mod"), source.join("go.sum")];
    if let Some(folder) = package.strip_prefix("./") {
        made_of.extend(go_files(&source.join(folder))?);
    }
    let key = fingerprint(&made_of, ldflags)?;
    let directory = cache().join(format!("{module}-{key}"));
    // `go build` names a program after the last element of its package path that is not a major version.
    let elements = package
        .rsplit('/')
        .find(|element| !is_major_version(element));
    let program = directory.join(elements.unwrap_or(package));
    if !program.is_file() {
        eprintln!("building {package} (once; Kubernetes takes some minutes)");
        // `-o` accepts a directory only if it exists.
        fs::create_dir_all(&directory).map_err(Error::file(&directory))?;
        run(Command::new("go")
            .current_dir(&source)
            .args(["build", "-mod=readonly", "-ldflags", ldflags, "-o"])
            .arg(&directory)
            .arg(package))?;
    }
    Ok(program)
}

/// Returns the stages that kwok simulates: those of its own module that make nodes and Pods ready.
fn kwok_stages(kwok: &Path) -> Result<PathBuf, Error> {
    let stages = kwok.with_file_name("stages.yaml");
    if stages.is_file() {
        return Ok(stages);
    }
    let module = source().join("go/kwok");
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
    fs::write(&stages, documents.join("\n---\n")).map_err(Error::file(&stages))?;
    Ok(stages)
}

fn is_major_version(element: &str) -> bool {
    element
        .strip_prefix('v')
        .is_some_and(|digits| digits.chars().all(|c| c.is_ascii_digit()))
}

fn on_path(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

/// Locks the cache: one process at a time builds, and the others wait and then find the programs.
fn lock() -> Result<File, Error> {
    let cache = cache();
    fs::create_dir_all(&cache).map_err(Error::file(&cache))?;
    let path = cache.join("lock");
    let file = File::create(&path).map_err(Error::file(&path))?;
    file.lock().map_err(Error::file(&path))?;
    Ok(file)
}

fn go_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).map_err(Error::file(folder))?;
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension() == Some(OsStr::new("go")))
        .collect();
    files.sort();
    Ok(files)
}

fn fingerprint(files: &[PathBuf], flags: &str) -> Result<String, Error> {
    let mut hasher = DefaultHasher::new();
    flags.hash(&mut hasher);
    for file in files {
        fs::read(file)
            .map_err(Error::file(file.as_path()))?
            .hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn source() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the cache directory. It is below the target directory, so that `cargo clean` deletes it.
fn cache() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| source().join("../../target"), PathBuf::from);
    target.join("control-plane")
}
