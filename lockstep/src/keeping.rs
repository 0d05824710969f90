//! The gate's keys, as options.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use certs::{Keeper, Metrics, Plan, Replicas, Source, Target, TargetKind};
use clap::ValueEnum;
use kube::Client;

use crate::serving;

/// Where the gate's serving pair comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CertSource {
    /// Made here, and exchanged in time.
    SelfManaged,
    /// Taken from a Secret that somebody else fills, such as cert-manager.
    Secret,
    /// The gate has files of its own.
    Files,
}

/// How the gate comes by its keys.
#[derive(clap::Args)]
#[command(next_help_heading = "Keys")]
pub(crate) struct KeyArgs {
    /// Where the gate's serving pair comes from.
    #[arg(long, value_enum, default_value_t = CertSource::SelfManaged)]
    cert_source: CertSource,
    /// The directory in which the gate looks for tls.crt and tls.key.
    #[arg(long, default_value = "/run/lockstep/tls")]
    tls_directory: PathBuf,
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
    extra_dns_name: Vec<String>,
    /// The name of both webhook configurations.
    #[arg(long, default_value = manifests::names::WEBHOOK_CONFIGURATION)]
    webhook_configuration: String,
    /// A `CustomResourceDefinition` whose versions the gate converts.
    #[arg(long, value_name = "NAME")]
    conversion_crd: Vec<String>,
    /// The life of a CA. After two thirds of it a new one takes over.
    #[arg(long, default_value = "8760h", value_parser = serving::duration)]
    ca_lifetime: Duration,
    /// The life of a serving certificate, at most a third of the CA's. After two thirds of it a new one is
    /// served.
    #[arg(long, default_value = "720h", value_parser = serving::duration)]
    leaf_lifetime: Duration,
    /// How long every configuration carries a new CA before anything that it signed is served: until
    /// then every API server must have heard of it.
    #[arg(long, default_value = "10m", value_parser = serving::duration)]
    ca_settle: Duration,
    /// How often everything is looked at, besides on every change.
    #[arg(long, default_value = "1m", value_parser = serving::duration)]
    keys_look_every: Duration,
}

impl KeyArgs {
    /// Whoever shows the gate's certificate.
    pub(crate) fn replicas(&self, client: &Client, namespace: &str) -> Replicas {
        Replicas {
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
                "`--ca-bundle-file` goes with `--cert-source files` only; otherwise the Secret has the CA"
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
                "`--leaf-lifetime` is {leaf:?}: it must be more than nothing and at most a third of `--ca-lifetime`, which is {ca:?}"
            );
        }
        if self.ca_settle > ca / 6 {
            bail!(
                "`--ca-settle` is {:?}: it must be at most a sixth of `--ca-lifetime`, which is {ca:?}",
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
