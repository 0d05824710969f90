//! Rule about the strategy by which the Pods of a workload are replaced.

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, Rule, RuleContext, Severity};
use serde_json::Value;

use crate::types::workload_kind::WorkloadKind;

/// Field with the number of Pods that are there in addition.
const SURGE: &str = "maxSurge";

/// Object that runs the Pods, with what its strategies can be.
struct Strategies {
    object: &'static str,
    types: [&'static str; 2],
    /// Fields of a rolling update that it does not have, or that harm its Pods, and why.
    denied: &'static [(&'static str, &'static str)],
}

const OF_DAEMON_SETS: Strategies = Strategies {
    object: "DaemonSet",
    types: ["RollingUpdate", "OnDelete"],
    denied: &[(
        SURGE,
        "the old and the new Pod of a node would run at the same time, and Vector does not start while another one uses its data directory; use `maxUnavailable`",
    )],
};

const OF_DEPLOYMENTS: Strategies = Strategies {
    object: "Deployment",
    types: ["RollingUpdate", "Recreate"],
    denied: &[(
        "partition",
        "an aggregator without `persistence` is a Deployment, which has no partitions",
    )],
};

const OF_STATEFUL_SETS: Strategies = Strategies {
    object: "StatefulSet",
    types: ["RollingUpdate", "OnDelete"],
    denied: &[(
        SURGE,
        "an aggregator with `persistence` is a StatefulSet, whose Pods have one name and one claim each; use `maxUnavailable`",
    )],
};

pub(crate) fn rule<K: WorkloadKind>() -> Rule<K> {
    Rule {
        id: "update-strategy",
        description: "The object that runs the Pods has the strategy, and no two Pods use one data directory at the same time.",
        severity: Severity::Error,
        reference: "https://kubernetes.io/docs/tasks/manage-daemon/update-daemon-set/",
        fields: K::UPDATE_STRATEGY,
        validate,
    }
}

fn validate<K: WorkloadKind>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let object = context.object;
    let workload = object.workload();
    let Some(strategy) = workload.and_then(|workload| workload.update_strategy.as_ref()) else {
        return;
    };
    let strategies = match object.aggregator() {
        None => OF_DAEMON_SETS,
        Some(aggregator) if aggregator.is_persistent() => OF_STATEFUL_SETS,
        Some(_) => OF_DEPLOYMENTS,
    };
    let path = FieldPath::new(K::WORKLOAD).child("updateStrategy");
    let type_ = strategy.get("type").and_then(Value::as_str);
    if let Some(type_) = type_.filter(|type_| !strategies.types.contains(type_)) {
        let [first, second] = strategies.types;
        let detail = format!("a {} has `{first}` and `{second}`", strategies.object);
        diagnostics.push(FieldError::invalid(path.child("type"), type_, detail));
    }
    let Some(rolling) = strategy.get("rollingUpdate").and_then(Value::as_object) else {
        return;
    };
    let path = path.child("rollingUpdate");
    if let Some(type_) = type_.filter(|type_| *type_ != "RollingUpdate") {
        let detail = format!("only the type `RollingUpdate` has it, and the type is `{type_}`");
        diagnostics.push(FieldError::forbidden(path, detail));
        return;
    }
    let is_zero = |value: &Value| matches!(value.as_str(), Some("0" | "0%")) || *value == 0;
    let mut is_surge_denied = false;
    for (name, why) in strategies.denied {
        is_surge_denied |= *name == SURGE;
        if let Some(value) = rolling.get(*name).filter(|value| !is_zero(value)) {
            diagnostics.push(FieldError::invalid(path.child(name), value.clone(), *why));
        }
    }
    let unavailable = rolling.get("maxUnavailable");
    if let Some(unavailable) = unavailable.filter(|unavailable| is_zero(unavailable))
        && (is_surge_denied || rolling.get(SURGE).is_some_and(is_zero))
    {
        let detail = "no Pod could be replaced, because none may be there in addition";
        let path = path.child("maxUnavailable");
        diagnostics.push(FieldError::invalid(path, unavailable.clone(), detail));
    }
}

#[cfg(test)]
mod tests {
    use lockstep_shared_validation::{Ruleset, ValidationRequest, Validator};
    use serde_json::json;

    use crate::types::agent::Vector;
    use crate::types::aggregator::VectorAggregator;

    use super::*;

    fn denied<K: WorkloadKind>(spec: &Value) -> Vec<String> {
        let object = json!({
            "apiVersion": "observability.kaasops.io/v1alpha1",
            "kind": K::KIND,
            "metadata": {"name": "a", "namespace": "default"},
            "spec": spec,
        });
        let rules = Ruleset::<K>::compile().expect("it compiles");
        let errors = rules.validate(&ValidationRequest::create(&object)).errors;
        let paths = errors.iter().map(|error| error.error.path.to_string());
        paths.collect()
    }

    #[test]
    fn a_strategy_is_one_of_the_object_that_runs_the_pods() {
        let none = [""; 0];
        let agent =
            |strategy: Value| denied::<Vector>(&json!({"agent": {"updateStrategy": strategy}}));
        assert_eq!(agent(json!({"type": "OnDelete"})), none);
        let unavailable = json!({"rollingUpdate": {"maxUnavailable": "10%", "maxSurge": 0}});
        assert_eq!(agent(unavailable), none);
        let surge = json!({"rollingUpdate": {"maxSurge": "10%"}});
        let at = "spec.agent.updateStrategy.rollingUpdate.maxSurge";
        assert_eq!(agent(surge.clone()), [at]);
        let recreate = json!({"type": "Recreate"});
        assert_eq!(agent(recreate.clone()), ["spec.agent.updateStrategy.type"]);
        let aggregator = |strategy: &Value, is_persistent: bool| {
            let spec = json!({
                "updateStrategy": strategy, "persistence": {"enabled": is_persistent},
            });
            denied::<VectorAggregator>(&spec)
        };
        let partition = json!({"rollingUpdate": {"partition": 1}});
        let at = "spec.agent.updateStrategy.rollingUpdate.maxUnavailable";
        assert_eq!(
            agent(json!({"rollingUpdate": {"maxUnavailable": "0%"}})),
            [at]
        );
        let both = json!({"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 1}});
        assert_eq!(agent(both), ["spec.agent.updateStrategy.rollingUpdate"]);
        let none_unavailable = json!({"rollingUpdate": {"maxUnavailable": 0}});
        let neither = json!({"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}});
        for (strategy, of_deployment, of_stateful_set) in [
            (&recreate, true, false),
            (&surge, true, false),
            (&partition, false, true),
            (&none_unavailable, true, false),
            (&neither, false, false),
            (&json!({"type": "OnDelete"}), false, true),
        ] {
            assert_eq!(
                aggregator(strategy, false).is_empty(),
                of_deployment,
                "{strategy}"
            );
            assert_eq!(
                aggregator(strategy, true).is_empty(),
                of_stateful_set,
                "{strategy}"
            );
        }
    }
}
