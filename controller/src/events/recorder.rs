//! Publisher of Events. An Event is published once and counted while its cause persists.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

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
    by_uid: Mutex<HashMap<String, ObjectEvents>>,
}

/// Events that were published for an object.
#[derive(Default)]
struct ObjectEvents {
    /// The latest Event of each reason.
    last: HashMap<&'static str, RecordedEvent>,
    /// Times of the new Events of each reason.
    started: HashMap<&'static str, Vec<Instant>>,
}

#[derive(Clone)]
struct RecordedEvent {
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
            by_uid: Mutex::default(),
        }
    }

    /// Publishes a Warning. If the same problem persists, its count is increased instead.
    pub(crate) async fn warning(&self, object: &ObjectReference, reason: &'static str, note: &str) {
        let uid = object.uid.clone().unwrap_or_default();
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
            self.by_uid
                .lock()
                .entry(uid)
                .or_default()
                .record(reason, event);
        }
    }

    fn decide(&self, uid: &str, reason: &'static str, note: &str) -> Decision {
        let mut by_uid = self.by_uid.lock();
        let events = by_uid.entry(uid.to_owned()).or_default();
        if let Some(last) = events.last.get_mut(reason)
            && last.note == note
        {
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
            let mut by_uid = self.by_uid.lock();
            let events = by_uid.entry(uid.clone()).or_default();
            // A problem that occurs again later gets a new Event.
            events.last.clear();
            events.is_over_spam_limit(reason)
        };
        if !is_too_much && let Some(event) = self.publish(object, "Normal", reason, note).await {
            self.by_uid
                .lock()
                .entry(uid)
                .or_default()
                .started(reason)
                .push(event.written);
        }
    }

    /// Removes the recorded Events of an object, so that a later occurrence gets a new Event.
    pub(crate) fn forget(&self, uid: &str) {
        self.by_uid.lock().remove(uid);
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
        reason: &str,
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
            note: Some(truncate(note)),
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

impl ObjectEvents {
    fn record(&mut self, reason: &'static str, event: RecordedEvent) {
        if event.count == 1 {
            self.started(reason).push(event.written);
        }
        self.last.insert(reason, event);
    }

    fn started(&mut self, reason: &'static str) -> &mut Vec<Instant> {
        self.started.entry(reason).or_default()
    }

    /// Returns true if the object has reached the limit of new Events of a reason.
    fn is_over_spam_limit(&mut self, reason: &'static str) -> bool {
        let started = self.started(reason);
        started.retain(|started| started.elapsed() < COUNT_AFTER);
        started.len() >= MAX_AT_ONCE
    }
}

/// Returns the namespace for the Events of an object: `default` if the object is cluster-scoped.
fn namespace(object: &ObjectReference) -> String {
    let namespace = object.namespace.clone();
    namespace.unwrap_or_else(|| "default".to_owned())
}

fn truncate(note: &str) -> String {
    if note.len() <= MAX_NOTE_BYTES {
        return note.to_owned();
    }
    let end = note.floor_char_boundary(MAX_NOTE_BYTES - '…'.len_utf8());
    format!("{}…", &note[..end])
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
                    note: note.to_owned(),
                    name: "e".to_owned(),
                    count: 1,
                    written: Instant::now(),
                };
                let mut by_uid = recorder.by_uid.lock();
                by_uid
                    .entry("1".to_owned())
                    .or_default()
                    .record("Failed", event);
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

    #[test]
    fn a_long_note_is_cut_at_a_character_boundary() {
        let note = "é".repeat(600);
        let cut = truncate(&note);
        assert!(
            cut.len() <= MAX_NOTE_BYTES && cut.ends_with("é…"),
            "{} bytes",
            cut.len()
        );
    }
}
