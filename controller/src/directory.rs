//! The loops that run in this process: to look at, and to knock at.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::{Stream, StreamExt};
use serde_json::{Value, json};

use crate::kept::ObjectKey;
use crate::queue::{Priority, Queue, QueueSnapshot};

/// The loops that run here, by what they are called. A replica that does not lead has none.
#[derive(Clone, Default)]
pub struct ControllerRegistry {
    queues: Arc<Mutex<BTreeMap<String, Weak<Queue<ObjectKey>>>>>,
}

/// Word from outside that an object is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconcileTrigger {
    /// What the loop is called: its kind, in small letters.
    pub controller: String,
    /// Of an object in no namespace, none.
    pub namespace: Option<String>,
    /// The object's.
    pub name: String,
}

/// There is no such loop.
#[derive(Debug, thiserror::Error)]
#[error("no loop `{asked}` runs here{}; a replica that does not lead runs none", names(.running))]
pub struct ControllerNotFound {
    asked: String,
    running: Vec<String>,
}

impl ControllerRegistry {
    /// Has an object looked at soon, whatever has happened outside that no watch tells of. An object that is
    /// not there is passed over.
    ///
    /// # Errors
    ///
    /// No loop of that name runs here.
    pub fn enqueue(
        &self,
        controller: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<(), ControllerNotFound> {
        let running = self.running();
        let within = format!("{controller}/{}", namespace.unwrap_or_default());
        let mut loops = running.iter();
        let Some((_, queue)) = loops.find(|(it, _)| it == controller || *it == within) else {
            return Err(ControllerNotFound {
                asked: controller.to_owned(),
                running: running.into_iter().map(|(name, _)| name).collect(),
            });
        };
        let key = (namespace.unwrap_or_default().to_owned(), name.to_owned());
        queue.add(key, Priority::Event, Duration::ZERO);
        Ok(())
    }

    /// Does the same for whatever a channel brings, to its end. Where no such loop runs nothing is lost: one that
    /// begins looks at every object.
    pub async fn run_triggers(&self, knocks: impl Stream<Item = ReconcileTrigger>) {
        let mut knocks = pin!(knocks);
        while let Some(knock) = knocks.next().await {
            let namespace = knock.namespace.as_deref();
            if let Err(error) = self.enqueue(&knock.controller, namespace, &knock.name) {
                tracing::debug!(%error, "a knock is passed over");
            }
        }
    }

    /// Has every object looked at again that would be in time: what all of them are judged by has changed.
    pub fn enqueue_all(&self) {
        for (_, queue) in self.running() {
            queue.expedite();
        }
    }

    /// What every loop works on and what waits, as JSON.
    pub fn queues(&self) -> Value {
        let running = self.running().into_iter();
        let of_each = running.map(|(name, queue)| {
            let QueueSnapshot {
                processing: working,
                ready,
                due,
            } = queue.snapshot();
            let later = |(key, time): (ObjectKey, Duration)| json!({"object": display_key(&key), "seconds": time.as_secs()});
            let queue = json!({
                "working": working.into_iter().map(later).collect::<Vec<_>>(),
                "ready": ready.iter().map(display_key).collect::<Vec<_>>(),
                "due": due.into_iter().map(later).collect::<Vec<_>>(),
            });
            (name, queue)
        });
        Value::Object(of_each.collect())
    }

    /// Of a loop that keeps to a namespace, the name has that at its end.
    pub(crate) fn register(&self, controller: &str, queue: &Arc<Queue<ObjectKey>>) {
        let queue = Arc::downgrade(queue);
        self.lock().insert(controller.to_owned(), queue);
    }

    fn running(&self) -> Vec<(String, Arc<Queue<ObjectKey>>)> {
        let queues = self.lock();
        let running = queues.iter();
        running
            .filter_map(|(name, queue)| Some((name.clone(), queue.upgrade()?)))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Weak<Queue<ObjectKey>>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As it is told of.
pub(crate) fn display_key((namespace, name): &ObjectKey) -> String {
    if namespace.is_empty() {
        name.clone()
    } else {
        format!("{namespace}/{name}")
    }
}

fn names(running: &[String]) -> String {
    if running.is_empty() {
        String::new()
    } else {
        format!(", but {}", running.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::QueueMetrics;

    #[tokio::test(start_paused = true)]
    async fn a_loop_can_be_looked_at_and_knocked_at_for_as_long_as_it_runs() {
        let directory = ControllerRegistry::default();
        let queue = Arc::new(Queue::new(QueueMetrics::default(), Duration::ZERO));
        directory.register("echo", &queue);
        directory
            .enqueue("echo", Some("default"), "a")
            .expect("it runs");
        let key = queue.next().await.expect("an object");
        let kept = Arc::new(Queue::new(QueueMetrics::default(), Duration::ZERO));
        directory.register("toy/team-a", &kept);
        directory
            .enqueue("toy", Some("team-a"), "c")
            .expect("it runs");
        assert_eq!(kept.snapshot().ready.len(), 1);
        directory
            .enqueue("toy", Some("team-b"), "c")
            .expect_err("nobody looks there");
        drop(kept);
        directory.enqueue("echo", None, "b").expect("it runs");
        queue.add(
            ("n".to_owned(), "c".to_owned()),
            Priority::Requeue,
            Duration::from_secs(9),
        );
        let expected = json!({"echo": {
            "working": [{"object": "default/a", "seconds": 0}],
            "ready": ["b"],
            "due": [{"object": "n/c", "seconds": 9}],
        }});
        assert_eq!(directory.queues(), expected);
        queue.done(&key, None);
        let error = directory
            .enqueue("ekho", None, "b")
            .expect_err("no such loop");
        let expected = "no loop `ekho` runs here, but echo; a replica that does not lead runs none";
        assert_eq!(error.to_string(), expected);
        drop(queue);
        assert_eq!(directory.queues(), json!({}));
    }
}
