//! CA injection into the configurations that refer to the webhook.

use futures::{Stream, StreamExt};
use k8s_openapi::ByteString;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;
use kube::{Client, core::GroupVersionKind};
use serde_json::{Value, json};
use time::OffsetDateTime;

/// Configuration that refers to the webhook and must trust its serving certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InjectTarget {
    /// Kind of the configuration.
    pub kind: InjectTargetKind,
    /// Name of the configuration.
    pub name: String,
    /// Field manager of `caBundle`.
    pub field_manager: String,
}

/// Kind of configuration with a `caBundle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InjectTargetKind {
    /// `ValidatingWebhookConfiguration`.
    Validating,
    /// `MutatingWebhookConfiguration`.
    Mutating,
    /// `CustomResourceDefinition` with a conversion webhook.
    Conversion,
}

/// Outcome of a write with optimistic concurrency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InjectOutcome {
    /// The object was up to date, so nothing was written.
    Already,
    /// The object was written.
    Now,
    /// Another client has changed the object in between.
    Conflict,
}

impl InjectTarget {
    /// Returns a stream of changes of the configuration, by any client.
    pub(crate) fn changes(&self, client: &Client) -> impl Stream<Item = ()> + Send + use<> {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &self.kind.resource());
        watch_object(api, &self.name)
            .default_backoff()
            .filter_map(|event| async move {
                if let Err(error) = &event {
                    tracing::debug!(%error, "cannot watch a configuration");
                }
                event.ok().map(|_| ())
            })
    }

    /// Returns the configuration, or `None` if it does not exist.
    pub(crate) async fn get(&self, client: &Client) -> Result<Option<DynamicObject>, kube::Error> {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &self.kind.resource());
        let found = api.get_opt(&self.name).await?;
        if found.is_none() {
            tracing::warn!(
                target = self.name,
                kind = ?self.kind,
                "the configuration does not exist; the API server does not call the webhook"
            );
        }
        Ok(found)
    }

    /// Returns the current CA bundle of each `clientConfig`.
    pub(crate) fn injected_cas(&self, found: &DynamicObject) -> Vec<Option<String>> {
        let injected = |client_config: &Value| {
            let bundle = client_config["caBundle"].clone();
            let bundle: ByteString = serde_json::from_value(bundle).ok()?;
            String::from_utf8(bundle.0).ok()
        };
        self.client_configs(found).map(injected).collect()
    }

    /// Injects the CA bundle into every `clientConfig` of the configuration that lacks it.
    ///
    /// # Guarantees
    ///
    /// This is a server-side apply of `caBundle` alone: it owns no other field and creates no missing object, and
    /// it fails with a conflict if the configuration has changed since `found` was read.
    pub(crate) async fn inject_ca(
        &self,
        client: &Client,
        found: &DynamicObject,
        trusted: &str,
    ) -> Result<InjectOutcome, kube::Error> {
        let ca_bundle = json!(ByteString(trusted.as_bytes().to_vec()));
        if self
            .client_configs(found)
            .all(|client_config| client_config["caBundle"] == ca_bundle)
        {
            return Ok(InjectOutcome::Already);
        }
        let resource = self.kind.resource();
        let mut patch = self.apply_patch(found, &ca_bundle);
        patch["apiVersion"] = json!(resource.api_version);
        patch["kind"] = json!(resource.kind);
        patch["metadata"] = json!({
            "name": self.name,
            "resourceVersion": found.metadata.resource_version,
        });
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let params = PatchParams::apply(&self.field_manager).force();
        match api.patch(&self.name, &params, &Patch::Apply(patch)).await {
            Ok(_) => {
                tracing::info!(target = self.name, kind = ?self.kind, "injected the CA bundle");
                Ok(InjectOutcome::Now)
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(InjectOutcome::Conflict),
            Err(error) => Err(error),
        }
    }

    /// Returns the time at which any replica last changed the CA bundle of the configuration, from `managedFields`.
    pub(crate) fn last_injection(&self, found: &DynamicObject) -> Option<OffsetDateTime> {
        let managed = found.metadata.managed_fields.iter().flatten();
        let is_ours = |manager: &str| manager == self.field_manager;
        let mut ours = managed.filter(|entry| entry.manager.as_deref().is_some_and(is_ours));
        let time = ours.next()?.time.as_ref()?;
        OffsetDateTime::from_unix_timestamp(time.0.as_second()).ok()
    }

    fn client_configs<'a>(&self, found: &'a DynamicObject) -> impl Iterator<Item = &'a Value> {
        let (webhooks, conversion) = match self.kind {
            InjectTargetKind::Validating | InjectTargetKind::Mutating => {
                (&found.data["webhooks"], None)
            }
            InjectTargetKind::Conversion => {
                let client_config = found.data.pointer("/spec/conversion/webhook/clientConfig");
                (&Value::Null, client_config)
            }
        };
        let webhooks = webhooks.as_array().into_iter().flatten();
        webhooks
            .map(|webhook| &webhook["clientConfig"])
            .chain(conversion)
    }

    fn apply_patch(&self, found: &DynamicObject, ca_bundle: &Value) -> Value {
        let client_config = json!({ "caBundle": ca_bundle });
        match self.kind {
            InjectTargetKind::Validating | InjectTargetKind::Mutating => {
                let webhooks = found.data["webhooks"].as_array().into_iter().flatten();
                let webhooks: Vec<_> = webhooks
                    .map(|webhook| json!({"name": webhook["name"], "clientConfig": client_config}))
                    .collect();
                json!({ "webhooks": webhooks })
            }
            InjectTargetKind::Conversion => {
                json!({"spec": {"conversion": {"webhook": {"clientConfig": client_config}}}})
            }
        }
    }
}

impl InjectTargetKind {
    fn resource(self) -> ApiResource {
        let (group, kind) = match self {
            Self::Validating => (
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration",
            ),
            Self::Mutating => (
                "admissionregistration.k8s.io",
                "MutatingWebhookConfiguration",
            ),
            Self::Conversion => ("apiextensions.k8s.io", "CustomResourceDefinition"),
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind))
    }
}
