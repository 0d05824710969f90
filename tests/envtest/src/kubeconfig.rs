//! Kubeconfig files.

use std::path::Path;

use serde_json::json;

use crate::error::Error;

/// Writes a kubeconfig for `server` with a bearer token.
pub(crate) fn write(
    path: &Path,
    server: &str,
    certificate_authority: &Path,
    token: &str,
) -> Result<(), Error> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": certificate_authority}}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    });
    // JSON is YAML.
    std::fs::write(path, config.to_string()).map_err(Error::file(path))
}
