//! Components that Vector would call alike, though they are of several pipelines.
//!
//! One would take the place of the other. A name is one pipeline's wherever it is run: what labels select may change,
//! and what is kept on a disk or told in metrics stays.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::claims::Claims;
use super::stored::{Standing, is_paused, role, standing, together};
use crate::called::Prefix;
use crate::component::{Component, components};
use crate::limits::MOST_COMPONENTS;

/// What the components of a pipeline are called, as far as it has these names or asks for them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Names {
    /// In order, each as others find it.
    pub(super) all: Box<[Box<str>]>,
    hold: Hold,
}

/// How a pipeline has its names: who comes first here keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Hold {
    /// It is valid with them.
    Has,
    /// It was changed since it was valid, and had most of them.
    Had,
    #[default]
    Asks,
}

/// A component that is called as one of another pipeline, as the rule is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Namesake {
    /// The field that holds it.
    pub(super) at: String,
    pub(super) id: String,
    pub(super) called: String,
    /// Whose name it is.
    pub(super) by: String,
}

impl Names {
    /// What a pipeline asks for.
    pub(super) fn asked_for(pipeline: &Value) -> Self {
        let all = own(pipeline).map(|(key, ..)| key.into_boxed_str());
        let mut all: Vec<_> = all.collect();
        all.sort_unstable();
        Self {
            all: all.into(),
            hold: hold(pipeline).unwrap_or_default(),
        }
    }

    /// What others are told that it has or asks for: nothing of one that cannot run.
    pub(super) fn told_of(pipeline: &Value) -> Self {
        let hold = hold(pipeline);
        hold.map(|_| Self::asked_for(pipeline)).unwrap_or_default()
    }

    fn has(&self, key: &str) -> bool {
        self.all.binary_search_by(|name| (**name).cmp(key)).is_ok()
    }
}

/// Under which keys a pipeline finds those whose components are called as its own.
pub(super) fn keys(pipeline: &Value) -> impl Iterator<Item = String> {
    own(pipeline).map(|(key, ..)| key)
}

/// The components of a pipeline that others have the names of.
pub(super) fn namesakes(pipeline: &Value, me: &Claims, others: &[Arc<Claims>]) -> Vec<Namesake> {
    let before = others.iter().filter(|other| other.uid != me.uid);
    let mut before: Vec<_> = before.filter(|other| rank(other) < rank(me)).collect();
    before.sort_by(|one, another| rank(one).cmp(&rank(another)));
    let alike = own(pipeline).filter_map(|(key, called, component)| {
        let other = before.iter().find(|other| other.names.has(&key))?;
        Some(Namesake {
            at: format!("spec.{}", component.path()),
            id: component.id.to_owned(),
            called,
            by: other.told_to(me, str::to_owned),
        })
    });
    alike.collect()
}

/// Who comes first: whoever has his names, and then the eldest.
fn rank(claims: &Claims) -> impl Ord {
    (claims.names.hold, claims.seniority())
}

/// How a pipeline has its names, if it does: one that was judged and cannot run has none, nor has one that is left
/// alone and never could.
fn hold(pipeline: &Value) -> Option<Hold> {
    let was_valid = pipeline["status"]["configCheckResult"] == true;
    match standing(pipeline) {
        Standing::Valid => Some(Hold::Has),
        Standing::Changed if was_valid => Some(Hold::Had),
        Standing::Changed | Standing::Unclear => (!is_paused(pipeline)).then_some(Hold::Asks),
        Standing::Invalid => None,
    }
}

/// Every component of a pipeline: the key under which it is found, and what it is called.
fn own(pipeline: &Value) -> impl Iterator<Item = (String, String, Component<'_>)> {
    let prefix = Prefix::of(pipeline);
    let together = role(pipeline).map(|role| together(pipeline, role));
    let spec = pipeline["spec"].as_object().filter(|_| together.is_some());
    let all = spec.into_iter().flat_map(components).take(MOST_COMPONENTS);
    all.map(move |component| {
        let called = prefix.before(component.id);
        let together = together.as_deref().unwrap_or_default();
        (format!("{together} name {called}"), called, component)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{paused, pipeline, shared_by, told};
    use super::super::told_of_pipeline;
    use super::*;

    /// An agents' pipeline of two components, of which the second is called after the first.
    fn named(namespace: Option<&str>, name: &str, component: &str, created: &str) -> Value {
        let mut pipeline = pipeline(name, created, "");
        pipeline["metadata"]["uid"] = format!("{namespace:?} {name}").into();
        pipeline["metadata"]["namespace"] = namespace.into();
        pipeline["spec"] = json!({
            "sources": {component: {"type": "kubernetes_logs"}},
            "sinks": {format!("{component}-out"): {"type": "blackhole", "inputs": [component]}},
        });
        if namespace.is_none() {
            pipeline["kind"] = "ClusterVectorPipeline".into();
        }
        pipeline
    }

    /// Who has the name of a component of the first.
    fn blamed(pipelines: &[&Value]) -> Option<String> {
        let pipelines: Vec<_> = pipelines.iter().map(|&it| it.clone()).collect();
        let shared = shared_by(&pipelines, &[]);
        let by = shared.pointer("/namesakes/0/by")?.as_str()?;
        Some(by.to_owned())
    }

    const OTHERS: &str = "a pipeline that is not of this namespace";

    #[test]
    fn names_are_one_pipelines_however_they_are_put_together() {
        let of = |namespace, name, component| named(Some(namespace), name, component, "1");
        let old = of("a-b", "c", "in");
        let by =
            |namespace, name, component| blamed(&[&named(namespace, name, component, "2"), &old]);
        assert_eq!(by(Some("a"), "b-c", "in").as_deref(), Some(OTHERS));
        assert_eq!(by(Some("a"), "b", "c-in").as_deref(), Some(OTHERS));
        let own = Some("VectorPipeline a-b/c");
        assert_eq!(by(None, "a-b-c", "in").as_deref(), own);
        assert_eq!(by(None, "a", "b-c-in").as_deref(), own);
        for (namespace, name, component) in [
            (Some("a"), "b-c", "in2"),
            (Some("a"), "bc", "in"),
            (Some("a-b-c"), "in", "x"),
            (None, "a-b", "in"),
        ] {
            assert_eq!(by(namespace, name, component), None, "{name} {component}");
        }
        // In one namespace, the author is told.
        let same = named(Some("a-b"), "c-d", "in", "2");
        assert_eq!(blamed(&[&same, &of("a-b", "c", "d-in")]).as_deref(), own);
        // An administrator's may have no prefix.
        let mut bare = named(None, "any", "a-b-c-in", "2");
        assert_eq!(blamed(&[&bare, &old]), None);
        bare["spec"]["skipPrefix"] = true.into();
        assert_eq!(blamed(&[&bare, &old]).as_deref(), own);
        // Agents and aggregators run nothing together.
        let mut elsewhere = named(Some("a"), "b-c", "in", "2");
        elsewhere["spec"]["sources"]["in"]["type"] = "kafka".into();
        assert_eq!(blamed(&[&elsewhere, &old]), None);
    }

    #[test]
    fn whatever_the_component_is_it_has_the_name() {
        let mut old = named(Some("a-b"), "c", "first", "1");
        old["spec"]["transforms"] = json!({"in": {}, "in-out": {}});
        let new = named(Some("a"), "b-c", "in", "2");
        let shared = shared_by(&[new, old], &[]);
        let expected = json!([{
            "at": "spec.sources[in]", "id": "in", "called": "a-b-c-in", "by": OTHERS,
        }, {
            "at": "spec.sinks[in-out]", "id": "in-out", "called": "a-b-c-in-out", "by": OTHERS,
        }]);
        assert_eq!(shared["namesakes"], expected);
    }

    #[test]
    fn who_is_valid_keeps_his_names_and_then_the_eldest() {
        let old = || named(Some("a-b"), "c", "in", "1");
        let new = || named(Some("a"), "b-c", "in", "2");
        let valid = |pipeline| told(pipeline, true, &[], &[]);
        let changed = |mut pipeline: Value| {
            pipeline["metadata"]["generation"] = 2.into();
            pipeline
        };
        // Who gives way to whom.
        let new_to = |new: &Value, old: &Value| {
            assert_eq!(blamed(&[new, old]).as_deref(), Some(OTHERS), "{new} {old}");
            assert_eq!(blamed(&[old, new]), None, "{old} {new}");
        };
        new_to(&new(), &old());
        new_to(&new(), &valid(old()));
        new_to(&valid(new()), &valid(old()));
        new_to(&changed(valid(new())), &valid(old()));
        new_to(&changed(valid(new())), &changed(valid(old())));
        new_to(&new(), &changed(valid(old())));
        // An elder who comes later.
        new_to(&old(), &valid(new()));
        new_to(&changed(valid(old())), &valid(new()));
        new_to(&old(), &changed(valid(new())));
        new_to(&valid(old()), &paused(valid(new())));
        // One that cannot run has no names, nor one that goes; one that may never run does not wait for them.
        let faulty = told(old(), false, &[], &[]);
        let mut going = valid(old());
        going["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z".into();
        for old in [
            &faulty,
            &going,
            &paused(old()),
            &paused(changed(faulty.clone())),
        ] {
            assert_eq!(blamed(&[&new(), old]), None, "{old}");
        }
        // One that cannot be judged may be running.
        let mut unclear = faulty.clone();
        unclear["status"]["LastAppliedPipelineHash"] = Value::Null;
        new_to(&new(), &unclear);
        assert_eq!(blamed(&[&valid(new()), &unclear]), None);
    }

    #[test]
    fn who_waits_for_a_name_is_found_by_it_when_it_is_free() {
        let holder = told(named(Some("a-b"), "c", "in", "1"), true, &[], &[]);
        let waits = told(named(Some("a"), "b-c", "in", "2"), false, &[], &[]);
        let (told, _) = told_of_pipeline(&holder);
        assert!(
            super::super::keys(&waits)
                .iter()
                .any(|key| told.contains(key))
        );
        assert!(told_of_pipeline(&waits).0.is_empty());
    }
}
