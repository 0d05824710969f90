//! The CA in the webhook configurations.

use futures::{Stream, StreamExt};
use k8s_openapi::ByteString;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;
use kube::{Client, core::GroupVersionKind};
use serde_json::{Value, json};

/// The field manager of `caBundle`.
const FIELD_MANAGER: &str = "lockstep-certs";

/// A configuration whose webhooks must trust the CA.
#[derive(Clone, Debug)]
pub struct Target {
    /// Which kind of configuration.
    pub kind: TargetKind,
    /// Its name.
    pub name: String,
}

/// A kind of configuration that carries a `caBundle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// `ValidatingWebhookConfiguration`.
    Validating,
    /// `MutatingWebhookConfiguration`.
    Mutating,
}

impl Target {
    /// Tells of every change of the configuration, whoever makes it.
    pub(crate) fn changes(&self, client: &Client) -> impl Stream<Item = ()> + Send + use<> {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &self.kind.resource());
        watch_object(api, &self.name)
            .default_backoff()
            .filter_map(|event| async move {
                if let Err(error) = &event {
                    tracing::debug!(%error, "watching a webhook configuration");
                }
                event.ok().map(|_| ())
            })
    }
}

impl TargetKind {
    fn resource(self) -> ApiResource {
        let kind = match self {
            Self::Validating => "ValidatingWebhookConfiguration",
            Self::Mutating => "MutatingWebhookConfiguration",
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(
            "admissionregistration.k8s.io",
            "v1",
            kind,
        ))
    }
}

/// Puts the CA into every webhook of the target that does not carry it.
///
/// # Guarantees
///
/// Server-side apply of that one field: nothing else is claimed, and no webhook or configuration that
/// is absent is made.
pub(crate) async fn apply(
    client: &Client,
    target: &Target,
    ca_certificate: &str,
) -> Result<(), kube::Error> {
    let resource = target.kind.resource();
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let Some(configuration) = api.get_opt(&target.name).await? else {
        tracing::warn!(
            target = target.name,
            "there is no such webhook configuration; the gate is not asked"
        );
        return Ok(());
    };
    let ca_bundle = json!(ByteString(ca_certificate.as_bytes().to_vec()));
    let webhooks = configuration.data["webhooks"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if webhooks
        .iter()
        .all(|webhook| webhook["clientConfig"]["caBundle"] == ca_bundle)
    {
        return Ok(());
    }
    let entries: Vec<Value> = webhooks
        .iter()
        .map(|webhook| json!({"name": webhook["name"], "clientConfig": {"caBundle": ca_bundle}}))
        .collect();
    let patch = json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": target.name},
        "webhooks": entries,
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    api.patch(&target.name, &params, &Patch::Apply(patch))
        .await?;
    tracing::info!(target = target.name, "wrote the caBundle");
    Ok(())
}
