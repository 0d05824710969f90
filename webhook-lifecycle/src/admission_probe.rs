//! Admission probe: a dry run through the API server that only the webhook denies.

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use lockstep_shared_validation::{ValidatorRegistry, probe};
use serde_json::Value;

/// Outcome of an admission probe.
pub(crate) enum ProbeResult {
    /// The webhook has denied the probe.
    Denied,
    /// The probe was admitted: the webhook is not called, or it is down and its failure is ignored.
    Allowed,
    /// Something else has stopped the probe.
    Failed(String),
}

impl ProbeResult {
    /// The results as labels.
    pub(crate) const NAMES: [&'static str; 3] = ["denied", "allowed", "failed"];

    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Allowed => "allowed",
            Self::Failed(_) => "failed",
        }
    }
}

/// Admission probes, one for each kind that has a probe object.
pub(crate) struct AdmissionProbes<'a> {
    pub(crate) client: &'a Client,
    /// Name of the webhook that must deny them.
    pub(crate) webhook: &'a str,
    /// Namespace in which the objects would be stored if anything went wrong.
    pub(crate) namespace: &'a str,
    pub(crate) validators: &'a ValidatorRegistry,
}

impl AdmissionProbes<'_> {
    /// Sends a probe for each kind.
    pub(crate) async fn send_all(&self) -> ProbeResult {
        let mut outcome = ProbeResult::Allowed;
        for ruleset in self.validators.iter() {
            let Some(object) = ruleset.probe_object("lockstep-admission-probe", self.namespace)
            else {
                continue;
            };
            let gvk = GroupVersionKind::gvk(ruleset.group(), ruleset.version(), ruleset.kind());
            let names = &ruleset.crd()["spec"]["names"];
            let plural = names["plural"].as_str().unwrap_or_default();
            let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
            outcome = self.send(&resource, object).await;
            if !matches!(outcome, ProbeResult::Denied) {
                return outcome;
            }
        }
        outcome
    }

    /// Sends one probe.
    async fn send(&self, resource: &ApiResource, object: Value) -> ProbeResult {
        let object: DynamicObject = match serde_json::from_value(object) {
            Ok(object) => object,
            Err(error) => return ProbeResult::Failed(error.to_string()),
        };
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        };
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let status = match api.create(&params, &object).await {
            Ok(_) => return ProbeResult::Allowed,
            Err(kube::Error::Api(status)) => status,
            Err(error) => return ProbeResult::Failed(error.to_string()),
        };
        let by_webhook = format!("admission webhook \"{}\" denied the request", self.webhook);
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let as_probe = causes
            .map(|cause| &cause.field)
            .any(|field| *field == probe::field());
        if status.message.starts_with(&by_webhook) && as_probe {
            ProbeResult::Denied
        } else {
            ProbeResult::Failed(status.message)
        }
    }
}
