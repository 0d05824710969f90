//! CA injection into the configurations that refer to the webhook.

use std::collections::BTreeSet;

use k8s_openapi::ByteString;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Client, core::GroupVersionKind};
use lockstep_watch::WatchedObject;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::inject::webhook_service::WebhookService;

/// Configuration that refers to the webhook and must trust its serving certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InjectTarget {
    /// Kind of the configuration.
    pub kind: InjectTargetKind,
    /// Name of the configuration.
    pub name: String,
    /// Field manager of `caBundle`.
    pub field_manager: String,
    /// Service of the webhook. A `clientConfig` that refers to another Service belongs to another installation, and
    /// keeps its CA bundle.
    pub service: WebhookService,
}

/// Kind of configuration with a `caBundle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// Returns the configuration as an object to watch.
    pub(crate) fn watched(&self) -> WatchedObject {
        WatchedObject {
            resource: self.kind.resource(),
            namespace: None,
            name: self.name.clone(),
        }
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

    /// Returns the current CA bundle of each `clientConfig` that refers to the webhook.
    pub(crate) fn injected_cas(&self, found: &DynamicObject) -> Vec<Option<String>> {
        let injected = |client_config: &Value| {
            let bundle = client_config["caBundle"].clone();
            let bundle: ByteString = serde_json::from_value(bundle).ok()?;
            String::from_utf8(bundle.0).ok()
        };
        self.own_client_configs(found).map(injected).collect()
    }

    /// Returns the servers of other installations that the configuration refers to.
    pub(crate) fn foreign_servers(&self, found: &DynamicObject) -> BTreeSet<String> {
        let all = self.client_configs(found);
        all.filter(|client_config| !self.service.is_called_by(client_config))
            .map(WebhookService::server)
            .collect()
    }

    /// Injects the CA bundle into every `clientConfig` of the configuration that refers to the webhook and lacks it.
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
            .own_client_configs(found)
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

    fn own_client_configs<'a>(&self, found: &'a DynamicObject) -> impl Iterator<Item = &'a Value> {
        let all = self.client_configs(found);
        all.filter(|client_config| self.service.is_called_by(client_config))
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
                    .filter_map(|webhook| {
                        let client_config = if self.service.is_called_by(&webhook["clientConfig"]) {
                            client_config.clone()
                        } else {
                            // Another installation has the same field manager. What is missing from the patch would be
                            // removed, so its CA bundle is applied as it is.
                            json!({ "caBundle": webhook["clientConfig"].get("caBundle")? })
                        };
                        Some(json!({"name": webhook["name"], "clientConfig": client_config}))
                    })
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
    pub(crate) fn resource(self) -> ApiResource {
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

#[cfg(test)]
impl InjectTarget {
    /// Returns a target for tests, whose webhook has the Service `system/webhook`.
    pub(crate) fn sample(kind: InjectTargetKind) -> Self {
        Self {
            kind,
            name: "lockstep".to_owned(),
            field_manager: "ca-injector".to_owned(),
            service: WebhookService {
                namespace: "system".to_owned(),
                name: "webhook".to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_config(namespace: &str, bundle: &str) -> Value {
        let bundle = ByteString(bundle.as_bytes().to_vec());
        json!({"service": {"namespace": namespace, "name": "webhook"}, "caBundle": bundle})
    }

    fn found(data: Value) -> DynamicObject {
        let resource = InjectTargetKind::Validating.resource();
        DynamicObject::new("lockstep", &resource).data(data)
    }

    #[test]
    fn the_ca_bundle_of_another_installation_is_neither_read_nor_replaced() {
        let target = InjectTarget::sample(InjectTargetKind::Validating);
        let (own, other) = (
            client_config("system", "own"),
            client_config("other", "other"),
        );
        let found = found(json!({"webhooks": [
            {"name": "a", "clientConfig": own},
            {"name": "b", "clientConfig": other},
            {"name": "c", "clientConfig": {"url": "https://example.com"}},
        ]}));
        // A URL may lead to the own webhook.
        let injected = ["own", ""].map(|bundle| Some(bundle.to_owned()));
        assert_eq!(target.injected_cas(&found), injected);
        let servers: Vec<_> = target.foreign_servers(&found).into_iter().collect();
        assert_eq!(servers, ["the Service other/webhook"]);
        let patch = target.apply_patch(&found, &json!("new"));
        let expected = json!({"webhooks": [
            {"name": "a", "clientConfig": {"caBundle": "new"}},
            {"name": "b", "clientConfig": {"caBundle": other["caBundle"]}},
            {"name": "c", "clientConfig": {"caBundle": "new"}},
        ]});
        assert_eq!(patch, expected);
    }

    #[test]
    fn a_conversion_webhook_of_another_installation_has_no_target() {
        let target = InjectTarget::sample(InjectTargetKind::Conversion);
        let crd = |namespace: &str| {
            let client_config = client_config(namespace, "bundle");
            let webhook = json!({ "clientConfig": client_config });
            found(json!({"spec": {"conversion": {"webhook": webhook}}}))
        };
        assert_eq!(target.injected_cas(&crd("system")).len(), 1);
        assert!(target.injected_cas(&crd("other")).is_empty());
        assert_eq!(target.foreign_servers(&crd("other")).len(), 1);
        let without = found(json!({"spec": {"conversion": {"strategy": "None"}}}));
        assert!(target.foreign_servers(&without).is_empty());
    }
}
