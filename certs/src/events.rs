//! Events on the Secret about invalid content that another client put into it.

use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::{ObjectReference, Secret};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client};

/// Event recorder that publishes each Event once for as long as its cause lasts.
pub(crate) struct EventRecorder {
    recorder: Recorder,
    secrets: Api<Secret>,
    name: String,
    last_note: Mutex<Option<String>>,
}

impl EventRecorder {
    pub(crate) fn new(client: &Client, controller: &str, namespace: &str, secret: &str) -> Self {
        let reporter = Reporter {
            controller: controller.to_owned(),
            instance: std::env::var("POD_NAME").ok(),
        };
        Self {
            recorder: Recorder::new(client.clone(), reporter),
            secrets: Api::namespaced(client.clone(), namespace),
            name: secret.to_owned(),
            last_note: Mutex::default(),
        }
    }

    pub(crate) fn forget(&self) {
        *self
            .last_note
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) async fn warning(&self, reason: &str, note: &str) {
        let is_repeated = {
            let mut last_note = self
                .last_note
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            last_note
                .replace(note.to_owned())
                .is_some_and(|last_note| last_note == note)
        };
        if is_repeated {
            return;
        }
        let Ok(Some(secret)) = self.secrets.get_opt(&self.name).await else {
            return;
        };
        let about = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Secret".to_owned()),
            name: secret.metadata.name,
            namespace: secret.metadata.namespace,
            uid: secret.metadata.uid,
            resource_version: secret.metadata.resource_version,
            ..ObjectReference::default()
        };
        let event = Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            note: Some(note.to_owned()),
            action: "Serve".to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, &about).await {
            tracing::warn!(%error, "cannot publish an Event");
        }
    }
}
