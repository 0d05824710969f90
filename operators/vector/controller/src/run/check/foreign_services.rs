//! Services in the namespace of an aggregator that are not its own.
//!
//! The author of a pipeline chooses the name of its Service. Writing a Service of another owner would fail, and with it the
//! reconciliation of all pipelines.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client, ResourceExt};
use lockstep_controller::{Children, ReconcileError, path_segment};
use lockstep_vector_assembly::{PipelineKey, PipelineService};

use crate::owned;
use crate::run::names::Names;

/// Number of Services that are read one by one. Beyond that, all of the namespace are listed.
const READ_EACH: usize = 16;

/// Names of Services that exist and are not those of a workload.
#[derive(Debug, Default)]
pub(crate) struct ForeignServices(BTreeSet<String>);

impl ForeignServices {
    /// Finds the names among those of the Services of pipelines.
    ///
    /// # Errors
    ///
    /// The API server did not answer.
    pub(crate) async fn find(
        client: &Client,
        children: Children<'_>,
        names: &Names,
        uid: &str,
        services: &[PipelineService],
    ) -> Result<Self, ReconcileError> {
        let mut unknown = BTreeSet::new();
        for service in services {
            let name = service_name(names, service);
            let own: Option<Service> = children.get_namespaced(&names.namespace, &name)?;
            if own.is_none() {
                unknown.insert(name);
            }
        }
        let api: Api<Service> = Api::namespaced(client.clone(), &path_segment(&names.namespace));
        let unreadable = |error: kube::Error| {
            let message = format!(
                "the Services of '{}' cannot be read: {error}",
                names.namespace
            );
            ReconcileError::transient("ChildUnreadable", message)
        };
        let mut found = Vec::new();
        if unknown.len() > READ_EACH {
            found = api
                .list(&Default::default())
                .await
                .map_err(unreadable)?
                .items;
        } else {
            for name in &unknown {
                found.extend(api.get_opt(&path_segment(name)).await.map_err(unreadable)?);
            }
        }
        let is_foreign = |service: &Service| {
            let mut owners = service.owner_references().iter();
            !owners.any(|owner| owner.uid == uid)
        };
        let foreign = found.iter().filter(|service| is_foreign(service));
        let foreign = foreign.map(ResourceExt::name_any);
        Ok(Self(
            foreign.filter(|name| unknown.contains(name)).collect(),
        ))
    }

    /// Adds names.
    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Returns the pipelines whose Services have these names, with the reason why they wait.
    pub(crate) fn waiting(
        &self,
        names: &Names,
        services: &[PipelineService],
    ) -> BTreeMap<PipelineKey, String> {
        let waiting = services.iter().filter(|service| self.has(names, service));
        let waiting = waiting.map(|service| {
            let name = service_name(names, service);
            let why = format!(
                "the Service `{name}` exists in the namespace `{}` and does not belong to this workload; choose another name by the annotation `{}`, or delete that Service",
                names.namespace,
                lockstep_vector_assembly::SERVICE_NAME,
            );
            (service.pipeline.clone(), why)
        });
        waiting.collect()
    }

    /// Checks whether the Service of a pipeline has such a name.
    pub(crate) fn has(&self, names: &Names, service: &PipelineService) -> bool {
        self.0.contains(&service_name(names, service))
    }
}

fn service_name(names: &Names, service: &PipelineService) -> String {
    owned::service_name(&names.name, &names.event_collector, service)
}
