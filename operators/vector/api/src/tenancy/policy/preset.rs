//! Presets: actions of rules that belong together, selected by one line of the policy.

use lockstep_shared_validation::{Action, ValidatedResource, did_you_mean};
use serde::Deserialize;
use serde_json::Value;

use crate::types::pipeline::{ClusterVectorPipeline, VectorPipeline};

/// Key of the preset in the section.
pub(crate) const KEY: &str = "preset";

const ADMINISTRATORS: &str = ClusterVectorPipeline::KIND;
const TENANTS: &str = <VectorPipeline as ValidatedResource>::KIND;

/// Preset of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Preset {
    /// Accepts what the operator of kaasops accepts, with the exception of what tenants could use to leave their
    /// namespace.
    Kaasops,
}

impl Preset {
    /// Presets by name.
    const NAMES: [(&str, Self); 1] = [("kaasops", Self::Kaasops)];

    /// Checks the value of the key.
    pub(crate) fn check(value: &Value) -> Result<(), String> {
        let known = Self::NAMES.map(|(name, _)| name);
        match value.as_str() {
            Some(name) if known.contains(&name) => Ok(()),
            Some(name) => {
                let question = did_you_mean(name, known.into_iter());
                let known = known.join("`, `");
                Err(format!(
                    "{KEY}: the preset `{name}` is unknown{question}; the presets are `{known}`"
                ))
            }
            None => Err(format!("{KEY}: the value must be the name of a preset")),
        }
    }

    /// Returns the actions of the preset: kind, rule, action.
    pub(crate) fn actions(self) -> Vec<(&'static str, &'static str, Action)> {
        match self {
            Self::Kaasops => vec![
                (ADMINISTRATORS, "mixed-roles", Action::Warn),
                (ADMINISTRATORS, "vrl-files", Action::Warn),
                (TENANTS, "mixed-roles", Action::Warn),
                (TENANTS, "tenant-agent-identity", Action::Warn),
                (TENANTS, "tenant-quota", Action::Warn),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lockstep_shared_validation::{
        Policy, Ruleset, ValidationRequest, ValidationResult, Validator, ValidatorRegistry,
    };
    use serde_json::json;

    use super::*;

    /// Returns the result of a pipeline under a policy.
    fn validated<K: ValidatedResource>(spec: &Value, policy: &Value) -> ValidationResult {
        let validators = ValidatorRegistry::default();
        let cluster = Ruleset::<ClusterVectorPipeline>::compile().expect("it compiles");
        let validators = validators.register(Arc::new(cluster));
        let tenants = Ruleset::<VectorPipeline>::compile().expect("it compiles");
        let validators = validators.register(Arc::new(tenants));
        let policy = Policy::read(policy, &validators).expect("a policy");
        let mut pipeline = json!({
            "apiVersion": "observability.kaasops.io/v1alpha1",
            "kind": K::KIND,
            "metadata": {"name": "a"},
            "spec": spec,
        });
        if K::KIND == TENANTS {
            pipeline["metadata"]["namespace"] = "team".into();
        }
        let ruleset = Ruleset::<K>::compile().expect("it compiles");
        ruleset.validate(&ValidationRequest::create(&pipeline).with_policy(&policy))
    }

    /// Returns the rules that a pipeline violates, first those that deny it and then those that warn.
    fn broken<K: ValidatedResource>(spec: &Value, policy: &Value) -> [Vec<String>; 2] {
        let result = validated::<K>(spec, policy);
        [result.errors, result.warnings].map(|list| list.into_iter().map(|it| it.rule).collect())
    }

    fn preset() -> Value {
        json!({"settings": {"vector": {"preset": "kaasops"}}})
    }

    /// Returns a pipeline with a source of agents and one of aggregators.
    fn mixed(of_agents: &Value) -> Value {
        json!({
            "sources": {
                "agents": of_agents,
                "aggregators": {"type": "socket", "mode": "tcp", "address": "0.0.0.0:9000"},
            },
            "sinks": {"out": {"type": "blackhole", "inputs": ["agents", "aggregators"]}},
        })
    }

    fn remapping(transform: &Value) -> Value {
        let mut transform = transform.clone();
        transform["type"] = "remap".into();
        transform["inputs"] = json!(["in"]);
        json!({
            "sources": {"in": {"type": "kubernetes_logs"}},
            "transforms": {"t": transform},
            "sinks": {"out": {"type": "blackhole", "inputs": ["t"]}},
            "secret": {"s": {"type": "kubernetes_secret", "name": "s"}},
        })
    }

    fn rules(denied: &[&str], warned: &[&str]) -> [Vec<String>; 2] {
        [denied, warned].map(|list| list.iter().map(|&rule| rule.to_owned()).collect())
    }

    #[test]
    fn the_preset_accepts_sources_of_both_roles_with_a_warning() {
        let spec = mixed(&json!({"type": "kubernetes_logs"}));
        let denied = rules(&["mixed-roles"], &[]);
        let warned = rules(&[], &["mixed-roles"]);
        let none = json!({});
        assert_eq!(broken::<VectorPipeline>(&spec, &none), denied);
        assert_eq!(broken::<ClusterVectorPipeline>(&spec, &none), denied);
        assert_eq!(broken::<VectorPipeline>(&spec, &preset()), warned);
        assert_eq!(broken::<ClusterVectorPipeline>(&spec, &preset()), warned);
        // That operator runs no source of this type either.
        let spec = mixed(&json!({"type": "static_metrics", "metrics": []}));
        let [denied, _] = broken::<ClusterVectorPipeline>(&spec, &preset());
        assert_eq!(denied, ["source-role"]);
    }

    #[test]
    fn rules_that_the_policy_lists_take_precedence_over_the_preset() {
        let spec = mixed(&json!({"type": "kubernetes_logs"}));
        let mut policy = preset();
        policy["rules"] = json!({"VectorPipeline": {"mixed-roles": "deny"}});
        let denied = rules(&["mixed-roles"], &[]);
        assert_eq!(broken::<VectorPipeline>(&spec, &policy), denied);
        let warned = rules(&[], &["mixed-roles"]);
        assert_eq!(broken::<ClusterVectorPipeline>(&spec, &policy), warned);
        policy["settings"]["vector"]["tenants"] = json!({"deniedSources": ["socket"]});
        let [denied, _] = broken::<VectorPipeline>(&spec, &policy);
        assert_eq!(denied, ["mixed-roles", "tenant-components"]);
    }

    #[test]
    fn a_tenant_reads_nothing_of_the_host_beside_a_source_of_aggregators() {
        for source in [
            json!({"type": "file", "include": ["/etc/ssl/certs/a"]}),
            json!({"type": "host_metrics"}),
            json!({"type": "journald"}),
        ] {
            let [denied, _] = broken::<VectorPipeline>(&mixed(&source), &preset());
            assert_eq!(denied, ["tenant-components"], "{source}");
            let [denied, _] = broken::<ClusterVectorPipeline>(&mixed(&source), &preset());
            assert_eq!(denied, [""; 0], "{source}");
        }
    }

    #[test]
    fn only_administrators_use_secrets_and_files_in_programs() {
        let secret = remapping(&json!({"source": ".token = \"SECRET[s.token]\""}));
        let file = remapping(&json!({"file": "/etc/ssl/certs/program.vrl"}));
        let mut of_administrators = secret.clone();
        of_administrators["secret"]["s"]["namespace"] = "team".into();
        for policy in [json!({}), preset()] {
            let denied = rules(&["tenant-programs"], &[]);
            assert_eq!(broken::<VectorPipeline>(&secret, &policy), denied);
            let none = rules(&[], &[]);
            assert_eq!(
                broken::<ClusterVectorPipeline>(&of_administrators, &policy),
                none
            );
            assert_eq!(
                broken::<VectorPipeline>(&file, &policy),
                rules(&["vrl-files"], &[])
            );
        }
        let mut of_administrators = file;
        of_administrators["secret"]["s"]["namespace"] = "team".into();
        let warned = rules(&[], &["vrl-files"]);
        assert_eq!(
            broken::<ClusterVectorPipeline>(&of_administrators, &preset()),
            warned
        );
    }

    /// Without denied functions, too, the content of a Secret is not validated.
    #[test]
    fn a_policy_without_denied_functions_allows_no_secret_in_programs() {
        let spec = remapping(&json!({"source": ".token = \"SECRET[s.token]\""}));
        let policy = json!({"settings": {"vector": {"tenants": {"deniedFunctions": []}}}});
        assert_eq!(
            broken::<VectorPipeline>(&spec, &policy),
            rules(&["tenant-programs"], &[])
        );
    }

    #[test]
    fn an_unknown_preset_is_rejected() {
        for (value, problem) in [
            (
                json!("kaasop"),
                "preset: the preset `kaasop` is unknown; did you mean `kaasops`?; the presets are `kaasops`",
            ),
            (
                json!(true),
                "preset: the value must be the name of a preset",
            ),
        ] {
            assert_eq!(Preset::check(&value), Err(problem.to_owned()));
        }
        assert_eq!(Preset::check(&json!("kaasops")), Ok(()));
    }
}
