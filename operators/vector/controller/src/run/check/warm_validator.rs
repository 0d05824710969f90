//! Validator of a workload: a Pod that keeps running for checks.
//!
//! ```text
//! workload + Secret + Deployment ─► desired validator, its state ─► session ─► answers
//! ```

mod credentials;
mod session;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use lockstep_controller::{ReconcileError, SyncRequest};
use lockstep_vector_api::{ConfigCheck, Workload};
use serde_json::json;

use crate::owned::{self, Cluster, Validator};
use crate::run::check::warm_validator::credentials::Credentials;
pub(crate) use crate::run::check::warm_validator::session::{Access, Reply, Session};
use crate::run::cluster_features::Installation;
use crate::run::names::Names;
use lockstep_vector_api::WorkloadKind;

/// State of a validator that answers.
const READY: &str = "Ready";

/// State of a validator that is about to be created.
const BEGINS: &str = "is being created";

/// State of a validator that cannot be created.
const NO_IMAGE: &str = "the image of this program is not known to the controller: it runs in no Deployment; set `--vector-migration-image`";

/// Validator of a workload, if the workload demands one.
#[derive(Default)]
pub(crate) struct WarmValidator {
    /// Input of its objects. None if there are to be none.
    pub(crate) desired: Option<Validator>,
    /// State for people: that it is ready, or why each check has a Pod of its own.
    pub(crate) state: Option<String>,
    /// Time until its certificate is to be renewed.
    pub(crate) renewal_in: Option<Duration>,
    /// Labels of the Pods that can check the present workload.
    labels: BTreeMap<String, String>,
    /// If true, at least one Pod is ready, of the present or of an earlier template.
    is_running: bool,
}

impl WarmValidator {
    /// Returns the validator that a workload demands.
    ///
    /// # Errors
    ///
    /// A child cannot be read, or no certificate can be created.
    pub(crate) fn new<K: WorkloadKind>(
        request: &SyncRequest<'_, K>,
        names: &Names,
        cluster: &Cluster,
        installation: &Installation,
        is_for_schema: bool,
    ) -> Result<Self, ReconcileError> {
        let default = Workload::default();
        let workload = request.parent().workload().unwrap_or(&default);
        let check = workload.config_check.as_ref();
        let is_warm = check.is_some_and(ConfigCheck::is_warm);
        if !is_for_schema && !is_warm {
            return Ok(Self::default());
        }
        // By this field, the objects of the validator are watched.
        if !is_warm && request.raw_parent()["status"]["validator"].is_null() {
            return Ok(Self {
                state: Some(BEGINS.to_owned()),
                renewal_in: Some(Duration::ZERO),
                ..Self::default()
            });
        }
        let Some(image) = installation.image.clone() else {
            return Ok(Self {
                state: Some(NO_IMAGE.to_owned()),
                ..Self::default()
            });
        };
        let name = owned::validator_name(&names.name);
        let children = request.children();
        let secret: Option<Secret> = children.get_namespaced(&names.namespace, &name)?;
        let credentials = Credentials::new(secret.as_ref(), SystemTime::now());
        let credentials = credentials.map_err(|error| ReconcileError::Transient {
            reason: "CertificateNotCreated",
            message: format!("the certificate of the validator cannot be created: {error}"),
        })?;
        let renewal_in = Some(credentials.renewal_in);
        let desired = Validator {
            is_for_schema,
            image,
            clients: installation.pods.clone(),
            certificate: credentials.pair.certificate,
            key: credentials.pair.key,
            token: credentials.token,
        };
        let of_workload = request.raw_parent()["metadata"]["name"].as_str();
        let labels = owned::validator_labels(
            K::ROLE,
            of_workload.unwrap_or_default(),
            &names.namespace,
            workload,
            cluster,
            &desired,
        );
        let deployment: Option<Deployment> = children.get_namespaced(&names.namespace, &name)?;
        let status = deployment.and_then(|deployment| deployment.status);
        let ready = status.and_then(|status| status.ready_replicas);
        let pending = children.pending_reason(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": names.namespace},
        }));
        Ok(Self {
            desired: Some(desired),
            state: Some(pending.unwrap_or_else(|| READY.to_owned())),
            renewal_in,
            labels,
            is_running: ready.unwrap_or_default() > 0,
        })
    }
}
