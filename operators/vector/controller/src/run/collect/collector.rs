//! Collector: what a reconciliation begins with.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;
use kube::api::ApiResource;
use lockstep_controller::{ReconcileError, SyncRequest};
use lockstep_vector_api::selection::{self, SelectablePipeline};
use lockstep_vector_api::{WorkloadKind, WorkloadRole, is_kaasops};
use lockstep_vector_assembly::{AssemblyOptions, DataLayout, PipelineKey, PipelinePart};

use crate::run::collect::data_directory;
use crate::run::collect::published::Published;
use crate::run::collect::running_objects::{Lookup, Observed};
use crate::run::collect::stored_parts;
use crate::run::migrate::PresentNames;
use crate::run::names::Names;
use crate::run::workload;

/// Collector of the workloads of a kind.
pub(crate) struct Collector {
    pub(crate) client: Client,
    /// Installed kinds of pipelines.
    pub(crate) pipelines: Vec<ApiResource>,
    /// If true, the image of the init container that moves data is known.
    pub(crate) has_migration_image: bool,
}

/// Workload, the pipelines that concern it, and what it runs now.
pub(crate) struct Collected {
    pub(crate) names: Names,
    /// Parts that are stored.
    pub(crate) stored: BTreeMap<PipelineKey, PipelinePart>,
    pub(crate) group: Vec<Arc<SelectablePipeline>>,
    /// Parts that are stored of pipelines that still exist, and the values of their Secrets.
    pub(crate) published: Arc<Published>,
    pub(crate) observed: Observed,
    /// If true, an init container can move the data.
    pub(crate) may_move: bool,
    pub(crate) data_directory: String,
    pub(crate) present: PresentNames,
    /// Options with the names that the Pods have now.
    pub(crate) options: AssemblyOptions,
    pub(crate) desired_layout: DataLayout,
}

impl Collector {
    /// Returns the pipelines that concern a workload.
    pub(crate) fn group<K: WorkloadKind>(
        &self,
        request: &SyncRequest<'_, K>,
    ) -> Result<Vec<Arc<SelectablePipeline>>, ReconcileError> {
        let keys = selection::keys(request.raw_parent(), K::ROLE);
        let mut group = Vec::new();
        for resource in &self.pipelines {
            let pipelines: Vec<Arc<SelectablePipeline>> =
                request.related().by_index(resource, &keys)?;
            group.extend(pipelines);
        }
        Ok(group)
    }

    /// Collects the pipelines that concern a workload, and what it runs now. `options` are those of its spec.
    pub(crate) async fn collect<K: WorkloadKind>(
        &self,
        request: &SyncRequest<'_, K>,
        options: AssemblyOptions,
    ) -> Result<Collected, ReconcileError> {
        let object = request.parent();
        let names = Names::new(object, request.raw_parent());
        let in_secret = names.stored(request, stored_parts::KEY)?;
        let stored = stored_parts::read(in_secret.as_deref());
        let group = self.group(request)?;
        let observed = self.observe(request, &names).await?;
        let may_move = self.may_move_data(object);
        let present = observed.names(&names.name);
        let published = Arc::new(Published {
            parts: stored_parts::without_replaced(&stored, &group),
            values: names.published_secrets(request)?,
            is_unknown: present.exists() && in_secret.is_none(),
        });
        let desired_layout = options.layout();
        let facts = data_directory::Facts {
            workload: object.workload(),
            names: &names,
            raw: request.raw_parent(),
            live: observed.data_directory(),
            exists: present.exists(),
            is_kaasops: is_kaasops(request.policy().settings("vector")),
        };
        Ok(Collected {
            data_directory: facts.directory(),
            options: options.in_layout(present.layout(desired_layout, may_move)),
            names,
            stored,
            group,
            published,
            observed,
            may_move,
            present,
            desired_layout,
        })
    }

    /// Reads the objects that run Vector now.
    async fn observe<K: WorkloadKind>(
        &self,
        request: &SyncRequest<'_, K>,
        names: &Names,
    ) -> Result<Observed, ReconcileError> {
        let uid = request.raw_parent()["metadata"]["uid"].as_str();
        let lookup = Lookup {
            client: &self.client,
            children: request.children(),
            namespace: &names.namespace,
            name: &names.name,
            event_collector: &names.event_collector,
            uid: uid.unwrap_or_default(),
        };
        let is_persistent = workload::is_persistent(request.parent());
        lookup.observe(K::ROLE, is_persistent).await
    }

    /// Returns true if an init container can move the data of the workload: the old Pod of a `Deployment` may still use it
    /// when the new one starts.
    fn may_move_data<K: WorkloadKind>(&self, object: &K) -> bool {
        let is_replaced_first = K::ROLE == WorkloadRole::Agent || workload::is_persistent(object);
        self.has_migration_image && workload::wants_moves(object) && is_replaced_first
    }
}
