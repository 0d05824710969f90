//! Names that Vector can use: of components, and of the directories in which they keep something.

use serde_json::Value;
use shared_validation::{Diagnostics, FieldError, FieldPath, Rule, RuleContext, Severity};

use crate::called::{ComponentNamespace, DIVIDER};
use crate::component::{Component, ComponentKind, components};
use crate::judged::CachedValidation;
use crate::pipeline::Pipeline;

/// The longest name that a file has, in bytes.
const LONGEST: usize = 255;

/// Sources that keep how far they have read.
const READ_ON: [&str; 4] = ["file", "journald", "kubernetes_logs", "windows_event_log"];

pub(crate) fn rule<K: Pipeline>() -> Rule<K> {
    Rule {
        id: "names-usable",
        description: "Every component has a name that Vector can use and that no other pipeline's comes to, once the pipeline's stands before it; where Vector keeps something in a directory of that name, it has 255 bytes at most and no `/`.",
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

const DASHES: &str = "`settings.vector.namesJoinedByDashes` of the policy has names divided by nothing else than `-`, so that there must be none in their parts";

fn names_usable<K: Pipeline>(subject: &RuleContext<'_, K>, findings: &mut Diagnostics) {
    let (pipeline, judged) = (subject.object, CachedValidation::of(subject));
    let has_dashes = |name: &str| judged.has_names_joined_by_dashes && name.contains('-');
    let name = pipeline.name();
    let prefix =
        (!pipeline.spec().skip_prefix).then(|| ComponentNamespace::of(pipeline.namespace(), name));
    if prefix.is_some() && name.contains('.') {
        let detail = "the names of the components have it in them, and Vector has no dots in these; write `-` for them";
        findings.invalid("metadata.name", name, detail);
    }
    if prefix.is_some() && has_dashes(name) {
        findings.invalid("metadata.name", name, DASHES);
    }
    for component in judged.config.as_object().into_iter().flat_map(components) {
        let id = component.id;
        let dashes = has_dashes(id).then(|| DASHES.to_owned());
        let details = [
            dashes,
            of_another(id, prefix.as_ref()),
            persistent_state(&component, prefix.as_ref()),
        ];
        for detail in details.into_iter().flatten() {
            let path = FieldPath::new(format!("spec.{}", component.path()));
            findings.push(FieldError::invalid(path, id, detail));
        }
    }
}

/// Whether a name without a prefix may be that of another pipeline's component.
fn of_another(id: &str, prefix: Option<&ComponentNamespace>) -> Option<String> {
    (prefix.is_none() && id.contains(DIVIDER)).then(|| {
        format!("without the pipeline's before it, it could be another pipeline's, which have `{DIVIDER}` in them; leave that out")
    })
}

/// Whether what Vector keeps of a component cannot be kept.
fn persistent_state(
    component: &Component<'_>,
    prefix: Option<&ComponentNamespace>,
) -> Option<String> {
    let what = what_is_kept(component)?;
    let id = component.id;
    let called = prefix.map_or_else(|| id.to_owned(), |prefix| prefix.prepend_to(id));
    if called.len() > LONGEST {
        return Some(format!(
            "with the pipeline's before it, the name has {} bytes, and the directory of that name where Vector keeps {what} at most {LONGEST}; shorten it",
            called.len()
        ));
    }
    let is_directory = !called.is_empty() && !called.contains(['/', '\0']);
    (!is_directory).then(|| {
        format!("Vector keeps {what} in a directory of that name: it must not be empty, and have no `/` and no NUL")
    })
}

/// What Vector keeps of a component in a directory that has its name.
fn what_is_kept(component: &Component<'_>) -> Option<&'static str> {
    match component.family {
        ComponentKind::Source => {
            let reads_on = component.kind().is_some_and(|kind| READ_ON.contains(&kind));
            reads_on.then_some("how far it has read")
        }
        ComponentKind::Transform => None,
        ComponentKind::Sink => {
            let is_kept = component.option("buffer").is_some_and(is_on_disk);
            is_kept.then_some("its buffer")
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

    use serde_json::{Value, json};
    use shared_validation::{
        Policy, Ruleset, ValidatedResource, ValidationRequest, Validator, ValidatorRegistry,
    };

    use crate::pipeline::{ClusterVectorPipeline, VectorPipeline};

    /// Which names of a pipeline are refused where names are joined by dashes.
    fn refused<K: ValidatedResource>(pipeline: &Value) -> Vec<String> {
        let ruleset = Arc::new(Ruleset::<K>::compile().expect("it compiles"));
        let file = json!({"settings": {"vector": {"namesJoinedByDashes": true}}});
        let rulesets = ValidatorRegistry::default().register(Arc::<Ruleset<K>>::clone(&ruleset));
        let policy = Policy::read(&file, &rulesets).expect("a policy");
        let candidate = ValidationRequest::create(pipeline);
        let without = ruleset.validate(&candidate);
        assert!(without.is_valid(), "{}", without.message());
        let errors = ruleset.validate(&candidate.with_policy(&policy)).errors;
        let errors = errors
            .into_iter()
            .inspect(|it| assert_eq!(it.rule, "names-usable"));
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
    fn where_names_are_joined_by_dashes_none_of_their_parts_has_one_but_the_namespace() {
        let of_tenants = |name, id| {
            refused::<VectorPipeline>(&pipeline("VectorPipeline", Some("a-b"), name, id))
        };
        assert!(of_tenants("c", "in").is_empty());
        assert_eq!(of_tenants("c", "in-d"), ["spec.sources[in-d]"]);
        assert_eq!(of_tenants("c-d", "in"), ["metadata.name"]);
        let kind = "ClusterVectorPipeline";
        let mut administrators = pipeline(kind, None, "a-b", "in");
        let refused = refused::<ClusterVectorPipeline>;
        assert_eq!(refused(&administrators), ["metadata.name"]);
        administrators["spec"]["skipPrefix"] = true.into();
        assert!(refused(&administrators).is_empty());
        let mut administrators = pipeline(kind, None, "c", "a-b-c-in");
        administrators["spec"]["skipPrefix"] = true.into();
        assert_eq!(refused(&administrators), ["spec.sources[a-b-c-in]"]);
    }
}
