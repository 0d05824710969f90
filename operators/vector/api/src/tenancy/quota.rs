//! Quotas: what the pipelines of a namespace may take of one workload, which they share with those of other namespaces.

use std::io::{self, Write};

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, RuleContext};
use lockstep_vector_config::usage::{Allocation, Resource, Usage, allocations};
use lockstep_vector_config::{Component, components};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::rules::cached_validation::CachedValidation;
use crate::tenancy::policy;
use crate::types::pipeline::Pipeline;

/// Maxima of what the pipelines of a namespace take together of one workload. None: there is no maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Quota {
    /// Number of pipelines.
    pub pipelines: Option<u64>,
    /// Number of components.
    pub components: Option<u64>,
    /// Bytes of the configuration, as JSON.
    pub configuration_bytes: Option<u64>,
    /// Bytes of the values of Secrets.
    pub secret_bytes: Option<u64>,
    /// Bytes of memory that buffers, batches and caches may take in each Pod.
    pub memory_bytes: Option<u64>,
    /// Bytes of disk buffers in each Pod.
    pub disk_bytes: Option<u64>,
    /// Connections in each Pod, as far as options limit them.
    pub connections: Option<u64>,
}

impl Quota {
    /// Maxima that suit an agent with 1 GiB of memory and tens of tenants.
    pub const DEFAULT: Self = Self {
        pipelines: Some(100),
        components: Some(1_000),
        configuration_bytes: Some(1 << 20),
        secret_bytes: Some(128 << 10),
        memory_bytes: Some(256 << 20),
        disk_bytes: Some(8 << 30),
        connections: Some(4_096),
    };

    /// Names of the maxima in the policy.
    pub(crate) const NAMES: [&str; 7] = [
        "components",
        "configurationBytes",
        "connections",
        "diskBytes",
        "memoryBytes",
        "pipelines",
        "secretBytes",
    ];

    /// Reads the quota of a namespace. `settings` is the section of the policy. With the preset for kaasops, there are only
    /// those maxima that the policy names: what ran there runs on.
    #[must_use]
    pub fn of(settings: Option<&Value>, namespace: &str) -> Self {
        let default = if policy::tenants_replace_metrics(settings) {
            Self::default()
        } else {
            Self::DEFAULT
        };
        Self::named(settings, namespace).or(default)
    }

    /// Reads the quota of a namespace to which each pipeline is compared. The preset makes the rule warn.
    fn of_rule(settings: Option<&Value>, namespace: &str) -> Self {
        Self::named(settings, namespace).or(Self::DEFAULT)
    }

    /// Reads the maxima that the policy names for a namespace. It reads no more of the section: each review needs them.
    fn named(settings: Option<&Value>, namespace: &str) -> Self {
        let read = |section: Option<&Value>| {
            let quota = section.and_then(|section| section.get("quota"));
            let quota = quota.and_then(|quota| Self::deserialize(quota).ok());
            quota.unwrap_or_default()
        };
        read(policy::of_namespace(settings, namespace)).or(read(settings))
    }

    /// Returns these maxima, and others where these are missing.
    pub(crate) fn or(self, others: Self) -> Self {
        Self {
            pipelines: self.pipelines.or(others.pipelines),
            components: self.components.or(others.components),
            configuration_bytes: self.configuration_bytes.or(others.configuration_bytes),
            secret_bytes: self.secret_bytes.or(others.secret_bytes),
            memory_bytes: self.memory_bytes.or(others.memory_bytes),
            disk_bytes: self.disk_bytes.or(others.disk_bytes),
            connections: self.connections.or(others.connections),
        }
    }
}

/// Rule that no pipeline alone exceeds the quota of its namespace: it could never run.
pub(crate) fn validate<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let namespace = context.object.namespace().unwrap_or_default();
    let quota = Quota::of_rule(context.settings, namespace);
    let validated = CachedValidation::of(context);
    let Some(config) = validated.config.as_object() else {
        return;
    };
    let usage = Usage::of(components(config));
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
        .filter(|it| it.resource == resource)
        .max_by_key(|it| it.amount);
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

/// Returns the bytes of components as JSON.
#[must_use]
pub fn bytes<'a>(components: impl Iterator<Item = Component<'a>>) -> u64 {
    let mut count = Count(0);
    for component in components {
        // Quotes, a colon and a comma.
        count.0 += component.id.len() + 4;
        // Counting does not fail.
        drop(serde_json::to_writer(&mut count, component.value));
    }
    u64::try_from(count.0).unwrap_or(u64::MAX)
}

/// Writer that only counts the bytes.
struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
        let of = |settings: &Value| Quota::of(Some(settings), "a");
        assert_eq!(Quota::of(None, "a"), Quota::DEFAULT);
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
            let found = found.into_iter().filter(|it| it.rule == "tenant-quota");
            found.map(|it| it.error.to_string()).collect()
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
