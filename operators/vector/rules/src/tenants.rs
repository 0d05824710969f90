//! What a tenant's pipeline may do: it runs beside those of others, in a process that has more rights than its
//! author.

mod connections;
mod environment;
mod identity;

use serde_json::Value;
use shared_validation::{Diagnostics, FieldError, FieldPath, Rule, RuleContext, Severity};

use crate::catalogue::Catalogue;
use crate::component::{Component, ComponentKind, components, is_pattern};
use crate::judged::CachedValidation;
use crate::option_errors::below;
use crate::pipeline::Pipeline;
use crate::role::{KUBERNETES_EVENTS, RunnerKind};
use crate::tenant_policy::TenantPolicy;

const OPERATOR: &str = "https://github.com/kaasops/vector-operator/tree/main/docs";
const LABELS: &str =
    "https://kubernetes.io/docs/reference/labels-annotations-taints/#kubernetes-io-metadata-name";
const OWN: &str = "Lockstep's own: who runs a pipeline may do more than who writes it";
const VARIABLES: &str =
    "https://vector.dev/docs/reference/environment_variables/#environment-variable-interpolation";

const PIPELINE: &[&str] = &["spec.sources", "spec.transforms", "spec.sinks"];

pub(crate) fn rules<K: Pipeline>() -> Vec<Rule<K>> {
    if !K::IS_TENANTS {
        return vec![secret_rule(
            "A Secret is named with its namespace.",
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
            "A pipeline in a namespace has no option that is not for tenants.",
            OWN,
            options,
        ),
        rule(
            "tenant-components",
            "A pipeline in a namespace has components that are for tenants: on the nodes, it reads the logs of Pods and nothing else.",
            OPERATOR,
            kinds,
        ),
        rule(
            "tenant-namespace",
            "A pipeline in a namespace reads the logs and events of its own namespace only.",
            LABELS,
            namespace,
        ),
        rule(
            "tenant-files",
            "A pipeline in a namespace names no file of the agent's but those that the policy allows.",
            OWN,
            files,
        ),
        rule(
            "tenant-environment",
            "A pipeline in a namespace names no variable of the agent's environment, and no secret but its own.",
            VARIABLES,
            environment::validate,
        ),
        rule(
            "tenant-connections",
            "A pipeline in a namespace connects to hosts, by addresses that name no file and no socket of the agent's.",
            OWN,
            connections::validate,
        ),
        rule(
            "tenant-identity",
            "A pipeline in a namespace has nobody sent the credentials of the agent but whom they are for.",
            OWN,
            identity::validate,
        ),
        rule(
            "tenant-inputs",
            "An input names a component of its own pipeline, without a pattern that others could match.",
            OWN,
            inputs,
        ),
        Rule {
            id: "tenant-prefix",
            description: "The names of a tenant's components carry the pipeline's: they cannot be others'.",
            severity: Severity::Error,
            reference: OWN,
            fields: &["spec.skipPrefix"],
            validate: prefix,
        },
        secret_rule(
            "A Secret is of the pipeline's own namespace, which is not named.",
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

/// Calls with every component of a pipeline, its path and the policy.
fn each<K: Pipeline>(
    subject: &RuleContext<'_, K>,
    mut judge: impl FnMut(&Component<'_>, &FieldPath, &TenantPolicy),
) {
    let judged = CachedValidation::of(subject);
    for component in judged.config.as_object().into_iter().flat_map(components) {
        let path = FieldPath::new(format!("spec.{}", component.path()));
        judge(&component, &path, &judged.policy);
    }
}

fn kinds<K: Pipeline>(subject: &RuleContext<'_, K>, findings: &mut Diagnostics) {
    let sources = subject.object.spec().sources.as_ref();
    let role = sources.and_then(RunnerKind::of);
    each(subject, |component, path, policy| {
        let Some(kind) = component.kind() else { return };
        let is_agents =
            component.family == ComponentKind::Source && role == Some(RunnerKind::Agent);
        let detail = if policy.denied(component.family).contains(kind) {
            format!(
                "{}s of this type are not for tenants; an administrator can have one in a ClusterVectorPipeline, or allow it in the policy",
                component.family.noun()
            )
        } else if is_agents && kind != "kubernetes_logs" {
            "a VectorPipeline reads `kubernetes_logs` on the nodes and nothing else; what reads the node itself is for a ClusterVectorPipeline".to_owned()
        } else {
            return;
        };
        findings.push(FieldError::invalid(path.child("type"), kind, detail));
    });
}

fn options<K: Pipeline>(subject: &RuleContext<'_, K>, findings: &mut Diagnostics) {
    each(subject, |component, path, policy| {
        denied_below(component.value, path, policy, findings);
    });
}

fn denied_below(
    value: &Value,
    path: &FieldPath,
    policy: &TenantPolicy,
    findings: &mut Diagnostics,
) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                denied_below(item, &path.index(index), policy, findings);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = below(path, name);
                if policy.denied_options.contains(name) {
                    let detail = "is not for tenants; the policy can allow it";
                    findings.push(FieldError::forbidden(path, detail));
                } else {
                    denied_below(value, &path, policy, findings);
                }
            }
        }
        _ => {}
    }
}

fn namespace<K: Pipeline>(subject: &RuleContext<'_, K>, findings: &mut Diagnostics) {
    // At a desk, it may be the command's to tell.
    let namespace = subject.object.namespace();
    let mut events = 0;
    each(subject, |component, path, _| match component.kind() {
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
                    "leave it out, or set it to `kubernetes.io/metadata.name={own}`: other namespaces are others'"
                );
                findings.push(FieldError::invalid(
                    path.child(option),
                    selector.clone(),
                    detail,
                ));
            }
            let option = "insert_namespace_fields";
            let fields = component.option(option).filter(|fields| **fields != true);
            if let Some(fields) = fields {
                let detail = "leave it out: without the fields of the namespace, Vector reads the logs of all namespaces";
                findings.push(FieldError::invalid(
                    path.child(option),
                    fields.clone(),
                    detail,
                ));
            }
        }
        Some(KUBERNETES_EVENTS) if component.family == ComponentKind::Source => {
            events += 1;
            if events > 1 {
                let detail = "a pipeline has one source of events";
                findings.push(FieldError::invalid(
                    path.child("type"),
                    KUBERNETES_EVENTS,
                    detail,
                ));
            }
        }
        _ => {}
    });
}

fn files<K: Pipeline>(subject: &RuleContext<'_, K>, findings: &mut Diagnostics) {
    let catalogue = Catalogue::shipped();
    each(subject, |component, path, policy| {
        let kind = component.kind().unwrap_or_default();
        let Some(entry) = catalogue.entry(component.family, kind) else {
            return;
        };
        for (path, name) in catalogue.options(entry).files(component.value, path) {
            // Some take the text of a certificate in place of its file's name.
            let is_text = name.trim_start().starts_with("-----BEGIN ");
            // What a Secret or a variable says is not known here, and may lead anywhere.
            let is_known = !name.contains(SECRET) && !name.contains('$');
            if !is_known || !is_text && !policy.allows_file(name) {
                let allowed = policy.files.join("`, `");
                let detail =
                    format!("a tenant's pipeline names no files of the agent's but `{allowed}`");
                findings.push(FieldError::invalid(path, name, detail));
            }
        }
    });
}

/// What begins the name of a secret.
pub(crate) const SECRET: &str = "SECRET[";

fn inputs<K: Pipeline>(subject: &RuleContext<'_, K>, findings: &mut Diagnostics) {
    each(subject, |component, path, _| {
        for (index, input) in component.inputs().enumerate() {
            if is_pattern(input) {
                let path = path.child("inputs").index(index);
                let detail = "name the components one by one: a pattern would match those of other pipelines";
                findings.push(FieldError::invalid(path, input, detail));
            }
        }
    });
}

fn prefix<K: Pipeline>(subject: &RuleContext<'_, K>, findings: &mut Diagnostics) {
    if subject.object.spec().skip_prefix {
        let detail = "names without the pipeline's could be those of other tenants; leave it out";
        findings.invalid("spec.skipPrefix", true, detail);
    }
}

fn tenants_secret<K: Pipeline>(subject: &RuleContext<'_, K>, findings: &mut Diagnostics) {
    for (name, secret) in &subject.object.spec().secret {
        if let Some(namespace) = secret.namespace() {
            let path = FieldPath::new("spec.secret").key(name).child("namespace");
            let detail = "a VectorPipeline names Secrets of its own namespace; leave this out";
            findings.push(FieldError::invalid(path, namespace, detail));
        }
    }
}

fn administrators_secret<K: Pipeline>(subject: &RuleContext<'_, K>, findings: &mut Diagnostics) {
    for (name, secret) in &subject.object.spec().secret {
        if secret.namespace().is_none() {
            let path = FieldPath::new("spec.secret").key(name).child("namespace");
            let detail = "a ClusterVectorPipeline is in no namespace: name that of the Secret";
            findings.push(FieldError::required(path, detail));
        }
    }
}
