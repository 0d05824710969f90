//! Health of a child, as <https://pkg.go.dev/sigs.k8s.io/cli-utils/pkg/kstatus> computes it.

use kube::api::DynamicObject;
use serde_json::Value;

/// Returns the reason why a child is not current, if it is not.
pub(crate) fn pending_reason(child: &DynamicObject) -> Option<String> {
    if child.metadata.deletion_timestamp.is_some() {
        return Some("is being deleted".to_owned());
    }
    let status = &child.data["status"];
    let observed = status["observedGeneration"].as_i64();
    if observed.is_some() && observed != child.metadata.generation {
        return Some("has not been observed by its controller yet (status.observedGeneration < metadata.generation)".to_owned());
    }
    let strategy = &child.data["spec"]["updateStrategy"];
    let kind = child.types.as_ref().map_or("", |types| types.kind.as_str());
    match kind {
        "Deployment" => replicas(
            child,
            &[("updatedReplicas", 0), ("availableReplicas", 0)],
            Some("replicas"),
        ),
        "ReplicaSet" => replicas(child, &[("availableReplicas", 0)], Some("replicas")),
        // Its Pods are updated when a user deletes them.
        "StatefulSet" if strategy["type"] == "OnDelete" => {
            replicas(child, &[("readyReplicas", 0)], None)
        }
        "StatefulSet" => {
            let partition = &strategy["rollingUpdate"]["partition"];
            let held_back = partition.as_i64().unwrap_or_default();
            let counts = [("updatedReplicas", held_back), ("readyReplicas", 0)];
            replicas(child, &counts, None)
        }
        "DaemonSet" if strategy["type"] == "OnDelete" => daemons(status, &["numberAvailable"]),
        "DaemonSet" => daemons(status, &["updatedNumberScheduled", "numberAvailable"]),
        "PersistentVolumeClaim" => {
            (status["phase"] != "Bound").then(|| "is not bound to a volume".to_owned())
        }
        "Job" if is_true(status, "Failed") => Some("has failed".to_owned()),
        "Job" => (!is_true(status, "Complete")).then(|| "has not completed".to_owned()),
        "Pod" if status["phase"] == "Succeeded" => None,
        "Pod" => (!is_true(status, "Ready")).then(|| "is not ready".to_owned()),
        _ => custom(status),
    }
}

/// Returns a reason unless every count has reached the desired replicas, minus those held back by a partition, and
/// no old replicas are left.
fn replicas(child: &DynamicObject, counts: &[(&str, i64)], all: Option<&str>) -> Option<String> {
    let status = &child.data["status"];
    let wanted = child.data["spec"]["replicas"].as_i64().unwrap_or(1);
    if wanted > 0 && status.get("observedGeneration").is_none() {
        return Some("has not been observed by its controller yet".to_owned());
    }
    for (count, held_back) in counts {
        let actual = status[*count].as_i64().unwrap_or_default();
        let least = wanted - held_back;
        if actual < least {
            return Some(format!("has {actual} of {least} {}", words(count)));
        }
    }
    let actual = status[all?].as_i64().unwrap_or_default();
    (actual > wanted).then(|| format!("has {actual} replicas instead of {wanted}"))
}

fn daemons(status: &Value, counts: &[&str]) -> Option<String> {
    let Some(wanted) = status["desiredNumberScheduled"].as_i64() else {
        return Some("has not been observed by its controller yet".to_owned());
    };
    counts.iter().find_map(|count| {
        let actual = status[*count].as_i64().unwrap_or_default();
        (actual < wanted).then(|| format!("has {actual} of {wanted} Pods ({count})"))
    })
}

/// Evaluates the conditions that controllers of custom resources write.
fn custom(status: &Value) -> Option<String> {
    let conditions = status["conditions"].as_array()?;
    let condition_message = |type_: &str, value: &str| {
        let mut all = conditions.iter();
        let found =
            all.find(|condition| condition["type"] == type_ && condition["status"] == value)?;
        let message = found["message"].as_str().filter(|text| !text.is_empty());
        Some(format!(
            "is {type_}={value}: {}",
            message.unwrap_or("no message")
        ))
    };
    condition_message("Stalled", "True")
        .or_else(|| condition_message("Reconciling", "True"))
        .or_else(|| condition_message("Ready", "False"))
        .or_else(|| condition_message("Ready", "Unknown"))
}

fn is_true(status: &Value, type_: &str) -> bool {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == type_ && condition["status"] == "True")
}

fn words(count: &str) -> &'static str {
    match count {
        "updatedReplicas" => "replicas updated",
        "availableReplicas" => "replicas available",
        _ => "replicas ready",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn child(kind: &str, spec: &Value, status: &Value) -> DynamicObject {
        let object = json!({
            "apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "generation": 2},
            "spec": spec, "status": status,
        });
        serde_json::from_value(object).expect("an object")
    }

    type Case = (&'static str, Value, Value, Option<&'static str>);

    fn expect(cases: &[Case]) {
        for (kind, spec, status, expected) in cases {
            let found = pending_reason(&child(kind, spec, status));
            let printed = format!("{kind} {spec} {status}: {found:?}");
            match expected {
                Some(expected) => {
                    assert!(found.is_some_and(|why| why.contains(expected)), "{printed}");
                }
                None => assert!(found.is_none(), "{printed}"),
            }
        }
    }

    #[test]
    fn the_health_of_a_child_is_computed_from_its_status() {
        let ready = |value: &str| json!({"conditions": [{"type": "Ready", "status": value, "message": "m"}]});
        let rollout = |updated: i64, available: i64, all: i64| json!({"observedGeneration": 2, "updatedReplicas": updated, "availableReplicas": available, "replicas": all});
        expect(&[
            ("ConfigMap", json!(null), json!(null), None),
            (
                "Deployment",
                json!({}),
                json!(null),
                Some("has not been observed"),
            ),
            (
                "Deployment",
                json!({}),
                json!({"observedGeneration": 1}),
                Some("has not been observed"),
            ),
            (
                "Deployment",
                json!({"replicas": 2}),
                rollout(1, 2, 2),
                Some("1 of 2 replicas updated"),
            ),
            (
                "Deployment",
                json!({"replicas": 2}),
                rollout(2, 1, 2),
                Some("1 of 2 replicas available"),
            ),
            (
                "Deployment",
                json!({"replicas": 2}),
                rollout(2, 2, 3),
                Some("has 3 replicas"),
            ),
            ("Deployment", json!({"replicas": 2}), rollout(2, 2, 2), None),
            ("Deployment", json!({"replicas": 0}), json!(null), None),
            (
                "DaemonSet",
                json!({}),
                json!({}),
                Some("has not been observed"),
            ),
            (
                "DaemonSet",
                json!({}),
                json!({"desiredNumberScheduled": 1, "updatedNumberScheduled": 1}),
                Some("0 of 1"),
            ),
            (
                "DaemonSet",
                json!({}),
                json!({"desiredNumberScheduled": 0}),
                None,
            ),
            (
                "PersistentVolumeClaim",
                json!({}),
                json!({"phase": "Pending"}),
                Some("not bound"),
            ),
            (
                "Job",
                json!({}),
                json!({"conditions": [{"type": "Complete", "status": "True"}]}),
                None,
            ),
            ("Job", json!({}), json!({}), Some("has not completed")),
            (
                "Job",
                json!({}),
                json!({"conditions": [{"type": "Failed", "status": "True"}]}),
                Some("has failed"),
            ),
            ("Pod", json!({}), ready("False"), Some("is not ready")),
            (
                "Custom",
                json!({}),
                ready("False"),
                Some("is Ready=False: m"),
            ),
            ("Custom", json!({}), ready("Unknown"), Some("Ready=Unknown")),
            ("Custom", json!({}), ready("True"), None),
        ]);
    }

    #[test]
    fn replicas_that_the_strategy_holds_back_are_not_waited_for() {
        expect(&[
            ("Pod", json!({}), json!({"phase": "Succeeded"}), None),
            (
                "StatefulSet",
                json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}}),
                json!({"observedGeneration": 2, "updatedReplicas": 0, "readyReplicas": 3}),
                Some("0 of 1 replicas updated"),
            ),
            (
                "StatefulSet",
                json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}}),
                json!({"observedGeneration": 2, "updatedReplicas": 1, "readyReplicas": 3}),
                None,
            ),
            (
                "StatefulSet",
                json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}}),
                json!({"observedGeneration": 2, "readyReplicas": 2}),
                Some("2 of 3 replicas ready"),
            ),
            (
                "DaemonSet",
                json!({"updateStrategy": {"type": "OnDelete"}}),
                json!({"desiredNumberScheduled": 1, "updatedNumberScheduled": 0, "numberAvailable": 1}),
                None,
            ),
        ]);
    }
}
