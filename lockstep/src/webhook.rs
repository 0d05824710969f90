//! `lockstep webhook`: the process of the admission webhook. It has no cluster credentials.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use webhook::{Gate, Metrics, Server, ServingKeys, Tls};

use crate::crds::CrdsArgs;
use crate::limits::LimitArgs;
use crate::traces::{TraceArgs, Traces};
use crate::{admin, kinds, logging, policy, serving};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Bind address of the admission webhook (HTTPS).
    #[arg(long, default_value = "0.0.0.0:9443")]
    listen: SocketAddr,
    /// Bind address of the HTTP server for /healthz, /readyz and /metrics.
    #[arg(long, default_value = "0.0.0.0:8080")]
    health_listen: SocketAddr,
    /// Directory with tls.crt and tls.key. The files may be created later and are reloaded when they change.
    #[arg(long, default_value = "/run/lockstep/tls")]
    tls_directory: PathBuf,
    /// PEM file with CA certificates. If set, clients must present a certificate signed by one of them. The file
    /// is reloaded when it changes. Default: no client certificate is required.
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitArgs,
    /// Time to keep serving after SIGTERM, so that the endpoint can be removed from the Service first.
    #[arg(long, default_value = "10s", value_parser = serving::duration)]
    shutdown_delay: Duration,
    #[command(flatten)]
    policy: policy::PolicyArgs,
    #[command(flatten)]
    crds: CrdsArgs,
    #[command(flatten)]
    traces: TraceArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    serving::block_on(serve(args))
}

async fn serve(args: Args) -> anyhow::Result<()> {
    let traces = args.traces.traces()?;
    logging::start(traces.as_ref());
    let stop = serving::stop_signal()?;
    let mut registry = Registry::default();
    let rulesets = kinds::rulesets()?;
    let policy = args.policy.follow(&rulesets, &mut registry, || {});
    let metrics = Metrics::register(&mut registry);
    let limits = args.limits.limits();
    let crds = args.crds.follow(&rulesets);
    let gate = Gate::new(rulesets, metrics.clone(), limits.clone())
        .under(policy)
        .beside(crds);
    let keys = ServingKeys::in_directory(&args.tls_directory);
    tokio::spawn(Arc::clone(&keys).keep_fresh(metrics.clone()));
    let tls = match args.client_ca {
        Some(client_ca) => Tls::for_clients_of(keys, client_ca),
        None => Tls::new(keys).context("cannot set up TLS")?,
    };
    let tls = Arc::new(tls);
    tokio::spawn(Arc::clone(&tls).keep_fresh(metrics.clone()));
    let (ready_tls, draining) = (Arc::clone(&tls), stop.clone());
    let ready = move || {
        if *draining.borrow() {
            Err("draining".to_owned())
        } else if !ready_tls.is_loaded() {
            Err("no serving certificate yet".to_owned())
        } else {
            Ok(())
        }
    };
    admin::serve(args.health_listen, registry, ready, Router::new()).await?;
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    tracing::info!(address = %args.listen, "serving admission reviews");
    // Readiness fails first. API servers still send reviews until they have received the changed endpoints.
    let mut routes = gate.router();
    if traces.is_some() {
        routes = Traces::continued(routes);
    }
    Server::new(routes, tls, limits, metrics)
        .serve(listener, stop, args.shutdown_delay)
        .await;
    if let Some(traces) = traces {
        traces.end().await;
    }
    tracing::info!("stopped");
    Ok(())
}
