//! Names that Vector can use: of components, and of the directories in which they keep something.

use serde_json::Value;
use shared_validation::{FieldError, FieldPath, Findings, Rule, Severity, Subject};

use crate::called::Prefix;
use crate::component::{Component, Family, components};
use crate::judged::Judged;
use crate::pipeline::Pipeline;

/// The longest name that a file has, in bytes.
const LONGEST: usize = 255;

/// Sources that keep how far they have read.
const READ_ON: [&str; 4] = ["file", "journald", "kubernetes_logs", "windows_event_log"];

pub(crate) fn rule<K: Pipeline>() -> Rule<K> {
    Rule {
        id: "names-usable",
        sentence: "Every component has a name that Vector can use once the pipeline's stands before it: without a dot and, where Vector keeps something in a directory of that name, with 255 bytes at most and without `/`.",
        severity: Severity::Error,
        source: "https://vector.dev/docs/reference/configuration/global-options/#data_dir",
        reads: &["metadata.name", "spec.sources", "spec.sinks"],
        check: names_usable,
    }
}

fn names_usable<K: Pipeline>(subject: &Subject<'_, K>, findings: &mut Findings) {
    let (pipeline, name) = (subject.object, subject.object.name());
    let is_skipped = pipeline.spec().skip_prefix;
    if name.contains('.') && !is_skipped {
        let detail = "the names of the components begin with it, and Vector has no dots in these; write `-` for them";
        findings.invalid("metadata.name", name, detail);
    }
    let prefix = Prefix::new(pipeline.namespace(), name, is_skipped);
    let config = Judged::of(subject).config.as_object();
    for component in config.into_iter().flat_map(components) {
        let Some(what) = kept(&component) else {
            continue;
        };
        let called = prefix.before(component.id);
        let detail = if called.len() > LONGEST {
            format!(
                "with the pipeline's before it, the name has {} bytes, and the directory of that name where Vector keeps {what} at most {LONGEST}; shorten it",
                called.len()
            )
        } else if called.contains(['/', '\0']) {
            format!(
                "Vector keeps {what} in a directory of that name, which has no `/` and no NUL; leave them out"
            )
        } else {
            continue;
        };
        let path = FieldPath::new(format!("spec.{}", component.path()));
        findings.push(FieldError::invalid(path, component.id, detail));
    }
}

/// What Vector keeps of a component in a directory that has its name.
fn kept(component: &Component<'_>) -> Option<&'static str> {
    match component.family {
        Family::Source => {
            let reads_on = component.kind().is_some_and(|kind| READ_ON.contains(&kind));
            reads_on.then_some("how far it has read")
        }
        Family::Transform => None,
        Family::Sink => component
            .option("buffer")
            .is_some_and(is_on_disk)
            .then_some("its buffer"),
    }
}

fn is_on_disk(buffer: &Value) -> bool {
    match buffer {
        Value::Array(stages) => stages.iter().any(is_on_disk),
        stage => stage["type"] == "disk",
    }
}
