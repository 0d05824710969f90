//! Rule for component names, which are also names of directories in which Vector stores data.

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, Rule, RuleContext, Severity};
use lockstep_vector_config::{Component, ComponentKind, components};
use serde_json::Value;

use crate::component_namespace::{ComponentNamespace, DIVIDER};
use crate::rules::cached_validation::CachedValidation;
use crate::types::pipeline::Pipeline;

/// Maximum length of a file name, in bytes.
const LONGEST: usize = 255;

/// Sources that store their read position.
const READ_ON: [&str; 4] = ["file", "journald", "kubernetes_logs", "windows_event_log"];

pub(crate) fn rule<K: Pipeline>() -> Rule<K> {
    Rule {
        id: "component-name",
        description: "With the prefix of the pipeline, every component name is valid in Vector and cannot be the name of a component of another pipeline; if Vector stores data in a directory of this name, the name has at most 255 bytes and no `/`.",
        severity: Severity::Error,
        reference: "https://vector.dev/docs/reference/configuration/global-options/#data_dir",
        fields: &[
            "metadata.name",
            "spec.sources",
            "spec.transforms",
            "spec.sinks",
            "spec.skipPrefix",
        ],
        validate: names_usable,
    }
}

const DASHES: &str = "with `settings.vector.forbidDashesInNames` in the policy, the parts of a component name are joined by `-` and must not contain `-` themselves";

fn names_usable<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let (pipeline, validated) = (context.object, CachedValidation::of(context));
    let has_dashes = |name: &str| validated.has_names_joined_by_dashes && name.contains('-');
    let name = pipeline.name();
    let prefix =
        (!pipeline.spec().skip_prefix).then(|| ComponentNamespace::of(pipeline.namespace(), name));
    if prefix.is_some() && name.contains('.') {
        let detail = "component names contain the name of the pipeline, and Vector allows no dots in them; write `-` instead of `.`";
        diagnostics.invalid("metadata.name", name, detail);
    }
    if prefix.is_some() && has_dashes(name) {
        diagnostics.invalid("metadata.name", name, DASHES);
    }
    for component in validated
        .config
        .as_object()
        .into_iter()
        .flat_map(components)
    {
        let id = component.id;
        let dashes = has_dashes(id).then(|| DASHES.to_owned());
        let details = [
            dashes,
            of_another(id, prefix.as_ref()),
            persistent_state(&component, prefix.as_ref()),
        ];
        for detail in details.into_iter().flatten() {
            let path = FieldPath::new(format!("spec.{}", component.path()));
            diagnostics.push(FieldError::invalid(path, id, detail));
        }
    }
}

/// Returns an error if a name without a prefix could be the name of a component of another pipeline.
fn of_another(id: &str, prefix: Option<&ComponentNamespace>) -> Option<String> {
    (prefix.is_none() && id.contains(DIVIDER)).then(|| {
        format!("without the prefix of the pipeline, this could be the name of a component of another pipeline, because those names contain `{DIVIDER}`; choose a name without `{DIVIDER}`")
    })
}

/// Returns an error if Vector cannot create the directory in which it stores data of a component.
fn persistent_state(
    component: &Component<'_>,
    prefix: Option<&ComponentNamespace>,
) -> Option<String> {
    let what = what_is_kept(component)?;
    let id = component.id;
    let called = prefix.map_or_else(|| id.to_owned(), |prefix| prefix.prepend_to(id));
    if called.len() > LONGEST {
        return Some(format!(
            "with the prefix of the pipeline, the name has {} bytes, but Vector stores {what} in a directory of this name, which may have at most {LONGEST} bytes; shorten the name",
            called.len()
        ));
    }
    let is_directory = !called.is_empty() && !called.contains(['/', '\0']);
    (!is_directory).then(|| {
        format!("Vector stores {what} in a directory of this name: the name must not be empty and must not contain `/` or NUL")
    })
}

/// Returns a description of the data that Vector stores in a directory with the name of the component.
fn what_is_kept(component: &Component<'_>) -> Option<&'static str> {
    match component.family {
        ComponentKind::Source => {
            let reads_on = component.kind().is_some_and(|kind| READ_ON.contains(&kind));
            reads_on.then_some("its read position")
        }
        ComponentKind::Transform => None,
        ComponentKind::Sink => {
            let has_disk_buffer = component.option("buffer").is_some_and(is_on_disk);
            has_disk_buffer.then_some("its buffer")
        }
    }
}

fn is_on_disk(buffer: &Value) -> bool {
    match buffer {
        Value::Array(stages) => stages.iter().any(is_on_disk),
        stage => stage["type"] == "disk",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lockstep_shared_validation::{
        Policy, Ruleset, ValidatedResource, ValidationRequest, Validator, ValidatorRegistry,
    };
    use serde_json::{Value, json};

    use crate::types::pipeline::{ClusterVectorPipeline, VectorPipeline};

    /// Returns the paths of the names that are invalid if names are joined by dashes.
    fn denied<K: ValidatedResource>(pipeline: &Value) -> Vec<String> {
        let ruleset = Arc::new(Ruleset::<K>::compile().expect("it compiles"));
        let file = json!({"settings": {"vector": {"forbidDashesInNames": true}}});
        let validators = ValidatorRegistry::default().register(Arc::<Ruleset<K>>::clone(&ruleset));
        let policy = Policy::read(&file, &validators).expect("a policy");
        let request = ValidationRequest::create(pipeline);
        let without = ruleset.validate(&request);
        assert!(without.is_valid(), "{}", without.message());
        let errors = ruleset.validate(&request.with_policy(&policy)).errors;
        let errors = errors
            .into_iter()
            .inspect(|it| assert_eq!(it.rule, "component-name"));
        errors.map(|it| it.error.path.as_str().to_owned()).collect()
    }

    fn pipeline(kind: &str, namespace: Option<&str>, name: &str, id: &str) -> Value {
        json!({
            "apiVersion": "observability.kaasops.io/v1alpha1",
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "sources": {id: {"type": "kubernetes_logs"}},
                "sinks": {"out": {"type": "blackhole", "inputs": [id]}},
            },
        })
    }

    #[test]
    fn if_names_are_joined_by_dashes_only_the_namespace_may_contain_dashes() {
        let of_tenants =
            |name, id| denied::<VectorPipeline>(&pipeline("VectorPipeline", Some("a-b"), name, id));
        assert!(of_tenants("c", "in").is_empty());
        assert_eq!(of_tenants("c", "in-d"), ["spec.sources[in-d]"]);
        assert_eq!(of_tenants("c-d", "in"), ["metadata.name"]);
        let kind = "ClusterVectorPipeline";
        let mut administrators = pipeline(kind, None, "a-b", "in");
        let denied = denied::<ClusterVectorPipeline>;
        assert_eq!(denied(&administrators), ["metadata.name"]);
        administrators["spec"]["skipPrefix"] = true.into();
        assert!(denied(&administrators).is_empty());
        let mut administrators = pipeline(kind, None, "c", "a-b-c-in");
        administrators["spec"]["skipPrefix"] = true.into();
        assert_eq!(denied(&administrators), ["spec.sources[a-b-c-in]"]);
    }
}
