//! Rule that no pipeline alone exceeds the quota of its namespace.

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, RuleContext};
use lockstep_vector_config::components;
use lockstep_vector_config::usage::{Allocation, Resource, Usage, allocations};
use serde_json::{Map, Value};

use crate::rules::cached_validation::CachedValidation;
use crate::tenancy::quota::Quota;
use crate::types::pipeline::Pipeline;

/// Rule that no pipeline alone exceeds the quota of its namespace: it could never run.
pub(crate) fn validate<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let namespace = context.object.namespace().unwrap_or_default();
    let quota = Quota::for_rule(context.settings, namespace);
    let validated = CachedValidation::of(context);
    let Some(config) = validated.config.as_object() else {
        return;
    };
    let usage = Usage::total(components(config));
    for (maximum, used, what) in [
        (quota.components, usage.components, "components"),
        (
            quota.configuration_bytes,
            usage.text_bytes,
            "bytes of configuration",
        ),
    ] {
        if let Some(maximum) = maximum.filter(|maximum| used > *maximum) {
            let detail = format!(
                "has {used} {what}, and the pipelines of a namespace may have {maximum} together; divide it among workloads, or ask an administrator, who can change the quota in the policy"
            );
            diagnostics.push(FieldError::invalid_hidden(FieldPath::new("spec"), detail));
        }
    }
    for (resource, maximum, used) in [
        (Resource::Memory, quota.memory_bytes, usage.memory_bytes),
        (Resource::Disk, quota.disk_bytes, usage.disk_bytes),
        (Resource::Connections, quota.connections, usage.connections),
    ] {
        if let Some(maximum) = maximum.filter(|maximum| used > *maximum) {
            report(config, resource, used, maximum, diagnostics);
        }
    }
}

/// Reports the option that takes most of a resource.
fn report(
    config: &Map<String, Value>,
    resource: Resource,
    used: u64,
    maximum: u64,
    diagnostics: &mut Diagnostics,
) {
    let all = components(config).flat_map(|component| allocations(&component));
    let largest = all
        .filter(|allocation| allocation.resource == resource)
        .max_by_key(|allocation| allocation.amount);
    let Some(Allocation {
        path,
        value,
        amount,
        ..
    }) = largest
    else {
        return;
    };
    let unit = match resource {
        Resource::Memory => "bytes of memory",
        Resource::Disk => "bytes of disk",
        Resource::Connections => "connections",
    };
    let path = FieldPath::new(format!("spec.{}", path.as_str()));
    let detail = format!(
        "is up to {amount} {unit} in each Pod, and the pipeline takes {used}; the pipelines of a namespace may take {maximum} together. Choose a smaller value, or ask an administrator, who can change the quota in the policy"
    );
    diagnostics.push(FieldError::invalid(path, value, detail));
}

#[cfg(test)]
mod tests {
    use lockstep_shared_validation::{
        Policy, Ruleset, ValidationRequest, Validator, ValidatorRegistry,
    };
    use serde_json::json;

    use super::*;
    use crate::types::pipeline::VectorPipeline;

    #[test]
    fn the_preset_and_namespaces_change_the_quota() {
        let of = |settings: &Value| Quota::read(Some(settings), "a");
        assert_eq!(Quota::read(None, "a"), Quota::DEFAULT);
        assert_eq!(of(&json!({"preset": "kaasops"})), Quota::default());
        let all = json!({"pipelines": 1, "components": 2});
        let own = json!({"a": {"quota": {"pipelines": 3}}});
        let expected = Quota {
            pipelines: Some(3),
            components: Some(2),
            ..Quota::DEFAULT
        };
        assert_eq!(of(&json!({"quota": all, "namespaces": own})), expected);
        let expected = Quota {
            pipelines: Some(1),
            components: Some(2),
            ..Quota::default()
        };
        let of_kaasops = json!({"preset": "kaasops", "quota": all});
        assert_eq!(of(&of_kaasops), expected);
    }

    /// Returns the errors and the warnings about a pipeline with this buffer.
    fn messages(buffer: &Value, settings: &Value) -> [Vec<String>; 2] {
        let ruleset = Ruleset::<VectorPipeline>::compile().expect("it compiles");
        let validators = ValidatorRegistry::default();
        let validators = validators.register(std::sync::Arc::new(
            Ruleset::<VectorPipeline>::compile().expect("it compiles"),
        ));
        let validators = validators.register(std::sync::Arc::new(
            Ruleset::<crate::types::pipeline::ClusterVectorPipeline>::compile()
                .expect("it compiles"),
        ));
        let policy = Policy::read(&json!({"settings": {"vector": settings}}), &validators);
        let policy = policy.expect("a policy");
        let pipeline = json!({
            "apiVersion": "observability.kaasops.io/v1alpha1", "kind": "VectorPipeline",
            "metadata": {"name": "p", "namespace": "a"},
            "spec": {
                "sources": {"in": {"type": "kubernetes_logs"}},
                "sinks": {"out": {"type": "blackhole", "inputs": ["in"], "buffer": buffer}},
            },
        });
        let request = ValidationRequest::create(&pipeline).with_policy(&policy);
        let result = ruleset.validate(&request);
        [result.errors, result.warnings].map(|found| {
            let found = found
                .into_iter()
                .filter(|violation| violation.rule == "tenant-quota");
            found.map(|violation| violation.error.to_string()).collect()
        })
    }

    #[test]
    fn a_pipeline_that_could_never_run_is_denied() {
        let memory = json!({"type": "memory", "max_events": 1_000_000_000});
        let disk = json!({"type": "disk", "max_size": 1_000_000_000_000_000_u64});
        for (buffer, option) in [(&memory, "max_events"), (&disk, "max_size")] {
            let [errors, warnings] = messages(buffer, &json!({}));
            assert_eq!(errors.len(), 1);
            let path = format!("spec.sinks[out].buffer.{option}");
            assert!(errors[0].starts_with(&path), "{errors:?}");
            assert_eq!(warnings, [""; 0]);
            let [errors, warnings] = messages(buffer, &json!({"preset": "kaasops"}));
            assert_eq!((errors.len(), warnings.len()), (0, 1));
            let larger = json!({"quota": {"memoryBytes": u64::MAX, "diskBytes": u64::MAX}});
            assert_eq!(messages(buffer, &larger), [[""; 0], [""; 0]]);
        }
        let usual = json!([{"max_events": 10_000, "when_full": "overflow"}, {"type": "disk", "max_size": 268_435_488}]);
        assert_eq!(messages(&usual, &json!({})), [[""; 0], [""; 0]]);
    }
}
