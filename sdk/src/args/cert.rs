//! Options for the webhook's serving certificate, its CA and CA injection.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use clap::ValueEnum;
use kube::Client;
use lockstep_certs::{
    CertificateManager, CertificateSource, InjectTarget, InjectTargetKind, Metrics, ReplicaProbe,
    RotationPolicy, WebhookService,
};
use lockstep_controller::Watches;

use crate::server::runtime;

/// Source of the webhook's serving certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CertSourceArg {
    /// Issued and rotated by the controller.
    SelfSigned,
    /// Read from a Secret that another controller fills, such as cert-manager.
    Secret,
    /// Provided to the webhook as files; the controller only injects the CA bundle.
    Files,
}

/// Options for certificates and CA injection.
#[derive(clap::Args)]
#[command(next_help_heading = "TLS certificates")]
pub(crate) struct CertArgs {
    /// Source of the webhook's serving certificate.
    #[arg(long, value_enum, default_value_t = CertSourceArg::SelfSigned)]
    cert_source: CertSourceArg,
    /// Directory from which the webhook reads tls.crt and tls.key.
    #[arg(long, default_value = "/run/lockstep/tls")]
    cert_dir: PathBuf,
    /// Secret with the webhook's certificates and private keys.
    #[arg(long)]
    tls_secret: String,
    /// File with the CA that API servers must trust. Requires `--cert-source=files`. Default: the CA bundle is not
    /// modified.
    #[arg(long, value_name = "FILE")]
    ca_bundle_file: Option<PathBuf>,
    /// Service of the webhook. The serving certificate is valid for its DNS name.
    #[arg(long)]
    webhook_service: String,
    /// Additional DNS name for the serving certificate. Can be repeated.
    #[arg(long, value_name = "NAME")]
    cert_extra_dns_name: Vec<String>,
    /// Name of both the `ValidatingWebhookConfiguration` and the `MutatingWebhookConfiguration`.
    #[arg(long)]
    webhook_configuration: String,
    /// `CustomResourceDefinition` whose versions the webhook converts; the CA bundle is injected into it. Can be
    /// repeated.
    #[arg(long, value_name = "NAME")]
    inject_conversion_crd: Vec<String>,
    /// Validity of a CA certificate. It is rotated after two thirds of this time.
    #[arg(long, default_value = "8760h", value_parser = runtime::duration)]
    ca_duration: Duration,
    /// Validity of a serving certificate, at most a third of `--ca-duration`. It is renewed after two thirds of
    /// this time.
    #[arg(long, default_value = "720h", value_parser = runtime::duration)]
    cert_duration: Duration,
    /// Time that a new CA must be present in every webhook configuration before a certificate that it signed is
    /// served, so that all API servers have received the CA.
    #[arg(long, default_value = "10m", value_parser = runtime::duration)]
    ca_propagation_delay: Duration,
    /// Interval at which certificates and CA bundles are checked, in addition to watch events.
    #[arg(long, default_value = "1m", value_parser = runtime::duration)]
    cert_check_interval: Duration,
}

impl CertArgs {
    /// Returns the access to the webhook replicas, to read the certificates that they serve.
    pub(crate) fn replica_probe(&self, client: &Client, namespace: &str) -> ReplicaProbe {
        ReplicaProbe {
            client: client.clone(),
            namespace: namespace.to_owned(),
            service: self.webhook_service.clone(),
            port: lockstep_manifests::names::SERVICE_PORT.to_owned(),
            server_name: self.service_name(namespace),
        }
    }

    /// Returns the Service of the webhook.
    pub(crate) fn service(&self, namespace: &str) -> WebhookService {
        WebhookService {
            namespace: namespace.to_owned(),
            name: self.webhook_service.clone(),
        }
    }

    /// Returns the directory with the serving certificate.
    pub(crate) fn directory(&self) -> &Path {
        &self.cert_dir
    }

    /// Returns the name of both webhook configurations.
    pub(crate) fn webhook_configuration(&self) -> &str {
        &self.webhook_configuration
    }

    pub(crate) fn manager(
        &self,
        client: &Client,
        program: &str,
        namespace: &str,
        metrics: Metrics,
        watches: Watches,
    ) -> anyhow::Result<CertificateManager> {
        let injector = format!("{program}-ca-injector");
        let target = |kind, name: &String| InjectTarget {
            kind,
            name: name.clone(),
            field_manager: injector.clone(),
            service: self.service(namespace),
        };
        let configuration = &self.webhook_configuration;
        let conversions = self.inject_conversion_crd.iter();
        let targets = [InjectTargetKind::Mutating, InjectTargetKind::Validating]
            .map(|kind| target(kind, configuration))
            .into_iter()
            .chain(conversions.map(|name| target(InjectTargetKind::Conversion, name)));
        Ok(CertificateManager {
            client: client.clone(),
            controller: injector.clone(),
            namespace: namespace.to_owned(),
            secret: self.tls_secret.clone(),
            source: self.source(namespace)?,
            directory: self.cert_dir.clone(),
            targets: targets.collect(),
            replica_probe: self.replica_probe(client, namespace),
            sync_interval: self.cert_check_interval,
            metrics,
            watches,
        })
    }

    fn service_name(&self, namespace: &str) -> String {
        format!("{}.{namespace}.svc", self.webhook_service)
    }

    /// Returns the DNS names of the webhook.
    fn dns_names(&self, namespace: &str) -> Vec<String> {
        let service = self.service_name(namespace);
        let in_cluster = [service.clone(), format!("{service}.cluster.local")];
        let extra = self.cert_extra_dns_name.iter().cloned();
        in_cluster.into_iter().chain(extra).collect()
    }

    fn source(&self, namespace: &str) -> anyhow::Result<CertificateSource> {
        if self.ca_bundle_file.is_some() && self.cert_source != CertSourceArg::Files {
            bail!(
                "`--ca-bundle-file` requires `--cert-source files`; the other sources take the CA from the Secret"
            );
        }
        Ok(match self.cert_source {
            CertSourceArg::SelfSigned => {
                CertificateSource::SelfSigned(self.rotation_policy(namespace)?)
            }
            CertSourceArg::Secret => CertificateSource::Secret {
                propagation_delay: self.ca_propagation_delay,
            },
            CertSourceArg::Files => CertificateSource::Files {
                ca: self.ca_bundle_file.clone(),
            },
        })
    }

    fn rotation_policy(&self, namespace: &str) -> anyhow::Result<RotationPolicy> {
        let (ca, leaf) = (self.ca_duration, self.cert_duration);
        if leaf.is_zero() || leaf > ca / 3 {
            bail!(
                "`--cert-duration` is {leaf:?}: it must be greater than zero and at most a third of `--ca-duration` ({ca:?})"
            );
        }
        if self.ca_propagation_delay > ca / 6 {
            bail!(
                "`--ca-propagation-delay` is {:?}: it must be at most a sixth of `--ca-duration` ({ca:?})",
                self.ca_propagation_delay
            );
        }
        Ok(RotationPolicy {
            dns_names: self.dns_names(namespace),
            ca_duration: ca,
            cert_duration: leaf,
            propagation_delay: self.ca_propagation_delay,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        keys: CertArgs,
    }

    fn source(options: &[&str]) -> Result<CertificateSource, String> {
        let names = [
            "controller",
            "--tls-secret=tls",
            "--webhook-service=webhook",
            "--webhook-configuration=webhook",
        ];
        let options = [names.as_slice(), options].concat();
        let keys = Options::parse_from(options).keys;
        keys.source("system").map_err(|error| error.to_string())
    }

    #[test]
    fn inconsistent_certificate_options_are_rejected() {
        assert!(source(&[]).is_ok());
        let long = source(&["--ca-duration=2h", "--cert-duration=1h"]).expect_err("too long");
        assert!(long.contains("`--cert-duration` is 3600s"), "{long}");
        let late = source(&["--ca-duration=30m", "--cert-duration=1m"]).expect_err("too late");
        assert!(late.contains("`--ca-propagation-delay` is 600s"), "{late}");
        let other = source(&["--ca-bundle-file=ca.crt"]).expect_err("two sources");
        assert!(other.contains("--cert-source files"), "{other}");
    }
}
