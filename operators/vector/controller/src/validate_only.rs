//! Reconciler of all kinds: validates an object and reports the result in its status.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kube::api::ApiResource;
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, Readiness, ReconcileError, ReconcileOutput, Reconciler,
    RelatedObjects, SyncRequest, Watch,
};
use lockstep_shared_validation::{
    ValidatedResource, ValidationRequest, ValidationResult, shortened,
};
use lockstep_vector_api::{Catalogues, Pipeline, VectorContext, WorkloadRole, port_allocation};
use serde_json::{Map, Value, json};

use crate::fingerprint;
use crate::related_pipelines::RelatedPipelines;

/// Interval after which an unchanged object is reconciled again.
const RESYNC: Duration = Duration::from_hours(10);

/// Maximum length of the field `reason` of a status, in bytes.
const LONGEST_REASON: usize = 32_768;

/// Maximum number of warnings in a status.
const MAX_WARNINGS: usize = 20;

/// Maximum length of a warning in a status, in bytes.
const LONGEST_WARNING: usize = 1024;

/// Reconciler that only validates objects of one kind.
pub struct ValidateOnlyReconciler<K> {
    /// Context of the rules, with the catalogues.
    context: Arc<VectorContext>,
    /// Returns a fingerprint of the catalogues that the result for an object depends on.
    digest: DigestFn,
    /// Field of the status that contains the fingerprint.
    hash: &'static str,
    /// If true, the status contains the role.
    has_role: bool,
    /// Related objects, if the kind is a pipeline.
    related: RelatedPipelines,
    kind: PhantomData<fn() -> K>,
}

/// Returns a fingerprint of the catalogues that the result of a validation depends on. The value is the section of the
/// policy.
type DigestFn = fn(&Catalogues, &ValidationRequest<'_>, Option<&Value>) -> u64;

/// Key of the fingerprint of all catalogues among the facts about other objects. If it changes while an object is
/// validated, the object is validated again.
const CATALOGUES: &str = "catalogues";

impl<K: Pipeline> ValidateOnlyReconciler<K> {
    /// Returns a reconciler for pipelines. `installed` are the kinds that exist in the cluster, `context` is that of their
    /// rules: a pipeline is validated again when a catalogue changes for which it is validated.
    #[must_use]
    pub fn pipelines(installed: &[ApiResource], context: Arc<VectorContext>) -> Self {
        Self {
            context,
            digest: |catalogues, request, section| {
                catalogues.digest_for_pipeline(section, request.related)
            },
            hash: "LastAppliedPipelineHash",
            has_role: true,
            related: RelatedPipelines::among(installed),
            kind: PhantomData,
        }
    }
}

impl<K: ValidatedResource> ValidateOnlyReconciler<K> {
    /// Returns a reconciler for the workloads that run pipelines. `context` is that of their rules.
    #[must_use]
    pub fn workloads(context: Arc<VectorContext>) -> Self {
        Self {
            context,
            digest: |catalogues, request, section| {
                catalogues.digest_for_workload(section, request.object)
            },
            hash: "LastAppliedConfigHash",
            has_role: false,
            related: RelatedPipelines::among(&[]),
            kind: PhantomData,
        }
    }

    /// Returns the fingerprint of a validated object, or none if the catalogues have changed since its validation began.
    fn hash(&self, request: &ValidationRequest<'_>) -> Option<i64> {
        let catalogues = self.context.catalogues();
        let mut others = request.related.cloned().unwrap_or_default();
        let seen = others.as_object_mut().and_then(|it| it.remove(CATALOGUES));
        if seen.is_some_and(|seen| seen != catalogues.digest()) {
            return None;
        }
        if others.as_object().is_some_and(Map::is_empty) {
            others = Value::Null;
        }
        let section = K::settings().map(|settings| settings.section);
        let policy = request.policy;
        let settings = section.and_then(|section| policy?.settings(section));
        let digest = (self.digest)(&catalogues, request, settings);
        let policy = policy.map(|policy| policy.settings_fingerprint(K::KIND, section));
        let policy = policy.unwrap_or_default();
        let hash = fingerprint::compute(request.object, &others, &policy, digest);
        Some(hash)
    }
}

#[async_trait]
impl<K: ValidatedResource> Reconciler for ValidateOnlyReconciler<K> {
    type Kind = K;

    fn watches(&self) -> Vec<Watch> {
        self.related.watches()
    }

    fn related_for_validation(
        &self,
        object: &Value,
        related: RelatedObjects<'_>,
    ) -> Result<Value, ReconcileError> {
        let mut shared = self.related.shared(object, related)?;
        if shared.is_null() {
            shared = json!({});
        }
        shared[CATALOGUES] = self.context.catalogues().digest().into();
        Ok(shared)
    }

    fn is_up_to_date(&self, request: &ValidationRequest<'_>) -> bool {
        let hash = self.hash(request);
        hash.is_some_and(|hash| request.object["status"][self.hash] == hash)
    }

    fn on_validated(
        &self,
        request: &ValidationRequest<'_>,
        result: &ValidationResult,
    ) -> Map<String, Value> {
        let object = request.object;
        let others = request.related.unwrap_or(&Value::Null);
        let sources = object.pointer("/spec/sources").and_then(Value::as_object);
        let role = sources.and_then(WorkloadRole::of).map(WorkloadRole::as_str);
        // A pipeline that could not be validated keeps its previous role and addresses.
        let is_new = self.has_role && (result.is_valid() || result.is_complete());
        let role = is_new.then_some(("role".to_owned(), json!(role)));
        let listens = is_new.then(|| listens_on(object, others, result));
        let reason =
            (!result.is_valid()).then(|| shortened(&result.message(), LONGEST_REASON).into_owned());
        let fields = json!({
            "configCheckResult": result.is_valid(),
            "reason": reason,
            "warnings": warnings(result),
            // Without a fingerprint, the object is validated again.
            self.hash: result.is_complete().then(|| self.hash(request)).flatten(),
        });
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let listens = listens.into_iter().flatten();
        fields.into_iter().chain(role).chain(listens).collect()
    }

    async fn reconcile(&self, _: &SyncRequest<'_, K>) -> Result<ReconcileOutput, ReconcileError> {
        let readiness = Readiness {
            ready: true,
            reason: "Valid",
            message: "Validation succeeded".to_owned(),
        };
        Ok(ReconcileOutput {
            readiness: Some(readiness),
            requeue_after: RESYNC,
            ..ReconcileOutput::default()
        })
    }

    async fn finalize(&self, _: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        Ok(FinalizeOutcome::Done)
    }
}

/// Returns the status fields with the addresses and workloads of a pipeline, or with the addresses that it waits for.
/// They are null if the pipeline cannot run for another reason.
fn listens_on(object: &Value, others: &Value, result: &ValidationResult) -> Map<String, Value> {
    let mut errors = result.errors.iter();
    // An error that is not kept may be another reason.
    let could_run = !result.has_more_errors
        && errors.all(|violation| violation.rule == port_allocation::ADDRESS_FREE);
    let waits = !result.is_valid();
    let addresses = could_run.then(|| port_allocation::addresses(object, others, waits));
    let run_by = (!waits).then(|| port_allocation::run_by(others));
    let fields = [("addresses", addresses), ("runBy", run_by)];
    let reported = fields.into_iter().map(|(name, texts)| {
        let texts = texts.filter(|texts| !texts.is_empty());
        (name.to_owned(), json!(texts))
    });
    reported.collect()
}

/// Returns the warnings for a status, or null if there are none.
fn warnings(result: &ValidationResult) -> Value {
    let warnings = result.warnings.iter().take(MAX_WARNINGS);
    let warnings: Vec<_> = warnings
        .map(|warning| shortened(&warning.error.to_string(), LONGEST_WARNING).into_owned())
        .collect();
    if warnings.is_empty() {
        return Value::Null;
    }
    json!(warnings)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lockstep_shared_validation::{
        FieldError, FieldPath, Layer, Policy, Ruleset, Validator, ValidatorRegistry, Violation,
    };
    use lockstep_vector_api::{Catalogue, InProcessCompiler, VectorPipeline, VrlEnvironment};

    use super::*;

    const PORTS: [&str; 2] = ["0.0.0.0:9000", "0.0.0.0:9001"];

    /// Returns a pipeline of aggregators that listens on two ports.
    fn pipeline() -> Value {
        let sources = PORTS.map(|address| {
            let source = json!({"type": "socket", "mode": "tcp", "address": address});
            (address.replace(['.', ':'], "-"), source)
        });
        let inputs: Vec<_> = sources.iter().map(|(name, _)| name.clone()).collect();
        let sources: Map<_, _> = sources.into_iter().collect();
        json!({
            "apiVersion": "observability.kaasops.io/v1alpha1",
            "kind": "VectorPipeline",
            "metadata": {"name": "a", "namespace": "team"},
            "spec": {
                "sources": sources,
                "sinks": {"out": {"type": "blackhole", "inputs": inputs}},
            },
        })
    }

    /// Returns what it shares with another pipeline that uses the first of its ports.
    fn others() -> Value {
        let workload = "VectorAggregator team/all";
        json!({"run_by": [workload], "taken": [{
            "at": "spec.sources[0-0-0-0-9000].address", "endpoint": PORTS[0], "address": "tcp 0.0.0.0:9000",
            "by": "another", "workload": workload,
        }]})
    }

    fn broken(rule: &str, error: FieldError) -> Violation {
        Violation {
            rule: rule.to_owned(),
            layer: Layer::Rust,
            at: FieldPath::root(),
            error,
            inputs: None,
            is_of_related: false,
        }
    }

    fn status(request: &ValidationRequest<'_>, result: &ValidationResult) -> Map<String, Value> {
        reconciler(&context()).on_validated(request, result)
    }

    fn context() -> Arc<VectorContext> {
        let environment = VrlEnvironment::shared(InProcessCompiler::boxed);
        Arc::new(VectorContext::new(environment, Catalogues::default()))
    }

    fn reconciler(context: &Arc<VectorContext>) -> ValidateOnlyReconciler<VectorPipeline> {
        ValidateOnlyReconciler::pipelines(&[], Arc::clone(context))
    }

    fn rules() -> Ruleset<VectorPipeline> {
        Ruleset::compile().expect("it compiles")
    }

    fn check(request: &ValidationRequest<'_>) -> ValidationResult {
        rules().validate(request)
    }

    /// Returns a policy under which an address conflict is only a warning.
    fn warning() -> Policy {
        let file = json!({"rules": {"VectorPipeline": {"listen-address-conflict": "warn"}}});
        let validators = ValidatorRegistry::default().register(Arc::new(rules()));
        Policy::read(&file, &validators).expect("a policy")
    }

    #[test]
    fn a_pipeline_that_could_not_be_validated_keeps_its_role_and_addresses() {
        let object = pipeline();
        let request = ValidationRequest::create(&object);
        let result = check(&request);
        let reported = |result: &ValidationResult| {
            let status = status(&request, result);
            ["role", "addresses", "runBy"].map(|field| status.contains_key(field))
        };
        assert_eq!(reported(&result), [true; 3], "{}", result.message());
        let too_much = FieldError::internal(FieldPath::root(), "too much");
        let violation = broken("vrl-compile", too_much);
        let mut failed = result.clone();
        failed.errors.push(violation.clone());
        assert_eq!(reported(&failed), [false; 3]);
        // A pipeline for which this is only a warning runs.
        let mut warned = result;
        warned.warnings.push(violation);
        assert_eq!(reported(&warned), [true; 3]);
        let status = status(&request, &warned);
        assert_eq!(
            status["LastAppliedPipelineHash"],
            Value::Null,
            "it is validated again"
        );
    }

    #[test]
    fn the_status_lists_warnings_and_the_version_of_a_workload_is_one() {
        let object = pipeline();
        let others = json!({
            "run_by": ["VectorAggregator team/all"], "taken": [],
            "releases": [{"workload": "VectorAggregator team/all", "release": {"named": "0.48"}}],
        });
        let request = ValidationRequest::create(&object).with_related(&others);
        let result = check(&request);
        let reported = status(&request, &result);
        assert_eq!(reported["configCheckResult"], true);
        let warning = reported["warnings"][0].as_str().expect("a warning");
        assert!(
            warning.contains("Vector 0.48") && warning.contains("Vector 0.57"),
            "{warning}"
        );
        let request = ValidationRequest::create(&object);
        assert_eq!(status(&request, &check(&request))["warnings"], Value::Null);
        // More warnings than a status can have.
        let mut many = result;
        let long = FieldError::invalid_hidden(FieldPath::root(), "é".repeat(LONGEST_WARNING));
        many.warnings = vec![broken("unused-output", long); MAX_WARNINGS + 1];
        let warnings = warnings(&many);
        let warnings = warnings.as_array().expect("warnings");
        assert_eq!(warnings.len(), MAX_WARNINGS);
        assert!(
            warnings
                .iter()
                .all(|it| it.as_str().is_some_and(|it| it.len() <= LONGEST_WARNING))
        );
    }

    #[test]
    fn the_status_lists_addresses_according_to_the_validation_result() {
        let (object, others) = (pipeline(), others());
        let alone = json!({"run_by": ["VectorAggregator team/all"], "taken": []});
        let warning = warning();
        let all = json!(["tcp 0.0.0.0:9000", "tcp 0.0.0.0:9001"]);
        let workload = json!(["VectorAggregator team/all"]);
        let request = |others| ValidationRequest::create(&object).with_related(others);
        let reported = |request: &ValidationRequest<'_>, result: &ValidationResult| {
            let status = status(request, result);
            [status["addresses"].clone(), status["runBy"].clone()]
        };
        let runs = request(&alone);
        assert_eq!(reported(&runs, &check(&runs)), [all, workload.clone()]);
        // A waiting pipeline lists the addresses that it waits for and has no workload.
        let waits = request(&others);
        let mut result = check(&waits);
        let first = json!(["tcp 0.0.0.0:9000"]);
        assert_eq!(reported(&waits, &result), [first, Value::Null]);
        // One whose errors are not all known may not be able to run.
        result.has_more_errors = true;
        assert_eq!(reported(&waits, &result), [Value::Null, Value::Null]);
        result.has_more_errors = false;
        // A pipeline that cannot run for another reason waits for nothing.
        let other = FieldError::forbidden(FieldPath::root(), "for another reason");
        result.errors.push(broken("mixed-roles", other));
        assert_eq!(reported(&waits, &result), [Value::Null, Value::Null]);
        // A pipeline with only a warning runs, with the remaining addresses.
        let warned = waits.with_policy(&warning);
        let second = json!(["tcp 0.0.0.0:9001"]);
        assert_eq!(reported(&warned, &check(&warned)), [second, workload]);
    }

    #[test]
    fn a_changed_policy_and_changed_conflicts_cause_another_validation() {
        let mut object = pipeline();
        let (others, none) = (others(), Policy::default());
        let before = object.clone();
        let request = ValidationRequest::create(&before)
            .with_policy(&none)
            .with_related(&others);
        let status = status(&request, &check(&request));
        object["status"] = status.into();
        let reconciler = reconciler(&context());
        let stored = ValidationRequest::create(&object)
            .with_policy(&none)
            .with_related(&others);
        assert!(reconciler.is_up_to_date(&stored));
        assert!(!reconciler.is_up_to_date(&stored.with_policy(&warning())));
        assert!(!reconciler.is_up_to_date(&stored.with_related(&Value::Null)));
    }

    /// Returns the shipped catalogue as one of another version.
    fn catalogue(version: &str) -> Arc<Catalogue> {
        let shipped = include_str!("../../config/catalogue/0.57.json");
        let version = format!(r#""version":"{version}""#);
        let text = shipped.replacen(r#""version":"0.57""#, &version, 1);
        Catalogue::load(&text).expect("a catalogue")
    }

    #[test]
    fn a_catalogue_concerns_the_pipelines_that_its_version_runs() {
        let context = context();
        let reconciler = reconciler(&context);
        let related = |version: &str| {
            json!({
                "run_by": [], "taken": [], CATALOGUES: context.catalogues().digest(),
                "releases": [{"workload": "Vector n/a", "release": {"named": version}}],
            })
        };
        let validated = |version: &str| {
            let mut object = pipeline();
            let others = related(version);
            let before = object.clone();
            let request = ValidationRequest::create(&before).with_related(&others);
            object["status"] = reconciler.on_validated(&request, &check(&request)).into();
            object
        };
        let is_up_to_date = |object: &Value, version: &str| {
            let others = related(version);
            reconciler.is_up_to_date(&ValidationRequest::create(object).with_related(&others))
        };
        let [old, new] = ["0.48", "0.57"].map(validated);
        assert!(is_up_to_date(&old, "0.48") && is_up_to_date(&new, "0.57"));
        context.set_catalogues(Catalogues::with(&[catalogue("0.30")]));
        assert!(is_up_to_date(&old, "0.48") && is_up_to_date(&new, "0.57"));
        context.set_catalogues(Catalogues::with(&[catalogue("0.48")]));
        assert!(!is_up_to_date(&old, "0.48") && is_up_to_date(&new, "0.57"));
        let old = validated("0.48");
        context.set_catalogues(Catalogues::default());
        assert!(!is_up_to_date(&old, "0.48") && is_up_to_date(&new, "0.57"));
    }

    #[test]
    fn a_pipeline_is_validated_again_if_the_catalogues_change_meanwhile() {
        let context = context();
        let reconciler = reconciler(&context);
        let object = pipeline();
        let others = json!({CATALOGUES: context.catalogues().digest()});
        let request = ValidationRequest::create(&object).with_related(&others);
        let result = check(&request);
        let hash = |reconciler: &ValidateOnlyReconciler<VectorPipeline>| {
            reconciler.on_validated(&request, &result)["LastAppliedPipelineHash"].clone()
        };
        assert!(hash(&reconciler).is_i64());
        context.set_catalogues(Catalogues::with(&[catalogue("0.48")]));
        assert_eq!(hash(&reconciler), Value::Null);
    }
}
