//! Events: what happened to an object, said once and again only as long as it lasts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};

/// The API server keeps Events for one hour.
pub(crate) const RENEW_AFTER: Duration = Duration::from_mins(55);

/// The API server's limit for an Event's note, in bytes.
const MAX_NOTE_BYTES: usize = 1024;

/// Publishes Events.
pub(crate) struct Announcer {
    client: Client,
    controller: &'static str,
    instance: String,
    /// What was last said of each object, for each reason.
    last: Mutex<HashMap<String, HashMap<&'static str, Announcement>>>,
}

struct Announcement {
    note: String,
    at: Instant,
}

impl Announcer {
    pub(crate) fn new(client: Client, controller: &'static str) -> Self {
        let instance = std::env::var("POD_NAME").unwrap_or_else(|_| controller.to_owned());
        Self {
            client,
            controller,
            instance,
            last: Mutex::default(),
        }
    }

    /// Warns of what is wrong with an object, unless that has just been said.
    pub(crate) async fn warn(&self, object: &ObjectReference, reason: &'static str, note: &str) {
        let uid = object.uid.clone().unwrap_or_default();
        let was_said = {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let last = last.get(&uid).and_then(|by_reason| by_reason.get(reason));
            last.is_some_and(|last| last.note == note && last.at.elapsed() < RENEW_AFTER)
        };
        if !was_said && self.publish(object, "Warning", reason, note).await {
            let at = Instant::now();
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let note = note.to_owned();
            let by_reason = last.entry(uid).or_default();
            by_reason.insert(reason, Announcement { note, at });
        }
    }

    /// Tells of something that went as it should.
    pub(crate) async fn tell(&self, object: &ObjectReference, reason: &'static str, note: &str) {
        self.forget(object.uid.as_deref().unwrap_or_default());
        self.publish(object, "Normal", reason, note).await;
    }

    /// Forgets what was said of an object, so that it is said again when it happens again.
    pub(crate) fn forget(&self, uid: &str) {
        self.last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(uid);
    }

    async fn publish(
        &self,
        object: &ObjectReference,
        type_: &str,
        reason: &str,
        note: &str,
    ) -> bool {
        let namespace = object
            .namespace
            .clone()
            .unwrap_or_else(|| "default".to_owned());
        let name = object.name.as_deref().unwrap_or_default();
        let event = Event {
            metadata: ObjectMeta {
                generate_name: Some(format!("{name}-")),
                namespace: Some(namespace.clone()),
                ..ObjectMeta::default()
            },
            type_: Some(type_.to_owned()),
            reason: Some(reason.to_owned()),
            note: Some(cut(note)),
            action: Some("Reconcile".to_owned()),
            event_time: Some(MicroTime(Timestamp::now())),
            regarding: Some(object.clone()),
            reporting_controller: Some(self.controller.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        };
        let events: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        match events.create(&PostParams::default(), &event).await {
            Ok(_) => true,
            // An Event is a courtesy: the status says the same.
            Err(error) => {
                tracing::warn!(%error, reason, "cannot publish an Event");
                false
            }
        }
    }
}

fn cut(note: &str) -> String {
    if note.len() <= MAX_NOTE_BYTES {
        return note.to_owned();
    }
    let mut end = MAX_NOTE_BYTES - '…'.len_utf8();
    while !note.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &note[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_is_cut_at_a_character() {
        let note = "é".repeat(600);
        let cut = cut(&note);
        assert!(
            cut.len() <= MAX_NOTE_BYTES && cut.ends_with("é…"),
            "{} bytes",
            cut.len()
        );
    }
}
