//! Options for the webhook's serving certificate, its CA and CA injection.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use certs::{Keeper, Metrics, Plan, Replicas, Source, Target, TargetKind};
use clap::ValueEnum;
use kube::Client;

use crate::serving;

/// Source of the webhook's serving certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CertSource {
    /// Issued and rotated by the controller.
    SelfManaged,
    /// Read from a Secret that another controller fills, such as cert-manager.
    Secret,
    /// Provided to the webhook as files; the controller only injects the CA bundle.
    Files,
}

/// Options for certificates and CA injection.
#[derive(clap::Args)]
#[command(next_help_heading = "TLS certificates")]
pub(crate) struct KeyArgs {
    /// Source of the webhook's serving certificate.
    #[arg(long, value_enum, default_value_t = CertSource::SelfManaged)]
    cert_source: CertSource,
    /// Directory from which the webhook reads tls.crt and tls.key.
    #[arg(long, default_value = "/run/lockstep/tls")]
    tls_directory: PathBuf,
    /// Secret with the webhook's certificates and private keys.
    #[arg(long, default_value = manifests::names::TLS_SECRET)]
    tls_secret: String,
    /// File with the CA that API servers must trust. Requires `--cert-source=files`. Default: the CA bundle is not
    /// modified.
    #[arg(long, value_name = "FILE")]
    ca_bundle_file: Option<PathBuf>,
    /// Service of the webhook. The serving certificate is valid for its DNS name.
    #[arg(long, default_value = manifests::names::SERVICE)]
    webhook_service: String,
    /// Additional DNS name for the serving certificate. Can be repeated.
    #[arg(long, value_name = "NAME")]
    extra_dns_name: Vec<String>,
    /// Name of both the `ValidatingWebhookConfiguration` and the `MutatingWebhookConfiguration`.
    #[arg(long, default_value = manifests::names::WEBHOOK_CONFIGURATION)]
    webhook_configuration: String,
    /// `CustomResourceDefinition` whose versions the webhook converts; the CA bundle is injected into it. Can be
    /// repeated.
    #[arg(long, value_name = "NAME")]
    conversion_crd: Vec<String>,
    /// Validity of a CA certificate. It is rotated after two thirds of this time.
    #[arg(long, default_value = "8760h", value_parser = serving::duration)]
    ca_lifetime: Duration,
    /// Validity of a serving certificate, at most a third of `--ca-lifetime`. It is renewed after two thirds of
    /// this time.
    #[arg(long, default_value = "720h", value_parser = serving::duration)]
    leaf_lifetime: Duration,
    /// Time that a new CA must be present in every webhook configuration before a certificate that it signed is
    /// served, so that all API servers have received the CA.
    #[arg(long, default_value = "10m", value_parser = serving::duration)]
    ca_settle: Duration,
    /// Interval at which certificates and CA bundles are checked, in addition to watch events.
    #[arg(long, default_value = "1m", value_parser = serving::duration)]
    keys_look_every: Duration,
}

impl KeyArgs {
    /// Returns the access to the webhook replicas, to read the certificates that they serve.
    pub(crate) fn replicas(&self, client: &Client, namespace: &str) -> Replicas {
        Replicas {
            client: client.clone(),
            namespace: namespace.to_owned(),
            service: self.webhook_service.clone(),
            port: manifests::names::SERVICE_PORT.to_owned(),
            server_name: self.service_name(namespace),
        }
    }

    /// Returns the name of both webhook configurations.
    pub(crate) fn webhook_configuration(&self) -> &str {
        &self.webhook_configuration
    }

    pub(crate) fn keeper(
        &self,
        client: &Client,
        namespace: &str,
        metrics: Metrics,
    ) -> anyhow::Result<Keeper> {
        let target = |kind, name: &String| Target {
            kind,
            name: name.clone(),
        };
        let configuration = &self.webhook_configuration;
        let conversions = self.conversion_crd.iter();
        let targets = [TargetKind::Mutating, TargetKind::Validating]
            .map(|kind| target(kind, configuration))
            .into_iter()
            .chain(conversions.map(|name| target(TargetKind::Conversion, name)));
        Ok(Keeper {
            client: client.clone(),
            namespace: namespace.to_owned(),
            secret: self.tls_secret.clone(),
            source: self.source(namespace)?,
            directory: self.tls_directory.clone(),
            targets: targets.collect(),
            replicas: self.replicas(client, namespace),
            look_every: self.keys_look_every,
            metrics,
        })
    }

    fn service_name(&self, namespace: &str) -> String {
        format!("{}.{namespace}.svc", self.webhook_service)
    }

    fn source(&self, namespace: &str) -> anyhow::Result<Source> {
        if self.ca_bundle_file.is_some() && self.cert_source != CertSource::Files {
            bail!(
                "`--ca-bundle-file` requires `--cert-source files`; the other sources take the CA from the Secret"
            );
        }
        Ok(match self.cert_source {
            CertSource::SelfManaged => Source::SelfManaged(self.plan(namespace)?),
            CertSource::Secret => Source::Provided {
                settle: self.ca_settle,
            },
            CertSource::Files => Source::Files {
                ca: self.ca_bundle_file.clone(),
            },
        })
    }

    fn plan(&self, namespace: &str) -> anyhow::Result<Plan> {
        let (ca, leaf) = (self.ca_lifetime, self.leaf_lifetime);
        if leaf.is_zero() || leaf > ca / 3 {
            bail!(
                "`--leaf-lifetime` is {leaf:?}: it must be greater than zero and at most a third of `--ca-lifetime` ({ca:?})"
            );
        }
        if self.ca_settle > ca / 6 {
            bail!(
                "`--ca-settle` is {:?}: it must be at most a sixth of `--ca-lifetime` ({ca:?})",
                self.ca_settle
            );
        }
        let service = self.service_name(namespace);
        let mut dns_names = vec![service.clone(), format!("{service}.cluster.local")];
        dns_names.extend(self.extra_dns_name.iter().cloned());
        Ok(Plan {
            dns_names,
            ca_lifetime: ca,
            leaf_lifetime: leaf,
            settle: self.ca_settle,
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
        keys: KeyArgs,
    }

    fn source(options: &[&str]) -> Result<Source, String> {
        let options = [&["controller"], options].concat();
        let keys = Options::parse_from(options).keys;
        keys.source("system").map_err(|error| error.to_string())
    }

    #[test]
    fn inconsistent_certificate_options_are_rejected() {
        assert!(source(&[]).is_ok());
        let long = source(&["--ca-lifetime=2h", "--leaf-lifetime=1h"]).expect_err("too long");
        assert!(long.contains("`--leaf-lifetime` is 3600s"), "{long}");
        let late = source(&["--ca-lifetime=30m", "--leaf-lifetime=1m"]).expect_err("too late");
        assert!(late.contains("`--ca-settle` is 600s"), "{late}");
        let other = source(&["--ca-bundle-file=ca.crt"]).expect_err("two sources");
        assert!(other.contains("--cert-source files"), "{other}");
    }
}
