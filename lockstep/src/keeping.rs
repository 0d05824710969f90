//! The gate's keys, as options.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use certs::{
    CertificateManager, CertificateSource, InjectTarget, InjectTargetKind, Metrics, ReplicaProbe,
    RotationPolicy,
};
use clap::ValueEnum;
use kube::Client;

use crate::serving;

/// Where the gate's serving pair comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CertSourceArg {
    /// Made here, and exchanged in time.
    SelfSigned,
    /// Taken from a Secret that somebody else fills, such as cert-manager.
    Secret,
    /// The gate has files of its own.
    Files,
}

/// How the gate comes by its keys.
#[derive(clap::Args)]
#[command(next_help_heading = "Keys")]
pub(crate) struct CertArgs {
    /// Where the gate's serving pair comes from.
    #[arg(long, value_enum, default_value_t = CertSourceArg::SelfSigned)]
    cert_source: CertSourceArg,
    /// The directory in which the gate looks for tls.crt and tls.key.
    #[arg(long, default_value = "/run/lockstep/tls")]
    cert_dir: PathBuf,
    /// The Secret with the gate's keys.
    #[arg(long, default_value = manifests::names::TLS_SECRET)]
    tls_secret: String,
    /// A file with the CA that API servers have to trust, where the gate has files of its own; without it,
    /// the caBundle is left alone.
    #[arg(long, value_name = "FILE")]
    ca_bundle_file: Option<PathBuf>,
    /// The Service in front of the gate; its name is what the serving certificate is valid for.
    #[arg(long, default_value = manifests::names::SERVICE)]
    webhook_service: String,
    /// One more DNS name that the serving certificate is valid for.
    #[arg(long, value_name = "NAME")]
    cert_extra_dns_name: Vec<String>,
    /// The name of both webhook configurations.
    #[arg(long, default_value = manifests::names::WEBHOOK_CONFIGURATION)]
    webhook_configuration: String,
    /// A `CustomResourceDefinition` whose versions the gate converts.
    #[arg(long, value_name = "NAME")]
    inject_conversion_crd: Vec<String>,
    /// The life of a CA. After two thirds of it a new one takes over.
    #[arg(long, default_value = "8760h", value_parser = serving::duration)]
    ca_duration: Duration,
    /// The life of a serving certificate, at most a third of the CA's. After two thirds of it a new one is
    /// served.
    #[arg(long, default_value = "720h", value_parser = serving::duration)]
    cert_duration: Duration,
    /// How long every configuration carries a new CA before anything that it signed is served: until
    /// then every API server must have heard of it.
    #[arg(long, default_value = "10m", value_parser = serving::duration)]
    ca_propagation_delay: Duration,
    /// How often everything is looked at, besides on every change.
    #[arg(long, default_value = "1m", value_parser = serving::duration)]
    cert_check_interval: Duration,
}

impl CertArgs {
    /// Whoever shows the gate's certificate.
    pub(crate) fn replica_probe(&self, client: &Client, namespace: &str) -> ReplicaProbe {
        ReplicaProbe {
            client: client.clone(),
            namespace: namespace.to_owned(),
            service: self.webhook_service.clone(),
            port: manifests::names::SERVICE_PORT.to_owned(),
            server_name: self.service_name(namespace),
        }
    }

    /// The name of both webhook configurations.
    pub(crate) fn webhook_configuration(&self) -> &str {
        &self.webhook_configuration
    }

    pub(crate) fn manager(
        &self,
        client: &Client,
        namespace: &str,
        metrics: Metrics,
    ) -> anyhow::Result<CertificateManager> {
        let target = |kind, name: &String| InjectTarget {
            kind,
            name: name.clone(),
        };
        let configuration = &self.webhook_configuration;
        let conversions = self.inject_conversion_crd.iter();
        let targets = [InjectTargetKind::Mutating, InjectTargetKind::Validating]
            .map(|kind| target(kind, configuration))
            .into_iter()
            .chain(conversions.map(|name| target(InjectTargetKind::Conversion, name)));
        Ok(CertificateManager {
            client: client.clone(),
            namespace: namespace.to_owned(),
            secret: self.tls_secret.clone(),
            source: self.source(namespace)?,
            directory: self.cert_dir.clone(),
            targets: targets.collect(),
            replica_probe: self.replica_probe(client, namespace),
            sync_interval: self.cert_check_interval,
            metrics,
        })
    }

    fn service_name(&self, namespace: &str) -> String {
        format!("{}.{namespace}.svc", self.webhook_service)
    }

    fn source(&self, namespace: &str) -> anyhow::Result<CertificateSource> {
        if self.ca_bundle_file.is_some() && self.cert_source != CertSourceArg::Files {
            bail!(
                "`--ca-bundle-file` goes with `--cert-source files` only; otherwise the Secret has the CA"
            );
        }
        Ok(match self.cert_source {
            CertSourceArg::SelfSigned => {
                CertificateSource::SelfSigned(self.rotation_policy(namespace)?)
            }
            CertSourceArg::Secret => CertificateSource::Secret {
                settle: self.ca_propagation_delay,
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
                "`--leaf-lifetime` is {leaf:?}: it must be more than nothing and at most a third of `--ca-lifetime`, which is {ca:?}"
            );
        }
        if self.ca_propagation_delay > ca / 6 {
            bail!(
                "`--ca-settle` is {:?}: it must be at most a sixth of `--ca-lifetime`, which is {ca:?}",
                self.ca_propagation_delay
            );
        }
        let service = self.service_name(namespace);
        let mut dns_names = vec![service.clone(), format!("{service}.cluster.local")];
        dns_names.extend(self.cert_extra_dns_name.iter().cloned());
        Ok(RotationPolicy {
            dns_names,
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
        let options = [&["controller"], options].concat();
        let keys = Options::parse_from(options).keys;
        keys.source("system").map_err(|error| error.to_string())
    }

    #[test]
    fn lives_that_do_not_fit_into_each_other_are_refused() {
        assert!(source(&[]).is_ok());
        let long = source(&["--ca-lifetime=2h", "--leaf-lifetime=1h"]).expect_err("too long");
        assert!(long.contains("`--leaf-lifetime` is 3600s"), "{long}");
        let late = source(&["--ca-lifetime=30m", "--leaf-lifetime=1m"]).expect_err("too late");
        assert!(late.contains("`--ca-settle` is 600s"), "{late}");
        let other = source(&["--ca-bundle-file=ca.crt"]).expect_err("two sources");
        assert!(other.contains("--cert-source files"), "{other}");
    }
}
