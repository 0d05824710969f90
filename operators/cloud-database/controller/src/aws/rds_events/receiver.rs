//! Receiver of the events: a task of the leader.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use k8s_openapi::jiff::Timestamp;
use lockstep_controller::{ControllerRegistry, Runnable};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::aws::call_error::CallError;
use crate::aws::location::Location;
use crate::aws::rds_events::changed_instances::{ChangedInstances, Owner};
use crate::aws::rds_events::event::{self, Content, InstanceKey};
use crate::aws::rds_events::health::EventsHealth;
use crate::aws::rds_events::metrics::{LocationLabels, QueueLabels, RdsEventsMetrics};
use crate::aws::rds_events::queue::{EventsQueue, Message, VISIBILITY_TIMEOUT};

/// Name of the controller of the objects with instances.
pub(crate) const CONTROLLER: &str = "clouddatabase";

/// Maximum number of batches, each of at most ten messages, that wait for reconciliations.
const MAX_BATCHES: usize = 50;

/// Time in which the objects of a batch have to be reconciled. Otherwise, its messages are delivered again. It leaves time
/// to delete the others before that.
const HANDLING_DEADLINE: Duration = VISIBILITY_TIMEOUT
    .checked_div(2)
    .expect("the divisor is not zero");

/// Number of deliveries after which a message is deleted although its object was not reconciled, for example because it is
/// paused. The change stays recorded: the next reconciliation describes the instance anew.
const MAX_DELIVERIES: u32 = 3;

/// Longest minimum time between two reconciliations of an object because of events.
const LONGEST_INTERVAL: Duration = Duration::from_secs(10);

/// Delays between calls to a queue that fails.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// Interval at which messages that are no events are logged at most.
const INVALID_LOG_INTERVAL: Duration = Duration::from_mins(1);

/// Receiver of the events of RDS.
///
/// # Guarantees
///
/// - A message is deleted only after its object was reconciled with a description of the instance that was requested
///   after the message was received, or if it concerns no object.
/// - Messages that are no events, and those of objects that cannot be reconciled, are deleted in the end, and keep no others
///   from being received.
/// - It receives only until its term ends, which is before the lease expires.
pub struct RdsEventsReceiver {
    inner: Inner,
    resync_period: Duration,
}

/// Clients and state for the handling of each batch.
#[derive(Clone)]
struct Inner {
    queue: EventsQueue,
    changed: ChangedInstances,
    health: EventsHealth,
    controllers: ControllerRegistry,
    metrics: RdsEventsMetrics,
    /// Minimum time between two reconciliations of an object.
    interval: Duration,
    invalid_logged: Arc<Mutex<Option<Instant>>>,
}

/// Messages about one instance.
#[derive(Default)]
struct OfInstance {
    receipts: Vec<String>,
    /// Times of the events that are readable.
    times: Vec<Timestamp>,
    deliveries: u32,
}

impl OfInstance {
    /// Returns the time of the last event, if the times of all events are known.
    fn last(&self) -> Option<Timestamp> {
        let last = self.times.iter().max().copied();
        last.filter(|_| self.times.len() == self.receipts.len())
    }
}

impl RdsEventsReceiver {
    /// Creates a receiver. When the queue fails, objects are reconciled within `resync_period`.
    pub(crate) fn new(
        queue: EventsQueue,
        changed: ChangedInstances,
        health: EventsHealth,
        controllers: ControllerRegistry,
        metrics: RdsEventsMetrics,
        resync_period: Duration,
    ) -> Self {
        Self {
            inner: Inner {
                queue,
                changed,
                health,
                controllers,
                metrics,
                interval: LONGEST_INTERVAL.min(resync_period / 4),
                invalid_logged: Arc::default(),
            },
            resync_period,
        }
    }

    /// Receives messages until the future is dropped.
    async fn receive(&self) {
        let slots = Arc::new(Semaphore::new(MAX_BATCHES));
        // They end with this future.
        let mut batches: JoinSet<Result<(), CallError>> = JoinSet::new();
        let mut delay = FIRST_DELAY;
        // Messages that cannot be deleted are delivered again and again, and keep others from being received.
        let mut failed_deletion: Option<Instant> = None;
        self.set_receiving(false);
        loop {
            let mut failure = None;
            while let Some(handled) = batches.try_join_next() {
                // The messages of a batch that has panicked are delivered again.
                if let Ok(deleted) = handled {
                    failed_deletion = deleted.is_err().then(Instant::now);
                    failure = failure.or(deleted.err());
                }
            }
            let slot = Arc::clone(&slots).acquire_owned().await;
            let slot = slot.expect("the semaphore is never closed");
            let received = match failure {
                Some(error) => Err(error),
                None => self.inner.receive().await,
            };
            match received {
                Ok(messages) => {
                    // They would have been delivered again by now.
                    let is_deleted = |at: Instant| at.elapsed() > 2 * VISIBILITY_TIMEOUT;
                    if messages.is_empty() && failed_deletion.is_some_and(is_deleted) {
                        failed_deletion = None;
                    }
                    if failed_deletion.is_none() {
                        delay = FIRST_DELAY;
                        self.on_success();
                    }
                    if messages.is_empty() {
                        self.inner.set_oldest_age(0.0);
                    } else {
                        batches.spawn(self.inner.clone().handle(messages, slot));
                    }
                }
                Err(error) => {
                    self.on_failure(&error);
                    sleep(delay).await;
                    delay = (delay * 2).min(LONGEST_DELAY);
                }
            }
        }
    }

    fn set_receiving(&self, is_receiving: bool) -> bool {
        let labels = QueueLabels::of(&self.inner.queue.url);
        let gauge = self.inner.metrics.receiving.get_or_create(&labels);
        gauge.set(is_receiving.into());
        self.inner.health.set(is_receiving)
    }

    fn on_success(&self) {
        if self.set_receiving(true) {
            let queue = &self.inner.queue.url;
            tracing::info!(
                queue,
                "events of RDS are received; instances are polled less often"
            );
        }
    }

    fn on_failure(&self, error: &CallError) {
        let (queue, error) = (&self.inner.queue.url, error.text());
        if self.set_receiving(false) {
            // Objects that would wait for longer are reconciled at the usual interval from now on.
            let controllers = &self.inner.controllers;
            controllers.requeue_within(CONTROLLER, self.resync_period);
            tracing::error!(
                queue,
                error,
                "events of RDS are not received any more; instances are polled at the usual interval until the queue answers again"
            );
        } else {
            tracing::warn!(queue, error, "events of RDS are not received; retrying");
        }
    }
}

#[async_trait]
impl Runnable for RdsEventsReceiver {
    async fn run(self: Box<Self>, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            // An error means that the sender is gone: stop as well.
            _ = stop.wait_for(|stop| *stop) => {}
            () = self.receive() => {}
        }
        // The next leader reports the state of the queue.
        self.inner.health.end();
        self.inner.metrics.last_event.clear();
        self.inner.metrics.receiving.clear();
        self.inner.metrics.oldest_age.clear();
    }
}

impl Inner {
    async fn receive(&self) -> Result<Vec<Message>, CallError> {
        let received = self.queue.receive().await;
        received.inspect_err(|_| self.metrics.count_error("ReceiveMessage"))
    }

    /// Returns the messages by the instances that they are about. The others are done.
    fn by_instance(
        &self,
        messages: Vec<Message>,
        done: &mut Vec<String>,
    ) -> BTreeMap<InstanceKey, OfInstance> {
        let mut by_instance: BTreeMap<InstanceKey, OfInstance> = BTreeMap::new();
        for message in messages {
            match event::read(&message.body) {
                Some(Content::Instance(instance, time)) => {
                    let all = by_instance.entry(instance).or_default();
                    all.times.extend(time);
                    all.deliveries = all.deliveries.max(message.deliveries);
                    all.receipts.push(message.receipt);
                }
                Some(Content::Other) => {
                    self.metrics.count("ignored", 1);
                    done.push(message.receipt);
                }
                None => {
                    self.metrics.count("invalid", 1);
                    self.log_invalid(&message.body);
                    done.push(message.receipt);
                }
            }
        }
        by_instance
    }

    /// Reconciles the objects that the messages of a batch concern, and deletes the messages.
    async fn handle(
        self,
        messages: Vec<Message>,
        _slot: OwnedSemaphorePermit,
    ) -> Result<(), CallError> {
        let deadline = Instant::now() + HANDLING_DEADLINE;
        let mut done = Vec::new();
        let by_instance = self.by_instance(messages, &mut done);
        let mut waiting = Vec::new();
        for (instance, all) in by_instance {
            self.record_event(&instance);
            let concerned = self.changed.concerned(&instance, all.last(), self.interval);
            if concerned.is_empty() {
                self.metrics.count("ignored", all.receipts.len());
                done.extend(all.receipts);
            } else {
                waiting.push((instance, all, concerned));
            }
        }
        self.delete(std::mem::take(&mut done)).await?;
        let handled = waiting.into_iter().map(async |(instance, all, concerned)| {
            let reconciled = concerned.iter();
            let reconciled = reconciled.map(|(owner, at)| self.reconcile(owner, *at, deadline));
            let is_handled = join_all(reconciled).await.into_iter().all(|it| it);
            if !is_handled && all.deliveries >= MAX_DELIVERIES {
                tracing::warn!(
                    instance = instance.id,
                    "an event of RDS is abandoned: its object was not reconciled"
                );
                for (owner, _) in &concerned {
                    self.changed.abandon(owner);
                }
            }
            (all, is_handled)
        });
        let mut oldest = None;
        for (all, is_handled) in join_all(handled).await {
            let result = if is_handled {
                oldest = oldest.into_iter().chain(all.times).min();
                "handled"
            } else if all.deliveries >= MAX_DELIVERIES {
                "abandoned"
            } else {
                continue;
            };
            self.metrics.count(result, all.receipts.len());
            done.extend(all.receipts);
        }
        if let Some(oldest) = oldest {
            let age = Timestamp::now().duration_since(oldest).as_secs_f64();
            self.set_oldest_age(age.max(0.0));
        }
        self.delete(done).await
    }

    /// Reconciles an object from a time on. Returns true if that has happened before a deadline.
    async fn reconcile(&self, owner: &Owner, at: Instant, deadline: Instant) -> bool {
        sleep_until(at).await;
        let seen = self.changed.record(owner);
        let namespace = Some(owner.namespace.as_str());
        if let Err(error) = self.controllers.enqueue(CONTROLLER, namespace, &owner.name) {
            // The controller is about to start, or has just ended. The message is delivered again.
            tracing::debug!(%error, "the object of an event of RDS cannot be reconciled");
        }
        matches!(timeout_at(deadline, seen).await, Ok(Ok(())))
    }

    /// Deletes messages. An error counts as one of the queue.
    async fn delete(&self, receipts: Vec<String>) -> Result<(), CallError> {
        if receipts.is_empty() {
            return Ok(());
        }
        let deleted = self.queue.delete(&receipts).await;
        deleted.inspect_err(|_| self.metrics.count_error("DeleteMessageBatch"))
    }

    fn record_event(&self, instance: &InstanceKey) {
        let labels = LocationLabels::of(&instance.account_id, &instance.region);
        let gauge = self.metrics.last_event.get_or_create(&labels);
        gauge.set(Timestamp::now().as_second());
        self.health.record_event(Location {
            region: instance.region.clone(),
            account_id: instance.account_id.clone(),
        });
    }

    fn set_oldest_age(&self, seconds: f64) {
        let labels = QueueLabels::of(&self.queue.url);
        self.metrics.oldest_age.get_or_create(&labels).set(seconds);
    }

    fn log_invalid(&self, body: &str) {
        let logged = &self.invalid_logged;
        let mut logged = logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_some_and(|at| at.elapsed() < INVALID_LOG_INTERVAL) {
            return;
        }
        *logged = Some(Instant::now());
        let beginning: String = body.chars().take(200).collect();
        tracing::warn!(
            queue = self.queue.url,
            beginning,
            "a message is no event of RDS, and is deleted; the metric counts others"
        );
    }
}
