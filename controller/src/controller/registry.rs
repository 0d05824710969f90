//! Registry of running controllers, for diagnostics and manual triggers.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::cache::object_key::ObjectKey;
use crate::queue::priority_queue::{Queue, QueueSnapshot};
use crate::queue::ready_keys::Priority;

/// The controllers that run in this process, by name. Only the leader has any.
///
/// ```
/// use lockstep_controller::ControllerRegistry;
///
/// let registry = ControllerRegistry::default();
/// // This process is not the leader, so that no controller runs.
/// let error = registry.enqueue("queue", Some("team-a"), "orders").unwrap_err();
/// assert!(error.to_string().starts_with("no controller named `queue`"));
/// ```
#[derive(Clone, Default)]
pub struct ControllerRegistry {
    queues: Arc<Mutex<BTreeMap<String, Weak<Queue<ObjectKey>>>>>,
}

/// Request from outside to reconcile an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconcileTrigger {
    /// Name of the controller: its kind in lower case.
    pub controller: String,
    /// Namespace of the object; none if it is cluster-scoped.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
}

/// No such controller is running.
#[derive(Debug, thiserror::Error)]
#[error("no controller named `{requested}`{}; only the leader runs controllers", names(.running))]
pub struct ControllerNotFound {
    requested: String,
    running: Vec<String>,
}

impl ControllerRegistry {
    /// Enqueues an object, for changes outside the cluster that no watch reports. An object that does not exist is
    /// ignored.
    ///
    /// # Errors
    ///
    /// No controller of that name is running here.
    pub fn enqueue(
        &self,
        controller: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<(), ControllerNotFound> {
        let running = self.running();
        let within = format!("{controller}/{}", namespace.unwrap_or_default());
        let mut controllers = running.iter();
        let Some((_, queue)) = controllers.find(|(it, _)| it == controller || *it == within) else {
            return Err(ControllerNotFound {
                requested: controller.to_owned(),
                running: running.into_iter().map(|(name, _)| name).collect(),
            });
        };
        let key = ObjectKey::new(namespace.unwrap_or_default(), name);
        queue.add(key, Priority::Event, Duration::ZERO);
        Ok(())
    }

    /// Enqueues the objects that a stream delivers, until it ends. A request for a controller that is not running
    /// can be ignored, since a controller that starts reconciles every object.
    pub async fn run_triggers(&self, triggers: impl Stream<Item = ReconcileTrigger>) {
        let mut triggers = pin!(triggers);
        while let Some(trigger) = triggers.next().await {
            let namespace = trigger.namespace.as_deref();
            if let Err(error) = self.enqueue(&trigger.controller, namespace, &trigger.name) {
                tracing::debug!(%error, "a request to reconcile an object is ignored");
            }
        }
    }

    /// Enqueues every object that waits for a requeue: the input of all validations has changed.
    pub fn enqueue_all(&self) {
        for (_, queue) in self.running() {
            queue.expedite();
        }
    }

    /// Reconciles the objects of a controller within a period that would otherwise wait for longer, evenly spread over it:
    /// changes outside the cluster are no longer reported, and have to be looked for more often.
    pub fn requeue_within(&self, controller: &str, period: Duration) {
        for (name, queue) in self.running() {
            if name.split('/').next() == Some(controller) {
                queue.requeue_within(period);
            }
        }
    }

    /// Returns what every controller works on and what its queue contains, as JSON.
    pub fn queues(&self) -> Value {
        let running = self.running().into_iter();
        let of_each = running.map(|(name, queue)| {
            let QueueSnapshot {
                processing: working,
                ready,
                due,
            } = queue.snapshot();
            let later = |(key, time): (ObjectKey, Duration)| json!({"object": key.to_string(), "seconds": time.as_secs()});
            let queue = json!({
                "working": working.into_iter().map(later).collect::<Vec<_>>(),
                "ready": ready.iter().map(ObjectKey::to_string).collect::<Vec<_>>(),
                "due": due.into_iter().map(later).collect::<Vec<_>>(),
            });
            (name, queue)
        });
        Value::Object(of_each.collect())
    }

    /// Adds a controller. The name of one that is restricted to a namespace ends with that namespace.
    pub(crate) fn register(&self, controller: &str, queue: &Arc<Queue<ObjectKey>>) {
        let queue = Arc::downgrade(queue);
        self.queues.lock().insert(controller.to_owned(), queue);
    }

    fn running(&self) -> Vec<(String, Arc<Queue<ObjectKey>>)> {
        let queues = self.queues.lock();
        let running = queues.iter();
        running
            .filter_map(|(name, queue)| Some((name.clone(), queue.upgrade()?)))
            .collect()
    }
}

fn names(running: &[String]) -> String {
    if running.is_empty() {
        String::new()
    } else {
        format!(" (running: {})", running.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::QueueMetrics;

    #[tokio::test(start_paused = true)]
    async fn a_controller_can_be_inspected_and_triggered_while_it_runs() {
        let registry = ControllerRegistry::default();
        let queue = Arc::new(Queue::new(QueueMetrics::default(), Duration::ZERO, None));
        registry.register("echo", &queue);
        registry
            .enqueue("echo", Some("default"), "a")
            .expect("it runs");
        let key = queue.next().await.expect("an object");
        let other_queue = Arc::new(Queue::new(QueueMetrics::default(), Duration::ZERO, None));
        registry.register("toy/team-a", &other_queue);
        registry
            .enqueue("toy", Some("team-a"), "c")
            .expect("it runs");
        assert_eq!(other_queue.snapshot().ready.len(), 1);
        registry
            .enqueue("toy", Some("team-b"), "c")
            .expect_err("no controller watches that namespace");
        drop(other_queue);
        registry.enqueue("echo", None, "b").expect("it runs");
        queue.add(
            ObjectKey::new("n", "c"),
            Priority::Requeue,
            Duration::from_secs(9),
        );
        let expected = json!({"echo": {
            "working": [{"object": "default/a", "seconds": 0}],
            "ready": ["b"],
            "due": [{"object": "n/c", "seconds": 9}],
        }});
        assert_eq!(registry.queues(), expected);
        registry.requeue_within("ech", Duration::from_secs(3));
        assert_eq!(registry.queues()["echo"]["due"][0]["seconds"], 9);
        registry.requeue_within("echo", Duration::from_secs(3));
        assert_eq!(registry.queues()["echo"]["due"][0]["seconds"], 3);
        queue.done(&key, None);
        let error = registry
            .enqueue("ekho", None, "b")
            .expect_err("no such controller");
        let expected =
            "no controller named `ekho` (running: echo); only the leader runs controllers";
        assert_eq!(error.to_string(), expected);
        drop(queue);
        assert_eq!(registry.queues(), json!({}));
    }
}
