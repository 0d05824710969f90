//! Failure policy of the webhook: `Fail` only after the webhook was seen to deny an object.
//!
//! The webhook is installed with `failurePolicy: Ignore`. An admission probe is a dry run through the API server
//! that only the webhook denies. Once that has happened, the failure policy becomes `Fail`.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use lockstep_certs::WebhookService;
use lockstep_shared_validation::ValidatorRegistry;
use lockstep_watch::{WatchedObject, Watches};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::admission_probe::{AdmissionProbes, ProbeResult};

/// Time within which several changes of the configuration count as one.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Interval of the probes while the failure policy is `Ignore`.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Number of consecutive probes that must fail, with no replica accepting connections, before the failure policy
/// becomes `Ignore`.
const MISSES: u32 = 3;

/// Sends admission probes, and sets the validating webhook's failure policy to `Fail` once they are denied.
pub struct FailurePolicyController {
    /// Client of the cluster.
    pub client: Client,
    /// Field manager of `failurePolicy`, for the moment of a write.
    pub field_manager: String,
    /// Name of the `ValidatingWebhookConfiguration`.
    pub configuration: String,
    /// Name of the webhook in it.
    pub webhook: String,
    /// Service of the webhook. If the configuration refers to another one, it belongs to another installation, and
    /// its failure policy is not changed.
    pub service: WebhookService,
    /// Namespace of the installation. The probes would be stored there if anything went wrong.
    pub namespace: String,
    /// Name of the webhook's Deployment.
    pub deployment: String,
    /// Rulesets of the kinds that a probe is sent for.
    pub validators: ValidatorRegistry,
    /// Interval of the probes, in addition to one after every change of the configuration.
    pub probe_interval: Duration,
    /// Check for a replica of the webhook that accepts connections. If set, the failure policy becomes `Ignore`
    /// when there is none.
    pub backend_probe: Option<BackendProbe>,
    /// Metrics to update.
    pub metrics: FailurePolicyMetrics,
    /// Watches of the process, to which the one on the configuration is added.
    pub watches: Watches,
}

/// Webhook of this installation in the configuration.
struct FoundWebhook {
    index: usize,
    /// If true, its failure policy is `Fail`.
    fail_closed: bool,
}

impl FoundWebhook {
    /// Returns the webhook of this name, if the API server calls this Service for it.
    fn find(configuration: &Value, name: &str, service: &WebhookService) -> Option<Self> {
        let webhooks = configuration["webhooks"].as_array()?;
        let index = webhooks.iter().position(|webhook| {
            webhook["name"] == name && service.is_called_by(&webhook["clientConfig"])
        })?;
        Some(Self {
            index,
            fail_closed: webhooks[index]["failurePolicy"] == "Fail",
        })
    }
}

/// Function that returns true if any replica of the webhook accepts connections.
pub type BackendProbe =
    Box<dyn Fn() -> BoxFuture<'static, Result<bool, kube::Error>> + Send + Sync>;

/// Prometheus metrics for the failure policy.
#[derive(Clone)]
pub struct FailurePolicyMetrics {
    fail_closed: Gauge,
    probes: Family<ProbeLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProbeLabels {
    result: &'static str,
}

impl FailurePolicyMetrics {
    /// Registers the metrics.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            fail_closed: Gauge::default(),
            probes: Family::default(),
        };
        registry.register(
            "lockstep_webhook_fail_closed",
            "1 if the webhook configuration has failurePolicy=Fail, 0 otherwise",
            metrics.fail_closed.clone(),
        );
        registry.register(
            "lockstep_webhook_probes",
            "Total number of admission probes by result; each should be denied by the webhook",
            metrics.probes.clone(),
        );
        // Alerts see an increase only of a counter that exists before.
        for result in ProbeResult::NAMES {
            drop(metrics.probes.get_or_create(&ProbeLabels { result }));
        }
        metrics
    }
}

impl FailurePolicyController {
    /// Sends probes until `stop` turns true: at an interval, and after every change of the configuration.
    ///
    /// # Guarantees
    ///
    /// If the Deployment is gone or scaled to zero by then, the failure policy becomes `Ignore`: no replica will
    /// answer any more.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            () = self.probe_repeatedly() => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        for pause in [1, 2, 4].map(Duration::from_secs) {
            match self.fail_open().await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot check whether the failure policy must be set to Ignore");
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn probe_repeatedly(&self) {
        let configuration = WatchedObject {
            resource: resource(),
            namespace: None,
            name: self.configuration.clone(),
        };
        let changes = configuration.changes(&self.client, &self.watches, &self.field_manager);
        let mut changes = std::pin::pin!(changes);
        let mut misses = 0;
        loop {
            let is_called = self.sync(&mut misses).await.unwrap_or_else(|error| {
                match &error {
                    kube::Error::Api(status) if status.is_conflict() => tracing::info!(
                        "another client has changed the configuration at the same time; the failure policy is checked again"
                    ),
                    _ => tracing::error!(%error, "cannot check the failure policy of the webhook"),
                }
                true
            });
            let pause = match self.metrics.fail_closed.get() {
                // The webhook may become available at any moment.
                0 if is_called => RETRY_AFTER.min(self.probe_interval),
                // A change of the configuration triggers a check.
                _ => self.probe_interval,
            };
            let pause = pause.mul_f64(fastrand::f64().mul_add(0.2, 0.9));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                Some(()) = changes.next() => tokio::time::sleep(DEBOUNCE).await,
            }
        }
    }

    /// Sends probes and sets the failure policy. Returns false if the configuration does not refer to this installation.
    async fn sync(&self, misses: &mut u32) -> Result<bool, kube::Error> {
        let found = self.configurations().get_opt(&self.configuration).await?;
        let found = found.and_then(|found| Some((self.find_webhook(&found)?, found)));
        let Some((FoundWebhook { index, fail_closed }, found)) = found else {
            tracing::warn!(
                configuration = self.configuration,
                webhook = self.webhook,
                service = format!("{}/{}", self.service.namespace, self.service.name),
                "the configuration does not contain the webhook, or refers to the Service of another installation; \
                 its failure policy is not set"
            );
            self.metrics.fail_closed.set(0);
            return Ok(false);
        };
        self.metrics.fail_closed.set(i64::from(fail_closed));
        let outcome = self.probes().send_all().await;
        let labels = ProbeLabels {
            result: outcome.as_str(),
        };
        self.metrics.probes.get_or_create(&labels).inc();
        match outcome {
            ProbeResult::Denied => {
                *misses = 0;
                if !fail_closed {
                    self.set_failure_policy(&found, index, "Fail").await?;
                    tracing::info!(
                        "the webhook denied an admission probe; failurePolicy is now Fail"
                    );
                    return Ok(true);
                }
            }
            ProbeResult::Allowed => {
                tracing::warn!(
                    fail_closed,
                    "the admission probe was not denied: the webhook is not called"
                );
            }
            ProbeResult::Failed(problem) => {
                tracing::error!(
                    fail_closed,
                    problem,
                    "the admission probe did not reach the webhook"
                );
                *misses = if fail_closed && self.has_no_backend().await {
                    *misses + 1
                } else {
                    0
                };
                if *misses >= MISSES {
                    *misses = 0;
                    self.set_failure_policy(&found, index, "Ignore").await?;
                    tracing::error!(
                        "no replica of the webhook accepts connections; failurePolicy is now Ignore"
                    );
                    return Ok(true);
                }
            }
        }
        self.release_field(&found).await?;
        Ok(true)
    }

    async fn fail_open(&self) -> Result<(), kube::Error> {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &self.namespace);
        let deployment = deployments.get_opt(&self.deployment).await?;
        let stays = deployment.is_some_and(|deployment| {
            let wanted = deployment.spec.and_then(|spec| spec.replicas).unwrap_or(1);
            deployment.metadata.deletion_timestamp.is_none() && wanted > 0
        });
        if stays {
            return Ok(());
        }
        let Some(found) = self.configurations().get_opt(&self.configuration).await? else {
            return Ok(());
        };
        if let Some(FoundWebhook { index, fail_closed }) = self.find_webhook(&found)
            && fail_closed
        {
            self.set_failure_policy(&found, index, "Ignore").await?;
            tracing::warn!(
                "the webhook's Deployment is gone or scaled to zero; failurePolicy is now Ignore"
            );
        }
        Ok(())
    }

    /// Returns true if no replica accepts connections, and false if that is not checked or not known.
    async fn has_no_backend(&self) -> bool {
        match &self.backend_probe {
            None => false,
            Some(any_listens) => matches!(any_listens().await, Ok(false)),
        }
    }

    fn probes(&self) -> AdmissionProbes<'_> {
        AdmissionProbes {
            client: &self.client,
            webhook: &self.webhook,
            namespace: &self.namespace,
            validators: &self.validators,
        }
    }

    fn configurations(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &resource())
    }

    fn find_webhook(&self, found: &DynamicObject) -> Option<FoundWebhook> {
        FoundWebhook::find(&found.data, &self.webhook, &self.service)
    }

    async fn set_failure_policy(
        &self,
        found: &DynamicObject,
        index: usize,
        policy: &str,
    ) -> Result<(), kube::Error> {
        let operations = json!([
            // The resource version prevents overwriting a change that was not read.
            {"op": "add", "path": "/metadata/resourceVersion", "value": found.metadata.resource_version},
            {"op": "replace", "path": format!("/webhooks/{index}/failurePolicy"), "value": policy},
        ]);
        let changed = self.patch(operations).await?;
        self.metrics.fail_closed.set(i64::from(policy == "Fail"));
        self.release_field(&changed).await
    }

    /// Gives up the ownership of the field. Otherwise its previous manager would get a conflict when it applies
    /// another value. That value is valid until the next probe.
    async fn release_field(&self, found: &DynamicObject) -> Result<(), kube::Error> {
        let managed = found.metadata.managed_fields.iter().flatten();
        let mine: Vec<usize> = managed
            .enumerate()
            .filter(|(_, entry)| entry.manager.as_deref() == Some(self.field_manager.as_str()))
            .map(|(index, _)| index)
            .collect();
        let Some(&index) = mine.first() else {
            return Ok(());
        };
        let path = format!("/metadata/managedFields/{index}");
        let operations = json!([
            {"op": "add", "path": "/metadata/resourceVersion", "value": found.metadata.resource_version},
            {"op": "test", "path": format!("{path}/manager"), "value": self.field_manager},
            {"op": "remove", "path": path},
        ]);
        self.patch(operations)
            .map(|patched| patched.map(drop))
            .await
    }

    async fn patch(&self, operations: Value) -> Result<DynamicObject, kube::Error> {
        let operations =
            serde_json::from_value(operations).expect("the operations are a JSON Patch");
        let params = PatchParams {
            field_manager: Some(self.field_manager.clone()),
            ..PatchParams::default()
        };
        let patch = Patch::<()>::Json(operations);
        self.configurations()
            .patch(&self.configuration, &params, &patch)
            .await
    }
}

fn resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_webhook_of_another_installation_is_not_found() {
        let service = WebhookService {
            namespace: "system".to_owned(),
            name: "webhook".to_owned(),
        };
        let webhook = |name: &str, namespace: &str| {
            let service = json!({"namespace": namespace, "name": "webhook"});
            json!({"name": name, "clientConfig": {"service": service}, "failurePolicy": "Fail"})
        };
        let configuration =
            json!({"webhooks": [webhook("other", "system"), webhook("validate", "system")]});
        let found = FoundWebhook::find(&configuration, "validate", &service);
        assert!(found.is_some_and(|found| found.index == 1 && found.fail_closed));
        let configuration = json!({"webhooks": [webhook("validate", "other")]});
        assert!(FoundWebhook::find(&configuration, "validate", &service).is_none());
        // A URL may lead to the own webhook.
        let client_config = json!({"url": "https://192.0.2.1/validate"});
        let configuration =
            json!({"webhooks": [{"name": "validate", "clientConfig": client_config}]});
        assert!(FoundWebhook::find(&configuration, "validate", &service).is_some());
    }
}
