//! Publisher: the objects that a workload is to consist of.

use kube::Client;
use lockstep_controller::{ReconcileError, SyncRequest};
use lockstep_vector_api::{RunStatus, WorkloadKind};
use lockstep_vector_assembly::Assembly;
use serde_json::Value;

use crate::owned::{Change, Cluster, Publication};
use crate::run::check::checker::Approved;
use crate::run::collect::collector::Collected;
use crate::run::names::Names;
use crate::run::publish::builder::PublicationBuilder;
use crate::run::publish::changes::Published;
use crate::run::publish::cluster_scoped_names::PlainNames;
use crate::run::publish::contents;
use crate::run::publish::objects::Objects;
use crate::run::publish::plan::Plan;

/// Publisher of the workloads of a kind.
pub(crate) struct Publisher {
    pub(crate) client: Client,
    pub(crate) cluster: Cluster,
    pub(crate) plain_names: PlainNames,
    /// Image of the init container that moves data.
    pub(crate) image: Option<String>,
}

/// Objects that a workload is to consist of.
pub(crate) struct Desired {
    pub(crate) assembly: Assembly,
    pub(crate) publication: Publication,
    pub(crate) children: Vec<Value>,
    /// Change of the Pods or of their configuration.
    pub(crate) change: Option<Change>,
    /// Change that is not made yet.
    pub(crate) planned: Option<Change>,
}

impl Publisher {
    /// Returns the objects with which a workload runs an approved configuration. `status` is what it runs now.
    pub(crate) async fn publish<K: WorkloadKind>(
        &self,
        request: &SyncRequest<'_, K>,
        status: &RunStatus,
        collected: &Collected,
        approved: Approved,
        reports_loads: bool,
    ) -> Result<Desired, ReconcileError> {
        let Approved {
            assembly,
            secrets,
            planned,
            foreign_services,
            check_pods,
            validator,
        } = approved;
        let (names, options, present) = (&collected.names, &collected.options, &collected.present);
        let published = Published {
            parts: &collected.stored,
            secrets: &collected.published.values,
            config_hash: status.published_config_hash.as_deref(),
        };
        let changes = published.changes(&assembly, &secrets);
        let builder = PublicationBuilder {
            object: request.parent(),
            observed: &collected.observed,
            may_move: collected.may_move,
            image: self.image.as_deref(),
            object_name: &names.name,
            data_directory: &collected.data_directory,
            reports_loads,
        };
        let desired_options = options.in_layout(collected.desired_layout);
        let plan = Plan::new(options, desired_options, &assembly, &secrets, planned);
        let publication = builder.publish(present, options, &assembly, secrets, &collected.stored);
        let (mut publication, image) = publication.map_err(contents::too_large)?;
        publication
            .services
            .retain(|service| !foreign_services.has(names, service));
        publication.checks = check_pods;
        publication.validator = validator;
        let objects = Objects {
            object: request.parent(),
            cluster: self.cluster(request, names).await?,
            observed: &collected.observed,
            changes,
        };
        let (children, change) = objects.desired_with(&mut publication, image)?;
        let planned = plan.and_then(|plan| {
            let present = plan.names(present);
            let (publication, image) = plan.publish(&builder, &present)?;
            objects.planned_change(publication, image, &children, plan.changes)
        });
        Ok(Desired {
            assembly,
            publication,
            children,
            change,
            planned,
        })
    }

    /// Returns the facts about the cluster, with the names of cluster-scoped objects.
    async fn cluster<K: WorkloadKind>(
        &self,
        request: &SyncRequest<'_, K>,
        names: &Names,
    ) -> Result<Cluster, ReconcileError> {
        let uid = request.raw_parent()["metadata"]["uid"].as_str();
        let uid = uid.unwrap_or_default();
        let chosen = self
            .plain_names
            .choose(&self.client, names.plain(), uid, request.children());
        Ok(Cluster {
            cluster_scoped_names: chosen.await?,
            ..self.cluster.clone()
        })
    }

    /// Forgets a workload.
    pub(crate) fn release(&self, uid: &str) {
        self.plain_names.release(uid);
    }
}
