//! Commands that the user can try on the running demo. Together they are a shell script.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::Context;
use lockstep_envtest::{Cluster, Installation};
use lockstep_manifests::names::Names;

use crate::commands::dev::examples::documents;

/// Returns the commands, with a comment before each group.
pub(super) async fn suggestions(
    cluster: &Cluster,
    installation: &Installation,
    examples: &Path,
    plurals: &[String],
    names: &Names,
) -> anyhow::Result<Vec<String>> {
    let mut lines = vec![
        "# Try it in another terminal:".to_owned(),
        format!("export KUBECONFIG={}", quoted(&cluster.kubeconfig())),
    ];
    let kubectl = kubectl(cluster);
    for plural in plurals {
        lines.push(format!("{kubectl} describe {plural}"));
        lines.push(format!("{kubectl} explain {plural}.spec"));
    }
    for path in documents(&examples.join("invalid"))? {
        lines.push(format!("{kubectl} apply -f {}", quoted(&path)));
    }
    lines.extend(requests(cluster, installation, &examples.join("reviews"), names).await?);
    Ok(lines)
}

/// Returns the shortest command that runs the `kubectl` of the demo.
fn kubectl(cluster: &Cluster) -> Cow<'_, str> {
    if cluster.is_kubectl_on_path() {
        return "kubectl".into();
    }
    quoted(cluster.kubectl_program()).into_owned().into()
}

/// Returns one `curl` for each review in the folder. The name of a file begins with the path to which it is sent:
/// `validate-create.json`.
async fn requests(
    cluster: &Cluster,
    installation: &Installation,
    reviews: &Path,
    names: &Names,
) -> anyhow::Result<Vec<String>> {
    if !reviews.is_dir() {
        return Ok(Vec::new());
    }
    let authority = cluster.directory().join("webhook-ca.crt");
    let pem = installation.webhook_authority(cluster).await?;
    std::fs::write(&authority, pem)
        .with_context(|| format!("cannot write {}", authority.display()))?;
    let host = format!("{}.{}.svc", names.service, names.namespace);
    let port = installation.webhook_port();
    let mut lines =
        vec!["# Send AdmissionReviews to the webhook, as the API server does:".to_owned()];
    for path in documents(reviews)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let route = name.split('-').next().unwrap_or_default();
        lines.push(format!(
            "curl --cacert {} --resolve {host}:{port}:127.0.0.1 --header 'Content-Type: application/json' \
             --data {} https://{host}:{port}/{route}",
            quoted(&authority),
            quoted(Path::new(&format!("@{}", from_here(&path).display()))),
        ));
    }
    Ok(lines)
}

/// Returns the path relative to the current directory, if it is below.
fn from_here(path: &Path) -> PathBuf {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let below = here
        .ok()
        .and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    below.unwrap_or_else(|| path.to_owned())
}

/// Returns a path as one word of a shell command.
fn quoted(path: &Path) -> Cow<'static, str> {
    let path = from_here(path).display().to_string();
    let quoted = shlex::try_quote(&path).map(Cow::into_owned);
    quoted.unwrap_or(path).into()
}
