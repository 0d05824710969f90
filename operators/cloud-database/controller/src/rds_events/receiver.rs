//! Receiver of the events: a task of the leader.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::jiff::Timestamp;
use lockstep_controller::{ControllerRegistry, Runnable};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::call_error::CallError;
use crate::rds_events::changed_instances::ChangedInstances;
use crate::rds_events::event::{self, Content, InstanceKey};
use crate::rds_events::health::EventsHealth;
use crate::rds_events::metrics::{QueueLabels, RdsEventsMetrics};
use crate::rds_events::queue::{EventsQueue, Message, VISIBILITY_TIMEOUT};

/// Name of the controller of the objects with instances.
const CONTROLLER: &str = "clouddatabase";

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
    health: EventsHealth,
    resync_period: Duration,
}

/// Clients and state for the handling of each batch.
#[derive(Clone)]
struct Inner {
    queue: EventsQueue,
    changed: ChangedInstances,
    controllers: ControllerRegistry,
    metrics: RdsEventsMetrics,
    invalid_logged: Arc<Mutex<Option<Instant>>>,
}

/// Messages about one instance.
#[derive(Default)]
struct OfInstance {
    receipts: Vec<String>,
    oldest: Option<Timestamp>,
    deliveries: u32,
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
                controllers,
                metrics,
                invalid_logged: Arc::default(),
            },
            health,
            resync_period,
        }
    }

    /// Receives messages until the future is dropped.
    async fn receive(&self) {
        let slots = Arc::new(Semaphore::new(MAX_BATCHES));
        // They end with this future.
        let mut batches = JoinSet::new();
        let mut delay = FIRST_DELAY;
        self.set_receiving(false);
        loop {
            while batches.try_join_next().is_some() {}
            let slot = Arc::clone(&slots).acquire_owned().await;
            let slot = slot.expect("the semaphore is never closed");
            match self.inner.queue.receive().await {
                Ok(messages) => {
                    delay = FIRST_DELAY;
                    self.on_success();
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
        self.health.set(is_receiving)
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
        self.inner.metrics.count_error("ReceiveMessage");
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
        self.health.set(false);
        self.inner.metrics.receiving.clear();
        self.inner.metrics.oldest_age.clear();
    }
}

impl Inner {
    /// Reconciles the objects that the messages of a batch concern, and deletes the messages.
    async fn handle(self, messages: Vec<Message>, _slot: OwnedSemaphorePermit) {
        let deadline = Instant::now() + HANDLING_DEADLINE;
        let mut done = Vec::new();
        let mut by_instance: BTreeMap<InstanceKey, OfInstance> = BTreeMap::new();
        for message in messages {
            match event::read(&message.body) {
                Some(Content::Instance(instance, time)) => {
                    let all = by_instance.entry(instance).or_default();
                    all.oldest = all.oldest.into_iter().chain(time).min();
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
        let mut waiting = Vec::new();
        for (instance, all) in by_instance {
            let reconciliations = self.reconcile(&instance);
            if reconciliations.is_empty() {
                self.metrics.count("ignored", all.receipts.len());
                done.extend(all.receipts);
            } else {
                waiting.push((instance, all, reconciliations));
            }
        }
        self.delete(std::mem::take(&mut done)).await;
        let mut oldest = None;
        for (instance, all, reconciliations) in waiting {
            let mut is_handled = true;
            for seen in reconciliations {
                is_handled &= matches!(timeout_at(deadline, seen).await, Ok(Ok(())));
            }
            let result = if is_handled {
                oldest = [oldest, all.oldest].into_iter().flatten().min();
                "handled"
            } else if all.deliveries >= MAX_DELIVERIES {
                tracing::warn!(
                    instance = instance.id,
                    "an event of RDS is abandoned: its object was not reconciled"
                );
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
        self.delete(done).await;
    }

    /// Enqueues the objects that have an instance. Each of the results ends when its object has been reconciled.
    fn reconcile(&self, instance: &InstanceKey) -> Vec<oneshot::Receiver<()>> {
        let recorded = self.changed.record(instance).into_iter();
        let enqueued = recorded.map(|(owner, seen)| {
            let namespace = Some(owner.namespace.as_str());
            let enqueued = self.controllers.enqueue(CONTROLLER, namespace, &owner.name);
            if let Err(error) = enqueued {
                // The controller is about to start, or has just ended. The message is delivered again.
                tracing::debug!(%error, "the object of an event of RDS cannot be reconciled");
            }
            seen
        });
        enqueued.collect()
    }

    async fn delete(&self, receipts: Vec<String>) {
        if receipts.is_empty() {
            return;
        }
        if let Err(error) = self.queue.delete(&receipts).await {
            self.metrics.count_error("DeleteMessageBatch");
            let (queue, error) = (&self.queue.url, error.text());
            tracing::warn!(
                queue,
                error,
                "messages cannot be deleted, and are delivered again"
            );
        }
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
