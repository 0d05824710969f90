//! Rules for the pipelines of tenants. A pipeline shares a process with the pipelines of others, and this process has
//! more permissions than the author of the pipeline.

mod components;
mod connections;
mod identity;
mod interpolation;
pub(crate) mod policy;
pub mod quota;
mod quota_rule;

use std::collections::BTreeSet;

use lockstep_shared_validation::{
    Diagnostics, FieldError, FieldPath, LazyPath, Rule, RuleContext, Severity,
};
use lockstep_vector_config::interpolation::SECRET;
use lockstep_vector_config::option_path::lazily_below;
use lockstep_vector_config::{
    Check, ComponentKind, Interpolation, KUBERNETES_EVENTS, confinement, is_pattern,
};
use serde_json::Value;

use crate::rules::cached_validation::{CachedValidation, push_all};
use crate::tenancy::components::each;
use crate::tenancy::policy::TenantPolicy;
use crate::types::pipeline::Pipeline;
use crate::types::workload_role::WorkloadRole;

const OPERATOR: &str = "https://github.com/kaasops/vector-operator/tree/main/docs";
const LABELS: &str =
    "https://kubernetes.io/docs/reference/labels-annotations-taints/#kubernetes-io-metadata-name";
const OWN: &str =
    "Lockstep's own: the process that runs a pipeline has more permissions than its author";
const VARIABLES: &str =
    "https://vector.dev/docs/reference/environment_variables/#environment-variable-interpolation";

const PIPELINE: &[&str] = &["spec.sources", "spec.transforms", "spec.sinks"];

pub(crate) fn rules<K: Pipeline>() -> Vec<Rule<K>> {
    if !K::IS_TENANTS {
        return vec![secret_rule(
            "Every Secret in `spec.secret` has a namespace.",
            administrators_secret,
        )];
    }
    let rule = |id, sentence, source, check| Rule {
        id,
        description: sentence,
        severity: Severity::Error,
        reference: source,
        fields: PIPELINE,
        validate: check,
    };
    vec![
        rule(
            "tenant-options",
            "A VectorPipeline uses no option that the policy denies to tenants.",
            OWN,
            options,
        ),
        rule(
            "tenant-components",
            "A VectorPipeline uses no component type that the policy denies to tenants; on nodes, it reads only the logs of Pods.",
            OPERATOR,
            kinds,
        ),
        rule(
            "tenant-namespace",
            "A VectorPipeline reads only the logs and events of its own namespace.",
            LABELS,
            namespace,
        ),
        rule(
            "tenant-files",
            "A VectorPipeline refers only to those files of the agent that the policy allows.",
            OWN,
            files,
        ),
        rule(
            "tenant-environment",
            "A VectorPipeline refers only to the secrets in its own `spec.secret`, and, if agents replace environment variables, to those that the policy allows.",
            VARIABLES,
            interpolation::validate,
        ),
        rule(
            "tenant-programs",
            "No program of a VectorPipeline contains a reference to a Secret, whose content would become part of the program without being validated.",
            OWN,
            |context, diagnostics| push_all(Check::ProgramSecrets, context, diagnostics),
        ),
        rule(
            "tenant-connections",
            "A VectorPipeline connects only to hosts; its addresses refer to no file and no socket of the agent.",
            OWN,
            connections::validate,
        ),
        rule(
            "tenant-identity",
            "A VectorPipeline does not send the credentials of the agent to other servers than those that they are for.",
            OWN,
            identity::validate,
        ),
        rule(
            "tenant-agent-identity",
            "A component of a VectorPipeline has its own credentials for a cloud, unless the policy permits those of the agent.",
            OWN,
            identity::own_credentials,
        ),
        rule(
            "tenant-inputs",
            "Every input of a VectorPipeline is the name of a component of this pipeline, not a pattern that could match others.",
            OWN,
            inputs,
        ),
        rule(
            "tenant-quota",
            "A VectorPipeline alone does not exceed the quota of its namespace: components, bytes of configuration, memory and disk, connections.",
            OWN,
            quota_rule::validate,
        ),
        Rule {
            id: "tenant-prefix",
            description: "The component names of a VectorPipeline have the prefix of the pipeline, so that they cannot be names of other components.",
            severity: Severity::Error,
            reference: OWN,
            fields: &["spec.skipPrefix"],
            validate: prefix,
        },
        secret_rule(
            "Every Secret in `spec.secret` is in the namespace of the pipeline, and its `namespace` is not set.",
            tenants_secret,
        ),
    ]
}

fn secret_rule<K: Pipeline>(
    sentence: &'static str,
    check: fn(&RuleContext<'_, K>, &mut Diagnostics),
) -> Rule<K> {
    Rule {
        id: "secret-namespace",
        description: sentence,
        severity: Severity::Error,
        reference: OPERATOR,
        fields: &["spec.secret"],
        validate: check,
    }
}

fn kinds<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let sources = context.object.spec().sources.as_ref();
    let role = sources.and_then(WorkloadRole::of);
    each(context, |component, path, policy| {
        let Some(kind) = component.kind() else { return };
        // Beside sources of aggregators, too, a source of agents reads the host of its process.
        let is_agents = component.family == ComponentKind::Source
            && (role == Some(WorkloadRole::Agent) || WorkloadRole::is_only_for_agents(kind));
        let detail = if policy.denied(component.family).contains(kind) {
            format!(
                "{}s of this type are denied for tenants; an administrator can use one in a ClusterVectorPipeline, or allow the type in the policy",
                component.family.noun()
            )
        } else if is_agents && kind != "kubernetes_logs" {
            "on nodes, a VectorPipeline may read only `kubernetes_logs`; sources that read the node itself require a ClusterVectorPipeline".to_owned()
        } else {
            return;
        };
        diagnostics.push(FieldError::invalid(path.child("type"), kind, detail));
    });
}

fn options<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let validation = CachedValidation::of(context);
    each(context, |component, path, policy| {
        if !policy.confines_names_of_labels(component)
            || component.option(confinement::OPT_OUT) != Some(&Value::Bool(true))
        {
            return denied_below(component.value, &path.lazy(), policy, diagnostics);
        }
        let mut options = component.value.clone();
        if let Some(options) = options.as_object_mut() {
            options.remove(confinement::OPT_OUT);
        }
        denied_below(&options, &path.lazy(), policy, diagnostics);
        let errors = confinement::validate_loki_names(validation.newest(), &options, path);
        for error in errors {
            diagnostics.push(error);
        }
    });
}

fn denied_below(
    value: &Value,
    path: &LazyPath<'_>,
    policy: &TenantPolicy,
    diagnostics: &mut Diagnostics,
) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                denied_below(item, &path.index(index), policy, diagnostics);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = lazily_below(path, name);
                if policy.denied_options.contains(name) {
                    let detail = "is denied for tenants; the policy can allow it";
                    diagnostics.push(FieldError::forbidden(path.to_path(), detail));
                } else {
                    denied_below(value, &path, policy, diagnostics);
                }
            }
        }
        _ => {}
    }
}

fn namespace<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    // In an offline check, the namespace may be missing, because `kubectl` may set it later.
    let namespace = context.object.namespace();
    let mut events = 0;
    each(context, |component, path, _| match component.kind() {
        Some("kubernetes_logs") => {
            let option = "extra_namespace_label_selector";
            let selector = component.option(option);
            let name = selector.and_then(Value::as_str);
            let name =
                name.and_then(|selector| selector.strip_prefix("kubernetes.io/metadata.name="));
            let is_one = name.is_some_and(|name| !name.contains([',', ' ', '=', '!']));
            let is_own = selector.is_none_or(|selector| selector == "")
                || is_one && namespace.is_none_or(|own| name == Some(own));
            if let Some(selector) = selector.filter(|_| !is_own) {
                let own = namespace.unwrap_or("<namespace>");
                let detail = format!(
                    "remove it, or set it to `kubernetes.io/metadata.name={own}`: a tenant may read only its own namespace"
                );
                diagnostics.push(FieldError::invalid(
                    path.child(option),
                    selector.clone(),
                    detail,
                ));
            }
            let option = "insert_namespace_fields";
            let fields = component.option(option).filter(|fields| **fields != true);
            if let Some(fields) = fields {
                let detail = "remove it: without the namespace fields, Vector reads the logs of all namespaces";
                diagnostics.push(FieldError::invalid(
                    path.child(option),
                    fields.clone(),
                    detail,
                ));
            }
        }
        Some(KUBERNETES_EVENTS) if component.family == ComponentKind::Source => {
            events += 1;
            if events > 1 {
                let detail = "a pipeline may have only one source of type `kubernetes_events`";
                diagnostics.push(FieldError::invalid(
                    path.child("type"),
                    KUBERNETES_EVENTS,
                    detail,
                ));
            }
        }
        _ => {}
    });
}

fn files<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let validation = CachedValidation::of(context);
    let interpolation = validation.interpolation;
    each(context, |component, path, policy| {
        let kind = component.kind().unwrap_or_default();
        let files: BTreeSet<_> = validation
            .catalogues
            .iter()
            .map(|used| &used.catalogue)
            .filter_map(|catalogue| Some((catalogue, catalogue.entry(component.family, kind)?)))
            .flat_map(|(catalogue, entry)| catalogue.options(entry).files(component.value, path))
            .collect();
        for (path, name) in files {
            // Some options accept the text of a certificate instead of a file name.
            let is_text = name.trim_start().starts_with("-----BEGIN ");
            // The value of a Secret or a variable is unknown and may be any path.
            let has_variable = interpolation == Interpolation::On && name.contains('$');
            let is_known = !name.contains(SECRET) && !has_variable;
            if !is_known || !is_text && !policy.allows_file(name) {
                let allowed = policy.files.join("`, `");
                let detail = format!(
                    "a tenant's pipeline may refer only to these files of the agent: `{allowed}`"
                );
                diagnostics.push(FieldError::invalid(path, name, detail));
            }
        }
    });
}

fn inputs<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    each(context, |component, path, _| {
        for (index, input) in component.inputs().enumerate() {
            if is_pattern(input) {
                let path = path.child("inputs").index(index);
                let detail = "list the components by name: a pattern could match components of other pipelines";
                diagnostics.push(FieldError::invalid(path, input, detail));
            }
        }
    });
}

fn prefix<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    if context.object.spec().skip_prefix {
        let detail = "without the prefix of the pipeline, component names could be those of other tenants; remove this field";
        diagnostics.invalid("spec.skipPrefix", true, detail);
    }
}

fn tenants_secret<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    for (name, secret) in &context.object.spec().secret {
        if let Some(namespace) = secret.namespace() {
            let path = FieldPath::new("spec.secret").key(name).child("namespace");
            let detail = "a VectorPipeline may refer only to Secrets of its own namespace; remove this field";
            diagnostics.push(FieldError::invalid(path, namespace, detail));
        }
    }
}

fn administrators_secret<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    for (name, secret) in &context.object.spec().secret {
        if secret.namespace().is_none() {
            let path = FieldPath::new("spec.secret").key(name).child("namespace");
            let detail =
                "a ClusterVectorPipeline is cluster-scoped: set the namespace of the Secret";
            diagnostics.push(FieldError::required(path, detail));
        }
    }
}
