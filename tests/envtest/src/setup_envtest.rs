//! Download of etcd, kube-apiserver and kubectl by setup-envtest of controller-runtime.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::cache;
use crate::components::Download;
use crate::error::{Error, NETWORK_ADVICE_GO};
use crate::go_build::build;
use crate::progress::Progress;

/// Versions that are downloaded: any patch release of the Kubernetes version that the Go module pins.
const VERSIONS: &str = "1.36.x";

/// Downloads an archive, unless an earlier call has done so, verifies its checksum, and returns the folder with the
/// programs.
pub(crate) fn download(download: &Download) -> Result<PathBuf, Error> {
    let setup_envtest = build(
        "setup-envtest",
        "sigs.k8s.io/controller-runtime/tools/setup-envtest",
        "-s -w",
    )?;
    let _lock = cache::lock("envtest")?;
    let progress = Progress::start("downloading etcd, kube-apiserver and kubectl");
    progress.message(VERSIONS);
    let mut command = Command::new(&setup_envtest);
    command
        .args(["use", VERSIONS, "--print=path"])
        .arg("--bin-dir")
        .arg(cache::directory().join("envtest"));
    if let Some(index) = &download.index {
        command.args(["--index", index]);
    }
    let output = command.output().map_err(|source| Error::Start {
        program: "setup-envtest".to_owned(),
        source,
    })?;
    if output.status.success() {
        let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        // setup-envtest makes the folder read-only: `cargo clean` could not delete it.
        fs::set_permissions(&folder, Permissions::from_mode(0o755))
            .map_err(Error::file(&folder))?;
        return Ok(folder);
    }
    Err(Error::of_failed(
        format!("{command:?}"),
        String::from_utf8_lossy(&output.stderr).into_owned(),
        "cannot download etcd, kube-apiserver and kubectl",
        NETWORK_ADVICE_GO,
    ))
}
