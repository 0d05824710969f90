//! Context of the rules of pipelines: what they need besides the object.

use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use lockstep_vector_config::{
    Catalogue, ProgramScope, VrlEnvironment, validate_config, validate_start_up,
};
use lockstep_vector_vrl::InProcessCompiler;
use serde_json::Value;

use crate::catalogues::Catalogues;
use crate::change_preview::PreviewChange;
use crate::rules::validation_cache::{Conditions, Problems, ValidationCache};
use crate::test_result::RunTests;

/// Environment of programs, catalogues, and cache of validation results.
///
/// It is the [extension](lockstep_shared_validation::Ruleset::with_extension) of the rulesets of pipelines. Both kinds
/// share one, so that they share the cache. Without it, the validating thread compiles the programs, only the shipped
/// catalogue is known, and nothing is cached.
pub struct VectorContext {
    environment: VrlEnvironment,
    catalogues: RwLock<Arc<Catalogues>>,
    cache: ValidationCache,
    change_preview: Option<PreviewChange>,
    run_tests: Option<RunTests>,
}

impl VectorContext {
    /// Creates a context with an empty cache.
    #[must_use]
    pub fn new(environment: VrlEnvironment, catalogues: Catalogues) -> Self {
        Self {
            environment,
            catalogues: RwLock::new(Arc::new(catalogues)),
            cache: ValidationCache::default(),
            change_preview: None,
            run_tests: None,
        }
    }

    /// Sets the function that compares workloads. Without it, changes of workloads are not described.
    #[must_use]
    pub fn with_change_preview(self, preview: PreviewChange) -> Self {
        Self {
            change_preview: Some(preview),
            ..self
        }
    }

    /// Sets the function that runs the tests of pipelines. Without it, they are not run.
    #[must_use]
    pub fn with_tests(self, run: RunTests) -> Self {
        Self {
            run_tests: Some(run),
            ..self
        }
    }

    /// Returns the function that runs the tests of pipelines.
    pub(crate) fn run_tests(&self) -> Option<RunTests> {
        self.run_tests
    }

    /// Returns the function that compares workloads.
    pub(crate) fn change_preview(&self) -> Option<PreviewChange> {
        self.change_preview
    }

    /// Returns the current catalogues.
    #[must_use]
    pub fn catalogues(&self) -> Arc<Catalogues> {
        let current = self.catalogues.read();
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the catalogues. A validation that has begun ends with the previous ones.
    pub fn set_catalogues(&self, catalogues: Catalogues) {
        let current = self.catalogues.write();
        *current.unwrap_or_else(PoisonError::into_inner) = Arc::new(catalogues);
    }

    /// Returns the environment of programs.
    #[must_use]
    pub fn environment(&self) -> &VrlEnvironment {
        &self.environment
    }

    /// Returns the problems of a configuration, from the cache if possible.
    fn problems(
        &self,
        catalogue: &Catalogue,
        config: &Value,
        conditions: Conditions<'_>,
    ) -> Arc<Problems> {
        let key = (config, conditions, catalogue.digest());
        self.cache.get_or_compute(key, || {
            validate(catalogue, config, conditions, &self.environment)
        })
    }
}

/// Returns the catalogues, with or without a context.
pub(crate) fn catalogues(context: Option<&VectorContext>) -> Arc<Catalogues> {
    static SHIPPED: LazyLock<Arc<Catalogues>> = LazyLock::new(Arc::default);
    context.map_or_else(|| Arc::clone(&SHIPPED), VectorContext::catalogues)
}

/// Returns the problems of a configuration, with or without a context.
pub(crate) fn problems(
    context: Option<&VectorContext>,
    catalogue: &Catalogue,
    config: &Value,
    conditions: Conditions<'_>,
) -> Arc<Problems> {
    match context {
        Some(context) => context.problems(catalogue, config, conditions),
        None => {
            let environment = VrlEnvironment::shared(InProcessCompiler::boxed);
            Arc::new(validate(catalogue, config, conditions, &environment))
        }
    }
}

fn validate(
    catalogue: &Catalogue,
    config: &Value,
    conditions: Conditions<'_>,
    environment: &VrlEnvironment,
) -> Problems {
    let Conditions {
        denied_functions,
        opt_out,
        interpolation,
    } = conditions;
    Problems {
        load: validate_config(
            catalogue,
            config,
            denied_functions,
            environment,
            ProgramScope::Start,
        ),
        start_up: validate_start_up(catalogue, config, opt_out, interpolation),
    }
}
