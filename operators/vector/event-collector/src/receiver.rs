//! Work for one receiver: reads Events and sends them.
//!
//! ```text
//! watch ─► Events that it has not got ─► batch ─► Vector, until it answers
//! ```

use std::pin::pin;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use futures::{Stream, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::runtime::watcher::{self, Event as Change};
use kube::runtime::{WatchStreamExt, watcher as watch_events};
use kube::{Api, Client, ResourceExt};
use tokio::sync::watch as signal;
use tonic::Status;

use crate::batch::Batch;
use crate::log_event;
use crate::metrics::ReceiverMetrics;
use crate::protocol::{Source, is_retriable};

/// Time after which a batch is sent that is not full.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Number of Events in one response of the API server. Each can have 1.5 MiB.
const PAGE_SIZE: u32 = 50;

/// Maximum time for the last batch when the process stops.
const LAST_BATCH: Duration = Duration::from_secs(10);

/// Receiver with its connection.
pub(crate) struct ReceiverTask {
    pub(crate) client: Client,
    /// Empty: all namespaces.
    pub(crate) namespace: String,
    pub(crate) address: String,
    pub(crate) source: Source,
    pub(crate) max_batch_size: usize,
    pub(crate) metrics: ReceiverMetrics,
    /// Listed Events from before this second are not sent: an earlier process has sent them.
    pub(crate) since: Timestamp,
}

/// Events that were read. After an interruption, the API server lists all Events again, in the order of their names.
#[derive(Default)]
struct Progress {
    /// Resource version up to which all Events were read.
    complete: u64,
    /// Newest resource version that was read.
    newest: u64,
}

impl ReceiverTask {
    /// Sends Events until `stopping` becomes true, and then those that it has read.
    pub(crate) async fn run(self, mut stopping: signal::Receiver<bool>) {
        let api: Api<Event> = if self.namespace.is_empty() {
            Api::all(self.client.clone())
        } else {
            Api::namespaced(self.client.clone(), &self.namespace)
        };
        let config = watcher::Config::default().page_size(PAGE_SIZE);
        let changes = pin!(watch_events(api, config).default_backoff());
        let mut batch = Batch::new(self.max_batch_size);
        let sending = self.send_all(changes, &mut batch);
        tokio::select! {
            () = sending => {}
            // A dropped sender counts as a signal to stop.
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
        if !batch.is_empty() {
            self.send_last(&batch).await;
        }
    }

    async fn send_last(&self, batch: &Batch) {
        let request = batch.request();
        let count = request.events.len();
        let last = tokio::time::timeout(LAST_BATCH, self.source.push(request)).await;
        let problem = match last {
            Ok(Ok(())) => {
                self.metrics.processed.inc_by(count as u64);
                return;
            }
            Ok(Err(status)) => status.to_string(),
            Err(_) => format!("no answer within {LAST_BATCH:?}"),
        };
        tracing::warn!(
            address = self.address,
            error = problem,
            events = count,
            "the last Events were not sent"
        );
    }

    async fn send_all(
        &self,
        mut changes: impl Stream<Item = watcher::Result<Change<Event>>> + Unpin,
        batch: &mut Batch,
    ) {
        let mut progress = Progress::default();
        let mut tick = tokio::time::interval(MAX_DELAY);
        loop {
            tokio::select! {
                change = changes.next() => match change {
                    Some(Ok(change)) => {
                        let is_listing = matches!(change, Change::Init | Change::InitApply(_));
                        if let Change::Apply(event) | Change::InitApply(event) = &change
                            && progress.is_new(event)
                        {
                            self.read(event, is_listing, batch);
                        }
                        if !is_listing {
                            progress.complete();
                        }
                    }
                    Some(Err(error)) => {
                        tracing::warn!(namespace = self.namespace, %error, "cannot read Events");
                    }
                    None => return,
                },
                _ = tick.tick() => {
                    if !batch.is_empty() {
                        self.send(batch).await;
                        // The ticks of that time are not made up for: each would send a batch of few Events.
                        tick.reset();
                    }
                }
            }
            if batch.is_full() {
                self.send(batch).await;
                tick.reset();
            }
        }
    }

    fn read(&self, event: &Event, is_listed: bool, batch: &mut Batch) {
        // Most times of Events have seconds only. What is watched is new, whatever the clock of its writer says.
        let time = log_event::last_occurrence(event).map(Timestamp::as_second);
        if is_listed && time.is_some_and(|time| time < self.since.as_second()) {
            self.metrics.skipped.inc();
            return;
        }
        self.metrics.handled.inc();
        batch.push(log_event::new(event));
    }

    /// Sends a batch until Vector accepts it, or rejects it for good.
    async fn send(&self, batch: &mut Batch) {
        let request = batch.request();
        let count = request.events.len() as u64;
        let push = || self.source.push(request.clone());
        let delays = ExponentialBuilder::new()
            .with_min_delay(Duration::from_millis(500))
            .with_max_delay(Duration::from_secs(30))
            .with_jitter()
            .without_max_times();
        let sent = push
            .retry(delays)
            .when(is_retriable)
            .notify(|status: &Status, delay: Duration| {
                tracing::warn!(
                    address = self.address, error = %status, retry_after = ?delay, "Vector does not accept Events"
                );
            });
        let sent = sent.await;
        batch.clear();
        match sent {
            Ok(()) => {
                self.metrics.processed.inc_by(count);
            }
            Err(status) => {
                self.metrics.rejected.inc_by(count);
                tracing::error!(
                    address = self.address, error = %status, events = count, "Vector has rejected Events, which are lost"
                );
            }
        }
    }
}

impl Progress {
    /// Returns true if an Event was not read before.
    fn is_new(&mut self, event: &Event) -> bool {
        let version = event.resource_version();
        let version: Option<u64> = version.and_then(|version| version.parse().ok());
        self.newest = self.newest.max(version.unwrap_or_default());
        version.is_none_or(|version| version > self.complete)
    }

    /// Records that no Event from before the newest one is missing.
    fn complete(&mut self) {
        self.complete = self.newest;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_second_list_has_only_events_that_are_new() {
        let event = |version: &str| {
            let event = json!({"metadata": {"resourceVersion": version}, "involvedObject": {}});
            serde_json::from_value::<Event>(event).expect("an Event")
        };
        let mut progress = Progress::default();
        let first = ["7", "3", "5"].map(|version| progress.is_new(&event(version)));
        assert_eq!(first, [true; 3]);
        progress.complete();
        assert!(progress.is_new(&event("8")));
        progress.complete();
        let again = ["9", "7", "8", "10"].map(|version| progress.is_new(&event(version)));
        assert_eq!(again, [true, false, false, true]);
    }
}
