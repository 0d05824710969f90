//! `lockstep vector collect-events`: sends Kubernetes Events to pipelines with a source of the type `kubernetes_events`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use lockstep_vector_event_collector::EventCollector;

/// Port of the metrics.
const PORT: u16 = 8080;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// File with the receivers, which the controller writes. It is read again when it changes.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/event-collector/config.json"
    )]
    config: PathBuf,
    /// Address of the metrics (`/metrics`) and of the health probe (`/healthz`).
    #[arg(long, value_name = "ADDRESS", default_value_t = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)))]
    metrics_bind_address: SocketAddr,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    lockstep_sdk::run_server(|stopping| async {
        let client = lockstep_sdk::cluster_client().await;
        let collector = EventCollector {
            client: client.context("cannot connect to the API server")?,
            configuration: args.config.clone(),
            metrics_address: args.metrics_bind_address,
        };
        Ok(collector.run(stopping).await?)
    })
}
