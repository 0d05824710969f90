//! Vector: log pipelines, validated completely and not yet run.

use std::any::Any;
use std::sync::Arc;

use lockstep_controller::Reconciler;
use lockstep_sdk::{AuditSnapshot, Operator, OperatorContext};
use lockstep_shared_validation::ValidatedResource;
use lockstep_vector_api::port_allocation::ClusterSnapshot;
use lockstep_vector_api::{
    ClusterVectorAggregator, ClusterVectorPipeline, Pipeline, Vector, VectorAggregator,
    VectorContext, VectorPipeline,
};
use lockstep_vector_controller::ValidateOnlyReconciler;
use serde_json::Value;

use crate::vector;
use crate::vector::catalogue_files::CatalogueArgs;

/// Returns the operator.
pub(crate) fn operator() -> Operator {
    Operator::new()
        .kind(|(), context| pipelines::<VectorPipeline>(context))
        .kind(|(), context| pipelines::<ClusterVectorPipeline>(context))
        .kind(|(), context| workloads::<Vector>(context))
        .kind(|(), context| workloads::<VectorAggregator>(context))
        .kind(|(), context| workloads::<ClusterVectorAggregator>(context))
        // The CRDs may belong to another installation. They must not be replaced unless the user names the kinds.
        .only_when_named()
        .audit_snapshot::<PipelineSnapshot>()
        .subcommand(vector::run)
        .ruleset_extension(context)
        .policy_folder_arg("--vector-catalogues")
}

fn pipelines<K: Pipeline>(context: &OperatorContext) -> impl Reconciler<Kind = K> + use<K> {
    ValidateOnlyReconciler::<K>::pipelines(&context.installed_kinds, catalogues(context))
}

fn workloads<K: ValidatedResource>(
    context: &OperatorContext,
) -> impl Reconciler<Kind = K> + use<K> {
    ValidateOnlyReconciler::<K>::workloads(catalogues(context))
}

/// Returns a fingerprint of the catalogues.
fn catalogues(context: &OperatorContext) -> u64 {
    let extension = context.ruleset_extension::<VectorContext>();
    extension.map_or(0, |context| context.catalogues().digest())
}

/// Creates the environment of VRL programs and the validation cache for a subcommand, and reads the catalogues.
fn context(args: &CatalogueArgs, command: &str) -> anyhow::Result<Arc<dyn Any + Send + Sync>> {
    let environment = vector::environment::of_pipelines(command);
    Ok(Arc::new(VectorContext::new(environment, args.read()?)))
}

/// The pipelines of a cluster and the objects that run them. They are compared with each other, as in the controller.
#[derive(Default)]
struct PipelineSnapshot(ClusterSnapshot);

impl AuditSnapshot for PipelineSnapshot {
    fn includes(&self, kind: &str) -> bool {
        ClusterSnapshot::has(kind)
    }

    fn add(&mut self, object: &Value) {
        self.0.add(object);
    }

    fn related(&self, object: &Value) -> Value {
        self.0.shared(object)
    }
}
