//! Events: what happened to an object, said once and again only as long as it lasts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

/// The API server keeps Events for one hour.
pub(crate) const RENEW_AFTER: Duration = Duration::from_mins(55);

/// The API server's limit for an Event's note, in bytes.
const MAX_NOTE_BYTES: usize = 1024;

/// Publishes Events.
pub(crate) struct Announcer {
    recorder: Recorder,
    last: Mutex<HashMap<String, Announcement>>,
}

struct Announcement {
    what: (&'static str, String),
    at: Instant,
}

impl Announcer {
    pub(crate) fn new(client: Client, controller: &str) -> Self {
        let reporter = Reporter {
            controller: controller.to_owned(),
            instance: None,
        };
        Self {
            recorder: Recorder::new(client, reporter),
            last: Mutex::default(),
        }
    }

    /// Warns of what is wrong with an object, unless that has just been said.
    pub(crate) async fn warn(&self, object: &ObjectReference, reason: &'static str, note: &str) {
        let uid = object.uid.clone().unwrap_or_default();
        let what = (reason, note.to_owned());
        {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let said = last
                .get(&uid)
                .is_some_and(|last| last.what == what && last.at.elapsed() < RENEW_AFTER);
            if said {
                return;
            }
            last.insert(
                uid,
                Announcement {
                    what,
                    at: Instant::now(),
                },
            );
        }
        self.publish(object, EventType::Warning, reason, note).await;
    }

    /// Tells of something that went well.
    pub(crate) async fn tell(&self, object: &ObjectReference, reason: &'static str, note: &str) {
        self.forget(object.uid.as_deref().unwrap_or_default());
        self.publish(object, EventType::Normal, reason, note).await;
    }

    /// Forgets what was said of an object, so that it is said again when it happens again.
    pub(crate) fn forget(&self, uid: &str) {
        self.last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(uid);
    }

    async fn publish(&self, object: &ObjectReference, type_: EventType, reason: &str, note: &str) {
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(cut(note)),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        // An Event is a courtesy: the status says the same.
        if let Err(error) = self.recorder.publish(&event, object).await {
            tracing::warn!(%error, reason, "cannot publish an Event");
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
