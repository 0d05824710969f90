//! CRDs of other projects, from the Go modules that contain them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::error::Error;
use crate::go_build;
use crate::process::run;

/// Modules, and the files in them.
const FILES: [(&str, &[&str]); 2] = [
    (
        "github.com/cert-manager/cert-manager",
        &[
            "deploy/crds/cert-manager.io_certificates.yaml",
            "deploy/crds/cert-manager.io_issuers.yaml",
        ],
    ),
    (
        "github.com/prometheus-operator/prometheus-operator",
        &[
            "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
            "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
            "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
        ],
    ),
];

/// Returns the files with the CRDs of cert-manager and of the Prometheus Operator for which our manifests have objects.
///
/// # Errors
///
/// If a module cannot be downloaded.
pub fn third_party_crds() -> Result<Vec<PathBuf>, Error> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("go/crds");
    let mut files = Vec::new();
    for (module, names) in FILES {
        let mut download = Command::new("go");
        let download = download.current_dir(&source);
        let download = download.args(["mod", "download", "-json", module]);
        let response = go_build::retried(|| run(download))?;
        let response: Value = serde_json::from_str(&response)
            .map_err(|error| Error::Manifest(format!("`go mod download` of {module}: {error}")))?;
        let folder = Path::new(response["Dir"].as_str().unwrap_or_default());
        files.extend(names.iter().map(|name| folder.join(name)));
    }
    Ok(files)
}
