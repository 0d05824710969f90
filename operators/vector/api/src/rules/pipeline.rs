//! Rules of pipelines, for both `VectorPipeline` and `ClusterVectorPipeline`.

use kube::CustomResourceExt;
use lockstep_shared_validation::{
    Diagnostics, FieldError, FieldPath, Rule, RuleContext, Settings, Severity, ValidatedResource,
    with_optional_spec, with_standard_fields,
};
use lockstep_vector_config::{Catalogue, Check, ComponentKind};
use serde_json::{Value, json};

use crate::rules::cached_validation::{CachedValidation, push_all};
use crate::rules::{component_name, label_selector, literal_variables, pipeline_tests};
use crate::tenancy::policy;
use crate::types::crd;
use crate::types::pipeline::{ClusterVectorPipeline, Pipeline, VectorPipeline};
use crate::types::workload_role::WorkloadRole;
use crate::{port_allocation, tenancy};

const CONFIGURATION: &str = "https://vector.dev/docs/reference/configuration/";
const LANGUAGE: &str = "https://vector.dev/docs/reference/vrl/";
const TEMPLATES: &str = "https://vector.dev/docs/reference/configuration/template-syntax/";
const OPERATOR: &str = "https://github.com/kaasops/vector-operator/tree/main/docs";

const PIPELINE: &[&str] = &["spec.sources", "spec.transforms", "spec.sinks"];

/// Implements [`ValidatedResource`] for a pipeline; the CRD is an argument.
macro_rules! pipeline_kind {
    ($kind:ident, $crd:expr) => {
        impl ValidatedResource for $kind {
            const GROUP: &'static str = crd::GROUP;
            const VERSION: &'static str = crd::VERSION;
            const KIND: &'static str = stringify!($kind);

            fn crd() -> Value {
                $crd
            }

            fn example() -> Value {
                example()
            }

            fn is_spec_optional() -> bool {
                true
            }

            fn rules() -> Vec<Rule<Self>> {
                all()
            }

            fn settings() -> Option<Settings> {
                policy::settings()
            }
        }
    };
}

pipeline_kind!(VectorPipeline, {
    let crd = <Self as CustomResourceExt>::crd();
    let crd = serde_json::to_value(crd).expect("a CRD is JSON");
    with_optional_spec(with_standard_fields(crd))
});

// The CRD of `VectorPipeline` with other names and scope.
pipeline_kind!(ClusterVectorPipeline, {
    let mut crd = <VectorPipeline as ValidatedResource>::crd();
    let plural = "clustervectorpipelines";
    crd["metadata"]["name"] = format!("{plural}.{}", crd::GROUP).into();
    crd["spec"]["names"] = json!({
        "kind": Self::KIND, "plural": plural, "singular": "clustervectorpipeline",
        "shortNames": ["cvp"],
    });
    crd["spec"]["scope"] = "Cluster".into();
    crd
});

fn example() -> Value {
    json!({"spec": {
        "sources": {"in": {"type": "kubernetes_logs"}},
        "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
    }})
}

fn all<K: Pipeline>() -> Vec<Rule<K>> {
    let mut rules = of_configuration();
    rules.extend(of_programs());
    rules.extend(of_start());
    rules.extend(of_roles());
    rules.extend(pipeline_tests::rules());
    rules.push(literal_variables::rule(PIPELINE));
    rules.push(component_name::rule());
    rules.push(label_selector::rule());
    rules.extend(port_allocation::rules());
    rules.extend(tenancy::rules());
    rules
}

/// Returns a rule about the components of a pipeline.
fn rule<K: Pipeline>(
    id: &'static str,
    description: &'static str,
    severity: Severity,
    reference: &'static str,
    validate: fn(&RuleContext<'_, K>, &mut Diagnostics),
) -> Rule<K> {
    Rule {
        id,
        description,
        severity,
        reference,
        fields: PIPELINE,
        validate,
    }
}

/// Returns the rules about what Vector reads when it loads a configuration, without its programs.
fn of_configuration<K: Pipeline>() -> Vec<Rule<K>> {
    let (error, warning) = (Severity::Error, Severity::Warning);
    vec![
        rule(
            "unsupported-value",
            "Vector can read every value: no value is null, and every integer fits into 64 bits with a sign.",
            error,
            CONFIGURATION,
            |context, diagnostics| push_all(Check::Readable, context, diagnostics),
        ),
        rule(
            "component-options",
            "Every component has a type that Vector supports and only options that Vector accepts.",
            error,
            CONFIGURATION,
            |context, diagnostics| push_all(Check::Options, context, diagnostics),
        ),
        rule(
            "ignored-options",
            "No component has an option that Vector silently ignores.",
            warning,
            CONFIGURATION,
            |context, diagnostics| push_all(Check::Ignored, context, diagnostics),
        ),
        rule(
            "topology",
            "Events can flow from sources to sinks: every input exists, every component accepts the events of its inputs, and no cycle exists.",
            error,
            CONFIGURATION,
            |context, diagnostics| push_all(Check::Topology, context, diagnostics),
        ),
        rule(
            "empty-pipeline",
            "A pipeline has components.",
            warning,
            OPERATOR,
            empty_pipeline,
        ),
        rule(
            "unused-output",
            "The output of every source and transform is an input of another component.",
            warning,
            CONFIGURATION,
            |context, diagnostics| push_all(Check::Unused, context, diagnostics),
        ),
    ]
}

/// Returns the rules about VRL programs.
fn of_programs<K: Pipeline>() -> Vec<Rule<K>> {
    let (error, warning) = (Severity::Error, Severity::Warning);
    vec![
        rule(
            "vrl-compile",
            "Every VRL program compiles, and every condition returns a boolean and changes no event.",
            error,
            LANGUAGE,
            |context, diagnostics| push_all(Check::Programs, context, diagnostics),
        ),
        rule(
            "vrl-files",
            "Every VRL program is in the pipeline, and not in a file of the agent's host, which cannot be read when the pipeline is validated.",
            error,
            LANGUAGE,
            |context, diagnostics| push_all(Check::ProgramFiles, context, diagnostics),
        ),
        rule(
            "vrl-warnings",
            "Every VRL program compiles without warnings.",
            warning,
            LANGUAGE,
            |context, diagnostics| push_all(Check::ProgramAdvice, context, diagnostics),
        ),
        rule(
            "vrl-size-limit",
            "No VRL program exceeds the length, the nesting depth or the cost that can be validated in one admission request. This is a limit of the validation, not of Vector.",
            error,
            LANGUAGE,
            |context, diagnostics| push_all(Check::Limits, context, diagnostics),
        ),
    ]
}

/// Returns the rules about the start of Vector.
fn of_start<K: Pipeline>() -> Vec<Rule<K>> {
    let (error, warning) = (Severity::Error, Severity::Warning);
    vec![
        rule(
            "template-confinement",
            "A template that selects a destination begins with literal text, so that event fields cannot choose any destination.",
            error,
            TEMPLATES,
            |context, diagnostics| push_all(Check::Confinement, context, diagnostics),
        ),
        rule(
            "component-start",
            "Vector can build every component: required options are set, options do not contradict each other, and URIs, patterns and sizes are valid.",
            error,
            CONFIGURATION,
            |context, diagnostics| push_all(Check::StartUp, context, diagnostics),
        ),
        rule(
            "unmeasured-start",
            "A version of Vector with which the rules about the start were not compared can build every component, as far as rules tell that older versions may not have. Versions 0.57 and 0.58 were compared, and those from 0.40 on were read: what all of them reject denies, as `component-start`.",
            warning,
            CONFIGURATION,
            |context, diagnostics| push_all(Check::UnmeasuredStart, context, diagnostics),
        ),
        rule(
            "component-run",
            "No component makes Vector end after its start, for example when the first event arrives.",
            // The process of a tenant's pipeline runs those of others, too.
            if K::IS_TENANTS { error } else { warning },
            CONFIGURATION,
            |context, diagnostics| push_all(Check::AfterStart, context, diagnostics),
        ),
    ]
}

/// Returns the rules about the workloads that can run a pipeline.
fn of_roles<K: Pipeline>() -> Vec<Rule<K>> {
    let error = Severity::Error;
    vec![
        rule(
            "source-role",
            "Agents or aggregators run sources of every type in the pipeline.",
            error,
            OPERATOR,
            source_roles,
        ),
        rule(
            "mixed-roles",
            "One role can run all sources of a pipeline: either agents, which run on every node, or aggregators, which receive events.",
            error,
            OPERATOR,
            mixed_roles,
        ),
    ]
}

fn empty_pipeline<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    if CachedValidation::of(context).is_empty() {
        let detail =
            "the pipeline has no components, so that no Vector runs it; add `sources` and `sinks`";
        let path = FieldPath::new("spec");
        diagnostics.push(FieldError::invalid_hidden(path, detail));
    }
}

fn source_roles<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let sources = context.object.spec().sources.iter().flatten();
    for (id, kind) in sources.filter_map(|(id, source)| Some((id, source["type"].as_str()?))) {
        let is_known = Catalogue::shipped()
            .entry(ComponentKind::Source, kind)
            .is_some();
        if is_known && !WorkloadRole::can_be_run(kind) {
            let path = format!("spec.sources[{id}].type");
            let detail = "neither agents nor aggregators run sources of this type";
            diagnostics.invalid(&path, kind, detail);
        }
    }
}

fn mixed_roles<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let sources = context.object.spec().sources.as_ref();
    if sources.is_some_and(WorkloadRole::has_both) {
        let detail = "some sources run only on agents and others only on aggregators, so that only aggregators could run the pipeline; split it";
        let path = FieldPath::new("spec.sources");
        diagnostics.push(FieldError::invalid_hidden(path, detail));
    }
}
