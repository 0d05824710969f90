//! Validation result that all rules of a pipeline share. It is computed once, and each rule reports a part of it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, RuleContext};
use lockstep_vector_config::confinement::OptOut;
use lockstep_vector_config::{
    Catalogue, Check, Diagnostic, Interpolation, KUBERNETES_EVENTS, VRL_VERSION, VectorVersion,
    confinement, find_literal_variables,
};
use serde_json::{Map, Value, json};

use crate::catalogues::UsedCatalogue;
use crate::rules::context;
use crate::rules::context::VectorContext;
use crate::rules::validation_cache::{Conditions, Problems};
use crate::tenancy::policy::{Section, TenantPolicy};
use crate::test_result::NamedResult;
use crate::types::pipeline::Pipeline;
use crate::workload_release;
use crate::workload_release::{ImageRelease, WorkloadRelease};

/// Pipeline with its validation result.
pub(crate) struct CachedValidation {
    /// Configuration as the author wrote it.
    pub(crate) config: Value,
    /// Restrictions for tenants.
    pub(crate) policy: TenantPolicy,
    /// If true, the parts of component names must not contain dashes.
    pub(crate) has_names_joined_by_dashes: bool,
    /// Tells whether the agents replace environment variables.
    pub(crate) interpolation: Interpolation,
    /// Catalogues of the releases of Vector that run the pipeline, the newest first.
    pub(crate) catalogues: Vec<UsedCatalogue>,
    /// Version that the policy sets and for which there is no catalogue.
    pub(crate) missing: Option<VectorVersion>,
    /// Releases of the workloads that run the pipeline.
    pub(crate) releases: Vec<WorkloadRelease>,
    /// If true, a tenant wrote the pipeline.
    is_tenants: bool,
    problems: OnceCell<Arc<Problems>>,
    test_results: OnceCell<Vec<NamedResult>>,
}

impl CachedValidation {
    pub(crate) fn of<'a, K: Pipeline>(context: &'a RuleContext<'_, K>) -> &'a Self {
        // Outside of the closure, so that every rule counts as one about related objects.
        let related = context.related();
        context.get_or_compute(|| {
            let section = Section::of(context.settings);
            let known = context::catalogues(context.extension());
            let releases = workload_release::of_workloads(related);
            let interpolation = match section.interpolation() {
                Interpolation::Off if may_interpolate(section.version, &releases) => {
                    Interpolation::On
                }
                other => other,
            };
            Self {
                catalogues: known.of_workloads(section.version, &releases),
                missing: section
                    .version
                    .filter(|version| known.get(*version).is_none()),
                releases,
                config: context.object.spec().configuration(),
                interpolation,
                policy: section.tenants,
                has_names_joined_by_dashes: section.forbid_dashes_in_names,
                is_tenants: K::IS_TENANTS,
                problems: OnceCell::new(),
                test_results: OnceCell::new(),
            }
        })
    }

    /// Returns true if the pipeline has none of the blocks of components.
    pub(crate) fn is_empty(&self) -> bool {
        self.config.as_object().is_none_or(Map::is_empty)
    }

    /// Returns the catalogue of the newest release that runs the pipeline.
    pub(crate) fn newest(&self) -> &Catalogue {
        self.catalogues
            .first()
            .map_or_else(|| &**Catalogue::shipped(), |used| &*used.catalogue)
    }

    /// Returns the user who may turn template confinement off.
    fn opt_out(&self) -> OptOut {
        if self.is_tenants && self.policy.denied_options.contains(confinement::OPT_OUT) {
            if self.policy.unconfined_loki_labels {
                return OptOut::AuthorOfLabels;
            }
            OptOut::Administrator
        } else {
            OptOut::Author
        }
    }

    /// Returns the results of the tests, which are run once for all rules.
    pub(crate) fn test_results(&self, run: impl FnOnce() -> Vec<NamedResult>) -> &[NamedResult] {
        self.test_results.get_or_init(run)
    }

    /// Returns the variables that Vector does not replace.
    pub(crate) fn literal_variables(&self) -> Vec<Diagnostic> {
        match self.interpolation {
            Interpolation::Off => find_literal_variables(&self.config),
            Interpolation::On => Vec::new(),
        }
    }

    /// Returns the problems that Vector would report.
    pub(crate) fn problems(&self, context: Option<&VectorContext>) -> &Problems {
        let none = BTreeSet::new();
        let conditions = Conditions {
            denied_functions: if self.is_tenants {
                &self.policy.denied_functions
            } else {
                &none
            },
            opt_out: self.opt_out(),
            interpolation: self.interpolation,
        };
        self.problems.get_or_init(|| {
            let config = stand_in(&self.config);
            let problems =
                |catalogue: &Catalogue| context::problems(context, catalogue, &config, conditions);
            match &self.catalogues[..] {
                [only] if only.catalogue.is_shipped() && only.unmeasured.is_none() => {
                    problems(&only.catalogue)
                }
                catalogues => {
                    let all: Vec<_> = catalogues
                        .iter()
                        .map(|used| with_advice(used, &problems(&used.catalogue)))
                        .collect();
                    let merged = |of: fn(&Problems) -> &Vec<Diagnostic>| {
                        let lists = all.iter().map(|it| of(it).clone());
                        merge(catalogues, &lists.collect::<Vec<_>>())
                    };
                    Arc::new(Problems {
                        load: merged(|it| &it.load),
                        start_up: merged(|it| &it.start_up),
                    })
                }
            }
        })
    }
}

/// Returns true if a release that may run a pipeline replaces variables whatever the policy says.
fn may_interpolate(version: Option<VectorVersion>, releases: &[WorkloadRelease]) -> bool {
    let of_policy = version.is_some_and(VectorVersion::always_interpolates);
    let is_unknown =
        |workload: &WorkloadRelease| !matches!(workload.release, ImageRelease::Named(_));
    let is_of_policy = releases.is_empty() || releases.iter().any(is_unknown);
    of_policy && is_of_policy || releases.iter().any(|workload| workload.replaces_variables)
}

/// Returns the problems with one catalogue. A rule about the start of a version that was not measured is advice, if it is only
/// known to be one of another version.
fn with_advice(used: &UsedCatalogue, problems: &Problems) -> Problems {
    let mut problems = problems.clone();
    let Some(version) = used.unmeasured else {
        return problems;
    };
    let measured = used.catalogue.number().nearest_measured();
    for problem in &mut problems.start_up {
        if !problem.is_of(version) {
            problem.check = Check::UnmeasuredStart;
            problem.error.detail.push_str(&format!(
                " (a rule of Vector {measured}, which was not compared with Vector {version})"
            ));
        }
    }
    problems
}

/// Merges the problems that a configuration has with several versions of Vector. A problem that it does not have with every
/// version names its own, and so does each problem with another version than the shipped one.
fn merge(catalogues: &[UsedCatalogue], problems: &[Vec<Diagnostic>]) -> Vec<Diagnostic> {
    let mut merged: Vec<Diagnostic> = Vec::new();
    let has_shipped = catalogues.iter().any(|used| used.catalogue.is_shipped());
    for (UsedCatalogue { catalogue, .. }, own) in catalogues.iter().zip(problems) {
        for problem in own {
            let is_of_all = problems.iter().all(|others| others.contains(problem));
            let mut problem = problem.clone();
            let version = &catalogue.version;
            let is_named = problem.error.detail.contains(&format!("Vector {version}"));
            if !is_named && (!is_of_all || !has_shipped) {
                let compiler = match problem.check {
                    Check::Programs | Check::ProgramAdvice => {
                        format!(", compiled by VRL {VRL_VERSION}")
                    }
                    _ => String::new(),
                };
                problem
                    .error
                    .detail
                    .push_str(&format!(" (Vector {version}{compiler})"));
            }
            if !merged.contains(&problem) {
                merged.push(problem);
            }
        }
    }
    merged
}

/// Reports a problem of the configuration at its path in the pipeline.
pub(crate) fn push(problem: &Diagnostic, diagnostics: &mut Diagnostics) {
    let path = FieldPath::new(format!("spec.{}", problem.error.path.as_str()));
    diagnostics.push(FieldError {
        path,
        ..problem.error.clone()
    });
}

/// Reports the problems of one check.
pub(crate) fn push_all<K: Pipeline>(
    check: Check,
    context: &RuleContext<'_, K>,
    diagnostics: &mut Diagnostics,
) {
    let validation = CachedValidation::of(context);
    // The operator of kaasops stores such an object, too, and no Vector gets anything of it.
    if validation.is_empty() {
        return;
    }
    let problems = validation.problems(context.extension());
    let problems = match check {
        Check::Confinement | Check::StartUp | Check::AfterStart | Check::UnmeasuredStart => {
            &problems.start_up
        }
        _ => &problems.load,
    };
    for problem in problems.iter().filter(|problem| problem.check == check) {
        push(problem, diagnostics);
    }
}

/// Replaces the source type of the operator with the source that the operator generates from it.
fn stand_in(config: &Value) -> Cow<'_, Value> {
    let is_own = |source: &Value| source["type"] == KUBERNETES_EVENTS;
    let mut config = Cow::Borrowed(config);
    let sources = config.get("sources").and_then(Value::as_object);
    if sources.is_some_and(|sources| sources.values().any(is_own)) {
        let sources = config.to_mut()["sources"].as_object_mut();
        let sources = sources.into_iter().flat_map(Map::values_mut);
        for source in sources.filter(|source| is_own(source)) {
            *source = json!({"type": "vector", "address": "0.0.0.0:42000"});
        }
    }
    config
}
