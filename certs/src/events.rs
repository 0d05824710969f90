//! Events on the Secret and on the configurations.

use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::{ObjectReference, Secret};
use kube::api::{ApiResource, ObjectMeta};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client};

use crate::inject::notices::{About, Notice};

/// Event recorder that publishes the Event of a lasting cause once.
pub(crate) struct EventRecorder {
    client: Client,
    recorder: Recorder,
    secrets: Api<Secret>,
    name: String,
    last_failure: Mutex<Option<String>>,
}

impl EventRecorder {
    pub(crate) fn new(client: &Client, controller: &str, namespace: &str, secret: &str) -> Self {
        let reporter = Reporter {
            controller: controller.to_owned(),
            instance: std::env::var("POD_NAME").ok(),
        };
        Self {
            client: client.clone(),
            recorder: Recorder::new(client.clone(), reporter),
            secrets: Api::namespaced(client.clone(), namespace),
            name: secret.to_owned(),
            last_failure: Mutex::default(),
        }
    }

    /// Records that the content of the Secret is valid.
    pub(crate) fn forget_failure(&self) {
        *self
            .last_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Publishes the Event of invalid content of the Secret, unless it is the last one again.
    pub(crate) async fn failure(&self, note: &str) {
        let is_repeated = {
            let mut last_failure = self
                .last_failure
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            last_failure
                .replace(note.to_owned())
                .is_some_and(|last| last == note)
        };
        if !is_repeated {
            let notice = Notice {
                about: About::Secret,
                reason: "InvalidServingCertificate",
                note: note.to_owned(),
            };
            self.publish(&notice).await;
        }
    }

    /// Publishes an Event of type Warning.
    pub(crate) async fn publish(&self, notice: &Notice) {
        let Some(regarding) = self.regarding(&notice.about).await else {
            return;
        };
        let event = Event {
            type_: EventType::Warning,
            reason: notice.reason.to_owned(),
            note: Some(notice.note.clone()),
            action: "Serve".to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, &regarding).await {
            tracing::warn!(%error, "cannot publish an Event");
        }
    }

    async fn regarding(&self, about: &About) -> Option<ObjectReference> {
        match about {
            About::Secret => {
                let secret = self.secrets.get_opt(&self.name).await.ok()??;
                Some(reference(
                    &ApiResource::erase::<Secret>(&()),
                    secret.metadata,
                ))
            }
            About::Target(target) => {
                let found = target.get(&self.client).await.ok()??;
                Some(reference(&target.kind.resource(), found.metadata))
            }
        }
    }
}

fn reference(resource: &ApiResource, metadata: ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: Some(resource.api_version.clone()),
        kind: Some(resource.kind.clone()),
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        ..ObjectReference::default()
    }
}
