//! Operator of DNS records on kube alone.

mod dns_api;
mod error;
mod reconcile;
mod record;
mod report;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::anyhow;
use clap::Parser;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::runtime::controller::{Config, Controller};
use kube::runtime::events::Recorder;
use kube::runtime::{Predicate, WatchStreamExt, predicates, reflector, watcher};
use kube::{Client, CustomResourceExt};

use crate::dns_api::DnsApi;
use crate::reconcile::Context;
use crate::record::DnsRecord;

/// Operator of DNS records.
#[derive(Parser)]
enum Cli {
    /// Print the custom resource definition.
    Crd,
    /// Reconcile until the process is stopped.
    Run(Args),
}

#[derive(clap::Args)]
struct Args {
    /// URL of the DNS API.
    #[arg(long)]
    dns_api_url: String,
    /// Interval in seconds at which changes that were made outside the cluster are looked for.
    #[arg(long, default_value_t = 600)]
    resync_seconds: u64,
    /// Maximum number of concurrent reconciliations.
    #[arg(long, default_value_t = 8)]
    max_concurrent_reconciles: u16,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Cli::parse() {
        Cli::Crd => {
            println!("{}", serde_json::to_string_pretty(&DnsRecord::crd())?);
            Ok(())
        }
        Cli::Run(args) => run(args).await,
    }
}

async fn run(args: Args) -> anyhow::Result<()> {
    tracing_subscriber::fmt::init();
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow!("a TLS provider is already installed"))?;
    let client = Client::try_default().await?;
    let (reader, writer) = reflector::store();
    // A change of the status alone, which is this operator's own, starts no reconciliation.
    let changes = predicates::generation.combine(predicates::finalizers);
    let records = Api::<DnsRecord>::all(client.clone());
    let records = watcher(records, watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .applied_objects()
        .predicate_filter(changes, Default::default());
    let config_maps = Api::<ConfigMap>::all(client.clone());
    let context = Context {
        client: client.clone(),
        dns: DnsApi::new(args.dns_api_url),
        recorder: Recorder::new(client, "dns-record".into()),
        resync: Duration::from_secs(args.resync_seconds),
        failures: Mutex::default(),
    };
    Controller::for_stream(records, reader)
        .owns(config_maps, watcher::Config::default())
        .with_config(Config::default().concurrency(args.max_concurrent_reconciles))
        .shutdown_on_signal()
        .run(
            reconcile::reconcile,
            reconcile::error_policy,
            Arc::new(context),
        )
        .for_each(async |_| {})
        .await;
    Ok(())
}
