//! Collector: one task for each receiver of the configuration.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use futures::future::join_all;
use jiff::Timestamp;
use kube::Client;
use lockstep_http_server::{Limits, Server};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::configuration::{Configuration, Receiver};
use crate::error::CollectorError;
use crate::metrics::Metrics;
use crate::protocol::Source;
use crate::receiver::ReceiverTask;

/// Interval in which the configuration is read: a kubelet takes up to a minute to update the file.
const READ_INTERVAL: Duration = Duration::from_secs(5);

/// Media type of the metrics.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Event collector.
pub struct EventCollector {
    /// Client of the API server whose Events are collected.
    pub client: Client,
    /// File with the receivers. It is read again when it changes.
    pub configuration: PathBuf,
    /// Address of the metrics and of the health probes.
    pub metrics_address: SocketAddr,
}

/// Task of a receiver.
struct Running {
    /// Maximum number of events in a batch.
    max_batch_size: usize,
    stopping: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// Tasks of all receivers.
struct Tasks {
    client: Client,
    metrics: Metrics,
    running: BTreeMap<Receiver, Running>,
}

impl EventCollector {
    /// Collects Events until `stopping` becomes true.
    ///
    /// # Guarantees
    ///
    /// An Event is sent at least once, unless Vector rejects it for good, the process ends before Vector has answered, or it is
    /// older than the receiver. A receiver that does not answer delays no other one.
    ///
    /// # Errors
    ///
    /// The configuration cannot be read, or the address cannot be listened on.
    pub async fn run(self, mut stopping: watch::Receiver<bool>) -> Result<(), CollectorError> {
        let mut configuration = Configuration::read(&self.configuration)?;
        let address = self.metrics_address;
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| CollectorError::Listen { address, error })?;
        let mut registry = Registry::default();
        let mut tasks = Tasks {
            client: self.client,
            metrics: Metrics::register(&mut registry),
            running: BTreeMap::new(),
        };
        let server = Server::http(routes(registry), Limits::default());
        let serving = tokio::spawn(server.serve(listener, stopping.clone(), Duration::ZERO));
        tracing::info!(%address, receivers = configuration.receivers.len(), "collecting Events");
        tasks.set(&configuration).await;
        let mut ticks = tokio::time::interval(READ_INTERVAL);
        let mut last_problem = None;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                // A dropped sender counts as a signal to stop.
                _ = stopping.wait_for(|stopping| *stopping) => break,
            }
            match Configuration::read(&self.configuration) {
                Ok(read) if read != configuration => {
                    tracing::info!(
                        receivers = read.receivers.len(),
                        "the configuration has changed"
                    );
                    tasks.set(&read).await;
                    configuration = read;
                    last_problem = None;
                }
                Ok(_) => last_problem = None,
                Err(error) => {
                    let problem = Some(error.to_string());
                    if problem != last_problem {
                        tracing::error!(%error, "the last valid configuration stays in force");
                    }
                    last_problem = problem;
                }
            }
        }
        tasks.set(&Configuration::default()).await;
        // It has ended, or ends with the signal.
        let _ = serving.await;
        Ok(())
    }
}

impl Tasks {
    /// Ends the tasks of receivers that are not in a configuration, and starts those of new ones.
    async fn set(&mut self, configuration: &Configuration) {
        let max_batch_size = configuration.max_batch_size();
        let stays = |receiver: &Receiver, running: &Running| {
            configuration.receivers.contains(receiver) && running.max_batch_size == max_batch_size
        };
        let gone = self
            .running
            .extract_if(.., |receiver, running| !stays(receiver, running));
        let gone: Vec<_> = gone.collect();
        for (_, running) in &gone {
            running.stopping.send_replace(true);
        }
        // Before the last batches of others, which may take a while.
        for receiver in &configuration.receivers {
            if !self.running.contains_key(receiver) {
                self.start(receiver, max_batch_size);
            }
        }
        let ended = gone.into_iter().map(|(receiver, running)| async move {
            if let Err(error) = running.task.await {
                tracing::error!(%error, "the task of a receiver has failed");
            }
            receiver
        });
        for receiver in join_all(ended).await {
            if !self.running.contains_key(&receiver) {
                self.metrics
                    .remove(&receiver.address(), &receiver.watched_namespace);
            }
        }
    }

    fn start(&mut self, receiver: &Receiver, max_batch_size: usize) {
        let address = receiver.address();
        let namespace = receiver.watched_namespace.clone();
        let source = match Source::new(&address) {
            Ok(source) => source,
            Err(error) => {
                tracing::error!(address, %error, "the address of a receiver is invalid");
                return;
            }
        };
        let task = ReceiverTask {
            metrics: self.metrics.receiver(&address, &namespace),
            namespace,
            address,
            source,
            max_batch_size,
            since: Timestamp::now(),
        };
        let (stopping, stop) = watch::channel(false);
        let running = Running {
            max_batch_size,
            stopping,
            task: tokio::spawn(task.run(self.client.clone(), stop)),
        };
        self.running.insert(receiver.clone(), running);
    }
}

fn routes(registry: Registry) -> Router {
    let registry = Arc::new(registry);
    let metrics = move || {
        let registry = Arc::clone(&registry);
        async move {
            let mut text = String::new();
            match encode(&mut text, &registry) {
                Ok(()) => ([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response(),
                Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            }
        }
    };
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok" }))
}
