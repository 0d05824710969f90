//! Context of the rules of pipelines: what they need besides the object.

use std::collections::BTreeSet;
use std::sync::Arc;

use lockstep_vector_config::{
    Catalogue, Diagnostic, ProgramScope, VrlEnvironment, validate_config,
};
use lockstep_vector_vrl::InProcessCompiler;
use serde_json::Value;

use crate::rules::validation_cache::ValidationCache;

/// Environment of programs, and cache of validation results.
///
/// It is the [extension](lockstep_shared_validation::Ruleset::with_extension) of the rulesets of pipelines. Both kinds
/// share one, so that they share the cache. Without it, the validating thread compiles the programs and nothing is
/// cached.
pub struct VectorContext {
    environment: VrlEnvironment,
    cache: ValidationCache,
}

impl VectorContext {
    /// Creates a context with an empty cache.
    #[must_use]
    pub fn new(environment: VrlEnvironment) -> Self {
        Self {
            environment,
            cache: ValidationCache::default(),
        }
    }

    /// Returns the problems of a configuration whose programs must not call the `denied` functions, from the cache if
    /// possible.
    fn problems(&self, config: &Value, denied: &BTreeSet<String>) -> Arc<Vec<Diagnostic>> {
        self.cache.get_or_compute(config, denied, || {
            validate_config(
                Catalogue::shipped(),
                config,
                denied,
                &self.environment,
                ProgramScope::Start,
            )
        })
    }
}

/// Returns the problems of a configuration, with or without a context.
pub(crate) fn problems(
    context: Option<&VectorContext>,
    config: &Value,
    denied: &BTreeSet<String>,
) -> Arc<Vec<Diagnostic>> {
    match context {
        Some(context) => context.problems(config, denied),
        None => Arc::new(validate_config(
            Catalogue::shipped(),
            config,
            denied,
            &VrlEnvironment::shared(InProcessCompiler::boxed),
            ProgramScope::Start,
        )),
    }
}
