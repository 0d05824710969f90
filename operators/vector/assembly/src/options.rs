//! Options: what of a workload decides its configuration.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

use lockstep_vector_api::{ComponentNames, WorkloadRole};
use lockstep_vector_config::Catalogue;

use crate::layout::DataLayout;

/// Options of a workload.
#[derive(Clone)]
pub struct AssemblyOptions {
    /// Agents or aggregators.
    pub kind: WorkloadRole,
    /// Names of components.
    pub component_names: ComponentNames,
    /// Catalogue of the workload's version of Vector. It knows the outputs of each component.
    pub catalogue: Arc<Catalogue>,
    /// If true, the API server may answer requests of `kubernetes_logs` from its cache.
    pub use_api_server_cache: bool,
    /// Time in seconds after which a metric that is not updated is removed.
    pub expire_metrics_secs: Option<i64>,
    /// Vector's API, if it is served.
    pub api: Option<ApiOptions>,
    /// Vector's own metrics, if they are served.
    pub internal_metrics: Option<InternalMetrics>,
    /// If true, sources of `kubernetes_logs` that differ only in their namespace become one source.
    pub merge_sources: bool,
}

impl AssemblyOptions {
    /// Returns the defaults of a kind of workload.
    #[must_use]
    pub fn new(kind: WorkloadRole) -> Self {
        Self {
            kind,
            component_names: ComponentNames::default(),
            catalogue: Arc::clone(Catalogue::shipped()),
            use_api_server_cache: false,
            expire_metrics_secs: None,
            api: None,
            internal_metrics: None,
            merge_sources: false,
        }
    }
}

impl AssemblyOptions {
    /// Returns the layout of a configuration.
    #[must_use]
    pub fn layout(&self) -> DataLayout {
        DataLayout {
            component_names: self.component_names,
            merge_sources: self.merge_sources,
        }
    }

    /// Returns the same options with the names of another layout.
    #[must_use]
    pub fn in_layout(&self, layout: DataLayout) -> Self {
        Self {
            component_names: layout.component_names,
            merge_sources: layout.merge_sources,
            ..self.clone()
        }
    }
}

impl fmt::Debug for AssemblyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssemblyOptions")
            .field("kind", &self.kind)
            .field("component_names", &self.component_names)
            .field("catalogue", &self.catalogue.version)
            .field("use_api_server_cache", &self.use_api_server_cache)
            .field("expire_metrics_secs", &self.expire_metrics_secs)
            .field("api", &self.api)
            .field("internal_metrics", &self.internal_metrics)
            .field("merge_sources", &self.merge_sources)
            .finish()
    }
}

/// Pipelines that serve metrics in place of Vector's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InternalMetrics {
    /// Pipelines of administrators.
    ReplacedByAdministrators,
    /// Pipelines of tenants, too.
    ReplacedByAll,
}

/// Vector's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiOptions {
    /// Address on which it is served.
    pub address: SocketAddr,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv6Addr::UNSPECIFIED, 8686)),
        }
    }
}
