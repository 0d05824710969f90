//! Publisher of Events. An Event is published once and counted while its cause persists.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use lockstep_shared_validation::shortened;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use crate::cache::capacity::release_unused;

/// Interval after which a persistent problem is checked again, so that its Event is renewed: the API server keeps
/// an Event for one hour after it was last written.
pub(crate) const RENEW_AFTER: Duration = Duration::from_mins(55);

/// Minimal time between two updates of the count of an Event.
const COUNT_AFTER: Duration = Duration::from_mins(10);

/// Maximum number of new Events of one object with the same reason within [`COUNT_AFTER`], for notes that differ each time.
const MAX_AT_ONCE: usize = 5;

/// The API server's limit for the note of an Event, in bytes.
const MAX_NOTE_BYTES: usize = 1024;

/// Publisher of Events.
///
/// # Guarantees
///
/// A persistent problem is one Event with a count, and no object gets more than a few new Events of a reason in ten minutes.
/// Events of one reason never suppress those of another one, such as a Warning.
pub(crate) struct EventRecorder {
    client: Client,
    controller: String,
    instance: String,
    published: Mutex<Published>,
}

/// Events that were published, as far as they matter for later ones.
struct Published {
    by_uid: HashMap<String, ObjectEvents>,
    /// Time of the last removal of entries that no longer matter.
    pruned: Instant,
}

/// Events that were published for an object. Vectors, since nearly all objects have few.
#[derive(Default)]
struct ObjectEvents {
    /// The latest Event of each reason.
    last: Vec<RecordedEvent>,
    /// Reasons and times of the new Events.
    started: Vec<(&'static str, Instant)>,
}

#[derive(Clone)]
struct RecordedEvent {
    reason: &'static str,
    note: String,
    /// Name of the Event.
    name: String,
    /// Number of occurrences.
    count: i32,
    written: Instant,
}

/// Handling of an occurrence.
enum Decision {
    /// The Event is current; nothing is written.
    Nothing,
    New,
    Increment(RecordedEvent),
}

impl EventRecorder {
    pub(crate) fn new(client: Client, controller: &str) -> Self {
        let instance = std::env::var("POD_NAME").unwrap_or_else(|_| controller.to_owned());
        Self {
            client,
            controller: controller.to_owned(),
            instance,
            published: Mutex::new(Published {
                by_uid: HashMap::new(),
                pruned: Instant::now(),
            }),
        }
    }

    /// Publishes a Warning. If the same problem persists, its count is increased instead.
    pub(crate) async fn warning(&self, object: &ObjectReference, reason: &'static str, note: &str) {
        let uid = object.uid.clone().unwrap_or_default();
        let note = &*shortened(note, MAX_NOTE_BYTES);
        let incremented = match self.decide(&uid, reason, note) {
            Decision::Nothing => return,
            Decision::New => None,
            Decision::Increment(last) => self.increment(object, last).await,
        };
        let event = match incremented {
            Some(event) => Some(event),
            None => self.publish(object, "Warning", reason, note).await,
        };
        if let Some(event) = event {
            self.published.lock().of(&uid).record(event);
        }
    }

    fn decide(&self, uid: &str, reason: &'static str, note: &str) -> Decision {
        let mut published = self.published.lock();
        let events = published.of(uid);
        let mut last = events.last.iter_mut();
        if let Some(last) = last.find(|last| last.reason == reason && last.note == note) {
            last.count += 1;
            let is_due = last.written.elapsed() >= COUNT_AFTER;
            return if is_due {
                Decision::Increment(last.clone())
            } else {
                Decision::Nothing
            };
        }
        if events.is_over_spam_limit(reason) {
            Decision::Nothing
        } else {
            Decision::New
        }
    }

    /// Publishes a Normal Event.
    pub(crate) async fn normal(&self, object: &ObjectReference, reason: &'static str, note: &str) {
        let uid = object.uid.clone().unwrap_or_default();
        let is_too_much = {
            let mut published = self.published.lock();
            let events = published.of(&uid);
            // A problem that occurs again later gets a new Event.
            events.last = Vec::new();
            events.is_over_spam_limit(reason)
        };
        if !is_too_much && let Some(event) = self.publish(object, "Normal", reason, note).await {
            self.published.lock().of(&uid).started(&event);
        }
    }

    /// Removes the recorded Events of an object, so that a later occurrence gets a new Event.
    pub(crate) fn forget(&self, uid: &str) {
        let mut published = self.published.lock();
        published.by_uid.remove(uid);
        release_unused(&mut published.by_uid);
    }

    /// Writes the number of occurrences to an Event, if it still exists.
    async fn increment(
        &self,
        object: &ObjectReference,
        last: RecordedEvent,
    ) -> Option<RecordedEvent> {
        let now = MicroTime(Timestamp::now());
        let series = json!({"series": {"count": last.count, "lastObservedTime": now}});
        let events = self.events(object);
        let patch = Patch::Merge(series);
        let params = PatchParams::default();
        let patched = events.patch(&last.name, &params, &patch).await;
        patched.ok().map(|_| RecordedEvent {
            written: Instant::now(),
            ..last
        })
    }

    async fn publish(
        &self,
        object: &ObjectReference,
        type_: &str,
        reason: &'static str,
        note: &str,
    ) -> Option<RecordedEvent> {
        let name = object.name.as_deref().unwrap_or_default();
        let event = Event {
            metadata: ObjectMeta {
                generate_name: Some(format!("{name}-")),
                namespace: Some(namespace(object)),
                ..ObjectMeta::default()
            },
            type_: Some(type_.to_owned()),
            reason: Some(reason.to_owned()),
            note: Some(shortened(note, MAX_NOTE_BYTES).into_owned()),
            action: Some("Reconcile".to_owned()),
            event_time: Some(MicroTime(Timestamp::now())),
            regarding: Some(object.clone()),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        };
        let events = self.events(object);
        match events.create(&PostParams::default(), &event).await {
            Ok(event) => Some(RecordedEvent {
                reason,
                note: note.to_owned(),
                name: event.metadata.name.unwrap_or_default(),
                count: 1,
                written: Instant::now(),
            }),
            // An Event is only additional information: the status contains the same.
            Err(error) => {
                tracing::warn!(%error, reason, "cannot publish an Event");
                None
            }
        }
    }

    fn events(&self, object: &ObjectReference) -> Api<Event> {
        Api::namespaced(self.client.clone(), &namespace(object))
    }
}

impl Published {
    /// Returns the Events of an object.
    fn of(&mut self, uid: &str) -> &mut ObjectEvents {
        // Not each time: there may be thousands of objects.
        if self.pruned.elapsed() >= COUNT_AFTER {
            self.pruned = Instant::now();
            self.by_uid.retain(|_, events| events.still_matter());
            release_unused(&mut self.by_uid);
        }
        self.by_uid.entry(uid.to_owned()).or_default()
    }
}

impl ObjectEvents {
    fn record(&mut self, event: RecordedEvent) {
        if event.count == 1 {
            self.started(&event);
        }
        self.last.retain(|last| last.reason != event.reason);
        self.last.push(event);
    }

    fn started(&mut self, event: &RecordedEvent) {
        self.started.reserve_exact(1);
        self.started.push((event.reason, event.written));
    }

    /// Returns true if the object has reached the limit of new Events of a reason.
    fn is_over_spam_limit(&mut self, reason: &str) -> bool {
        self.forget_old();
        let started = self.started.iter();
        started.filter(|(started, _)| *started == reason).count() >= MAX_AT_ONCE
    }

    /// Returns true if a later Event may depend on these.
    fn still_matter(&mut self) -> bool {
        self.forget_old();
        !self.last.is_empty() || !self.started.is_empty()
    }

    fn forget_old(&mut self) {
        self.started
            .retain(|(_, written)| written.elapsed() < COUNT_AFTER);
    }
}

/// Returns the namespace for the Events of an object: `default` if the object is cluster-scoped.
fn namespace(object: &ObjectReference) -> String {
    let namespace = object.namespace.clone();
    namespace.unwrap_or_else(|| "default".to_owned())
}

#[cfg(test)]
mod tests {
    use kube::client::Body;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_persistent_problem_is_counted_and_changing_notes_are_limited() {
        let server = tower::service_fn(|_: http::Request<Body>| async {
            Err::<http::Response<Body>, _>(std::io::Error::other("no request is expected"))
        });
        let recorder = EventRecorder::new(Client::new(server, "default"), "test");
        let decision = |note: &str| match recorder.decide("1", "Failed", note) {
            Decision::Nothing => "nothing".to_owned(),
            Decision::New => {
                let event = RecordedEvent {
                    reason: "Failed",
                    note: note.to_owned(),
                    name: "e".to_owned(),
                    count: 1,
                    written: Instant::now(),
                };
                recorder.published.lock().of("1").record(event);
                "anew".to_owned()
            }
            Decision::Increment(last) => format!("{} times", last.count),
        };
        assert_eq!(decision("a"), "anew");
        assert_eq!([decision("a"), decision("a")], ["nothing", "nothing"]);
        tokio::time::advance(COUNT_AFTER).await;
        assert_eq!(decision("a"), "4 times");
        let differing: Vec<_> = (0..10)
            .map(|at| decision(&format!("request {at}")))
            .collect();
        let anew = differing.iter().filter(|event| *event == "anew").count();
        assert_eq!(anew, MAX_AT_ONCE);
        let other = recorder.decide("1", "Rejected", "an invalid value");
        assert!(matches!(other, Decision::New), "another reason");
        tokio::time::advance(COUNT_AFTER).await;
        assert_eq!(decision("request 11"), "anew");
    }

    #[tokio::test(start_paused = true)]
    async fn events_of_objects_without_a_problem_are_not_kept() {
        let server = tower::service_fn(|request: http::Request<Body>| async {
            let event = request.into_body().collect_bytes().await?;
            let response = http::Response::builder().status(201);
            Ok::<_, tower::BoxError>(response.body(Body::from(event))?)
        });
        let recorder = EventRecorder::new(Client::new(server, "default"), "test");
        let object = |uid: &str| ObjectReference {
            uid: Some(uid.to_owned()),
            ..ObjectReference::default()
        };
        let known = || {
            let published = recorder.published.lock();
            let mut known: Vec<_> = published.by_uid.keys().cloned().collect();
            known.sort();
            known
        };
        recorder.normal(&object("ready"), "Ready", "ready").await;
        recorder.warning(&object("failing"), "Failed", "no").await;
        assert_eq!(known(), ["failing", "ready"]);
        tokio::time::advance(COUNT_AFTER).await;
        recorder.normal(&object("other"), "Ready", "ready").await;
        assert_eq!(known(), ["failing", "other"]);
    }

    #[test]
    fn a_long_note_is_cut_at_a_character_boundary() {
        let note = "é".repeat(600);
        let cut = shortened(&note, MAX_NOTE_BYTES);
        assert!(
            cut.len() <= MAX_NOTE_BYTES && cut.ends_with("é…"),
            "{} bytes",
            cut.len()
        );
    }
}
