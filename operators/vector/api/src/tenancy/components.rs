//! Components of a pipeline, for the rules of tenants.

use lockstep_shared_validation::{FieldPath, RuleContext};
use lockstep_vector_config::{Component, components};

use crate::rules::cached_validation::CachedValidation;
use crate::tenancy::policy::TenantPolicy;
use crate::types::pipeline::Pipeline;

/// Calls a function for every component of a pipeline, with its path and the policy.
pub(crate) fn each<K: Pipeline>(
    context: &RuleContext<'_, K>,
    mut check: impl FnMut(&Component<'_>, &FieldPath, &TenantPolicy),
) {
    let validated = CachedValidation::of(context);
    for component in validated
        .config
        .as_object()
        .into_iter()
        .flat_map(components)
    {
        let path = FieldPath::new(format!("spec.{}", component.path()));
        check(&component, &path, &validated.policy);
    }
}
