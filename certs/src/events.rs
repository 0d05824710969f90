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
    said: Mutex<Option<String>>,
}

impl EventRecorder {
    pub(crate) fn new(client: &Client, namespace: &str, secret: &str) -> Self {
        let reporter = Reporter {
            controller: "lockstep-ca-injector".to_owned(),
            instance: std::env::var("POD_NAME").ok(),
        };
        Self {
            recorder: Recorder::new(client.clone(), reporter),
            secrets: Api::namespaced(client.clone(), namespace),
            name: secret.to_owned(),
            said: Mutex::default(),
        }
    }

    pub(crate) fn forget(&self) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) async fn warning(&self, reason: &str, note: &str) {
        let was_said = {
            let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            said.replace(note.to_owned())
                .is_some_and(|said| said == note)
        };
        if was_said {
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
