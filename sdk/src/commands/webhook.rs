//! `lockstep webhook`: the process of the admission webhook. It has no cluster credentials.

mod compilation;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use lockstep_http_server::{CertWatcher, Server, ServerTls};
use lockstep_webhook::{Metrics, Webhook};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use crate::admission_checks::SocketClient;
use crate::args::crd_status::CrdStatusArgs;
use crate::args::limits::LimitArgs;
use crate::args::policy;
use crate::environment::Environment;
use crate::logging;
use crate::server::{health, runtime};
use crate::tracing_export::{TraceArgs, Traces};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Bind address of the admission webhook (HTTPS).
    #[arg(long, default_value = "0.0.0.0:9443")]
    webhook_bind_address: SocketAddr,
    /// Bind address of the HTTP server for /healthz, /readyz and, without `--metrics-bind-address`, /metrics.
    #[arg(long, default_value = "0.0.0.0:8080")]
    health_probe_bind_address: SocketAddr,
    /// Bind address of an HTTP server for /metrics only, such as 127.0.0.1:8082 if the controller of the same Pod
    /// forwards them (`--webhook-metrics-url`). Default: the health port serves them.
    #[arg(long)]
    metrics_bind_address: Option<SocketAddr>,
    /// Directory with tls.crt and tls.key. The files may be created later and are reloaded when they change.
    #[arg(long, default_value = "/run/lockstep/tls")]
    cert_dir: PathBuf,
    /// PEM file with CA certificates. If set, clients must present a certificate signed by one of them. The file
    /// is reloaded when it changes. Default: no client certificate is required.
    #[arg(long, value_name = "FILE")]
    client_ca_file: Option<PathBuf>,
    /// Unix socket of the controller in the same Pod, which checks what needs the cluster if the policy demands it. Default:
    /// objects are validated by rules only.
    #[arg(long, value_name = "FILE")]
    admission_check_socket: Option<PathBuf>,
    /// Time to keep serving after SIGTERM, so that the endpoint can be removed from the Service first.
    #[arg(long, default_value = "10s", value_parser = runtime::duration)]
    shutdown_delay: Duration,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    policy: policy::PolicyArgs,
    #[command(flatten)]
    crd_status: CrdStatusArgs,
    #[command(flatten)]
    traces: TraceArgs,
}

pub(crate) fn run(args: Args, environment: &Environment) -> anyhow::Result<()> {
    runtime::block_on(serve(args, environment))
}

async fn serve(args: Args, environment: &Environment) -> anyhow::Result<()> {
    let traces = args.traces.traces(environment.name())?;
    logging::start(traces.as_ref());
    let stop = runtime::shutdown_signal()?;
    let mut registry = Registry::default();
    let validators = environment.registry().lazy_validators();
    let policy = args.policy.watch(&validators, &mut registry, || {});
    let extensions = environment.registry();
    extensions.watch_extensions(&mut registry, policy::POLL_INTERVAL, || {});
    let server_metrics = lockstep_http_server::Metrics::register(&mut registry);
    let metrics = Metrics::register(&mut registry, server_metrics.clone());
    let server_limits = args.limits.server();
    let crds = args.crd_status.watch(&validators);
    let checked_kinds = environment.registry().checked_kinds();
    let checks = args.admission_check_socket;
    let checks = checks.map(|socket| Arc::new(SocketClient::new(socket, checked_kinds)));
    let mut webhook = Webhook::new(validators, metrics, args.limits.webhook())
        .with_policy(policy)
        .with_crd_status(move |validator| crds.get(validator));
    if let Some(checks) = checks {
        webhook = webhook.with_checks(checks);
    }
    let keys = CertWatcher::new(&args.cert_dir);
    tokio::spawn(Arc::clone(&keys).run(server_metrics.clone()));
    let tls = match args.client_ca_file {
        Some(client_ca) => ServerTls::with_client_ca(keys, client_ca),
        None => ServerTls::new(keys).context("cannot set up TLS")?,
    };
    let tls = Arc::new(tls);
    tokio::spawn(Arc::clone(&tls).watch_client_ca(server_metrics.clone()));
    let are_rules_usable = Arc::new(AtomicBool::new(false));
    let (ready_tls, ready_rules) = (Arc::clone(&tls), Arc::clone(&are_rules_usable));
    let draining = stop.clone();
    let ready = move || {
        if *draining.borrow() {
            Err("draining".to_owned())
        } else if !ready_tls.is_loaded() {
            Err("no serving certificate yet".to_owned())
        } else if !ready_rules.load(Ordering::Relaxed) {
            Err("the rules are being compiled for the first time".to_owned())
        } else {
            Ok(())
        }
    };
    let mut registry = Some(Arc::new(registry));
    if let Some(address) = args.metrics_bind_address {
        health::serve_metrics(address, registry.take()).await?;
    }
    let address = args.health_probe_bind_address;
    health::serve(address, registry, ready, Router::new()).await?;
    let listener = TcpListener::bind(args.webhook_bind_address)
        .await
        .with_context(|| format!("cannot listen on {}", args.webhook_bind_address))?;
    tracing::info!(address = %args.webhook_bind_address, "serving admission reviews");
    // Readiness fails first. API servers still send reviews until they have received the changed endpoints.
    let mut routes = webhook.into_router();
    if traces.is_some() {
        routes = Traces::continued(routes);
    }
    let server = Server::new(routes, tls, server_limits, server_metrics);
    let serving = server.serve(listener, stop, args.shutdown_delay);
    let check = compilation::check(environment.registry());
    serve_checked(serving, check, &are_rules_usable).await?;
    if let Some(traces) = traces {
        traces.end().await;
    }
    tracing::info!("stopped");
    Ok(())
}

/// Serves, and does a check at the same time, which ends the server if it fails.
async fn serve_checked(
    serving: impl Future<Output = ()>,
    check: impl Future<Output = anyhow::Result<()>>,
    has_passed: &AtomicBool,
) -> anyhow::Result<()> {
    let mut serving = pin!(serving);
    tokio::select! {
        checked = check => checked?,
        () = &mut serving => return Ok(()),
    }
    has_passed.store(true, Ordering::Relaxed);
    serving.await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use anyhow::anyhow;

    use super::*;

    #[tokio::test]
    async fn the_webhook_is_ready_once_the_check_has_passed_and_ends_if_it_fails() {
        let has_passed = AtomicBool::new(false);
        let unchecked = serve_checked(ready(()), pending(), &has_passed).await;
        assert!(unchecked.is_ok() && !has_passed.load(Ordering::Relaxed));
        let failed = serve_checked(pending(), ready(Err(anyhow!("unusable"))), &has_passed).await;
        assert!(failed.is_err() && !has_passed.load(Ordering::Relaxed));
        let serving = async {
            while !has_passed.load(Ordering::Relaxed) {
                tokio::task::yield_now().await;
            }
        };
        let passed = serve_checked(serving, ready(Ok(())), &has_passed).await;
        assert!(passed.is_ok() && has_passed.load(Ordering::Relaxed));
    }

    #[test]
    fn each_option_is_below_the_heading_of_its_subject() {
        let command = <Args as clap::Args>::augment_args(clap::Command::new("webhook"));
        let options = command.get_arguments();
        let options = options.filter(|option| option.get_help_heading().is_none());
        let expected = [
            "webhook-bind-address",
            "health-probe-bind-address",
            "metrics-bind-address",
            "cert-dir",
            "client-ca-file",
            "admission-check-socket",
            "shutdown-delay",
        ];
        let options: Vec<_> = options.filter_map(clap::Arg::get_long).collect();
        assert_eq!(options, expected);
    }
}
