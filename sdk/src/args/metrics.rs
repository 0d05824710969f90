//! Options for metrics over HTTPS, with authentication.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::Uri;
use kube::Client;
use prometheus_client::registry::Registry;

use crate::server::secure_metrics;

/// Options for the metrics of the controller, and of the webhook in the same Pod.
#[derive(clap::Args)]
#[command(next_help_heading = "Metrics")]
pub(crate) struct SecureMetricsArgs {
    /// Serve /metrics over HTTPS, and no longer on the health port. Clients send a bearer token of the cluster, and
    /// need the right to `get` the non-resource URL /metrics. The controller needs the right to create
    /// `tokenreviews` and `subjectaccessreviews`.
    #[arg(long)]
    metrics_secure: bool,
    /// Bind address of /metrics with `--metrics-secure`.
    #[arg(long, default_value = "0.0.0.0:8443")]
    metrics_bind_address: SocketAddr,
    /// Directory with tls.crt and tls.key for `--metrics-secure`. Default: the serving certificate of the webhook, in
    /// `--cert-dir`.
    #[arg(long, value_name = "DIRECTORY", requires = "metrics_secure")]
    metrics_cert_dir: Option<PathBuf>,
    /// URL of the webhook in the same Pod, such as <http://127.0.0.1:8082>. Its metrics are then served at
    /// /metrics/webhook, to the same clients: the webhook has no credentials to authenticate them itself.
    #[arg(long, value_name = "URL", requires = "metrics_secure")]
    webhook_metrics_url: Option<Uri>,
}

impl SecureMetricsArgs {
    /// Serves the metrics if that is configured, and otherwise returns the registry for the health port.
    pub(crate) async fn serve(
        &self,
        registry: Registry,
        cert_dir: &Path,
        client: &Client,
    ) -> anyhow::Result<Option<Arc<Registry>>> {
        let registry = Arc::new(registry);
        if !self.metrics_secure {
            return Ok(Some(registry));
        }
        let certificates = self.metrics_cert_dir.as_deref().unwrap_or(cert_dir);
        let webhook = self.webhook_metrics_url.clone();
        let address = self.metrics_bind_address;
        secure_metrics::serve(address, certificates, registry, webhook, client.clone()).await?;
        Ok(None)
    }
}
