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
use crate::protocol::{Push, is_retriable};
use crate::read_event::ReadEvent;

/// Time after which a batch is sent that is not full.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Number of Events in one response of the API server. Each can have 1.5 MiB, and is in memory three times while it is read.
const PAGE_SIZE: u32 = 10;

/// Maximum time for the last batch when the process stops.
const LAST_BATCH: Duration = Duration::from_secs(10);

/// Receiver with its connection.
pub(crate) struct ReceiverTask<S> {
    /// Empty: all namespaces.
    pub(crate) namespace: String,
    pub(crate) address: String,
    pub(crate) source: S,
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

impl<S: Push> ReceiverTask<S> {
    /// Sends Events until `stopping` becomes true, and then those that it has read.
    pub(crate) async fn run(self, client: Client, mut stopping: signal::Receiver<bool>) {
        let api: Api<ReadEvent> = if self.namespace.is_empty() {
            Api::all(client)
        } else {
            Api::namespaced(client, &self.namespace)
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
        mut changes: impl Stream<Item = watcher::Result<Change<ReadEvent>>> + Unpin,
        batch: &mut Batch,
    ) {
        let mut progress = Progress::default();
        let mut tick = tokio::time::interval(MAX_DELAY);
        tick.reset();
        loop {
            tokio::select! {
                change = changes.next() => match change {
                    Some(Ok(change)) => {
                        let is_listing = matches!(change, Change::Init | Change::InitApply(_));
                        if let Change::Apply(ReadEvent(event))
                        | Change::InitApply(ReadEvent(event)) = &change
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
    use std::sync::Mutex;

    use futures::stream;
    use serde_json::json;

    use super::*;
    use crate::metrics::Metrics;
    use crate::protocol::PushEventsRequest;

    /// Source that takes some time for each batch, and keeps the number of its events.
    #[derive(Default)]
    struct SlowSource {
        time: Duration,
        batches: Mutex<Vec<usize>>,
    }

    impl Push for SlowSource {
        async fn push(&self, batch: PushEventsRequest) -> Result<(), Status> {
            tokio::time::sleep(self.time).await;
            self.batches
                .lock()
                .expect("no panic")
                .push(batch.events.len());
            Ok(())
        }
    }

    fn task(time: Duration) -> ReceiverTask<SlowSource> {
        let source = SlowSource {
            time,
            ..SlowSource::default()
        };
        ReceiverTask {
            namespace: String::new(),
            address: "vector:42000".to_owned(),
            source,
            max_batch_size: 250,
            metrics: Metrics::default().receiver("vector:42000", ""),
            since: "2026-01-01T00:00:10.5Z".parse().expect("a time"),
        }
    }

    fn event_at(version: usize, time: &str) -> Event {
        let event = json!({
            "metadata": {"resourceVersion": version.to_string()},
            "involvedObject": {}, "lastTimestamp": time,
        });
        serde_json::from_value(event).expect("an Event")
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_answers_slowly_gets_full_batches() {
        let task = task(Duration::from_secs(70));
        let events = (1..=600).map(|version| event_at(version, "2026-01-01T00:01:00Z"));
        let changes = stream::iter(events.map(|event| Ok(Change::Apply(ReadEvent(event)))));
        let mut batch = Batch::new(task.max_batch_size);
        let sending = task.send_all(changes.chain(stream::pending()), &mut batch);
        // They never end.
        tokio::time::timeout(Duration::from_mins(10), sending)
            .await
            .expect_err("a watch does not end");
        let batches = task.source.batches.lock().expect("no panic").clone();
        assert_eq!(batches, [250, 250, 100]);
    }

    #[tokio::test]
    async fn only_listed_events_are_compared_with_the_start_in_seconds() {
        let task = task(Duration::ZERO);
        let sent = |time: &str, is_listed: bool| {
            let mut batch = Batch::new(1);
            task.read(&event_at(1, time), is_listed, &mut batch);
            !batch.is_empty()
        };
        for (time, is_listed, expected) in [
            ("2026-01-01T00:00:09Z", true, false),
            ("2026-01-01T00:00:10Z", true, true),
            ("2025-12-31T23:50:00Z", false, true),
        ] {
            assert_eq!(sent(time, is_listed), expected, "{time} {is_listed}");
        }
    }

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
