//! Operator on the controller of Lockstep.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::routing::get;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use lockstep_controller::{
    Config, Controller, Metrics, OwnedType, ReconcileError, Runnable, SyncReconciler, SyncRequest,
    SyncResponse,
};
use lockstep_shared_validation::{PolicyHandle, Ruleset};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::batch::{Batch, CHILDREN};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Address of the metrics endpoint.
    #[arg(long)]
    listen: SocketAddr,
    /// Maximum number of concurrent reconciliations.
    #[arg(long)]
    concurrency: NonZeroUsize,
}

fn sync(request: &SyncRequest<'_, Batch>) -> Result<SyncResponse, ReconcileError> {
    let name = request.raw_parent()["metadata"]["name"]
        .as_str()
        .unwrap_or_default();
    let mut response = SyncResponse::new();
    for at in 0..CHILDREN {
        response = response.child(&json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("{name}-{at}")},
            "data": {"text": request.parent().spec.text},
        }))?;
    }
    Ok(response)
}

/// Reconciles until the process is killed.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let mut config = kube::Config::infer()
        .await
        .context("no configuration of a cluster found")?;
    config.headers.push((
        "user-agent".parse()?,
        // The audit log identifies the operator by this user agent.
        "lockstep".parse()?,
    ));
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let ruleset = Ruleset::<Batch>::compile().context("the rules do not compile")?;
    let operator = SyncReconciler::new(sync).owns([OwnedType::namespaced::<ConfigMap>()]);
    let run = Controller::new(
        "lockstep",
        Client::try_from(config)?,
        Arc::new(ruleset),
        operator,
        metrics,
        PolicyHandle::default(),
    );
    let pace = Config {
        max_concurrent_reconciles: args.concurrency,
        ..Config::default()
    };
    let listener = TcpListener::bind(args.listen).await?;
    let registry = Arc::new(registry);
    let routes = Router::new().route(
        "/metrics",
        get(async move || {
            let mut text = String::new();
            encode(&mut text, &registry)
                .map(|()| text)
                .unwrap_or_default()
        }),
    );
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let (_stop, stopping) = watch::channel(false);
    tokio::spawn(Box::new(run.with_config(pace)).run(stopping)).await?;
    Ok(())
}
