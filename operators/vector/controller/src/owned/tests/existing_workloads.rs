//! Deployment and `StatefulSet` of an aggregator: what depends on the existing ones.

use serde_json::{Value, json};

use crate::owned::tests::{Input, Kind};
use crate::owned::{ObservedAggregator, OwnedObjectsError};

const NAME: &str = "logs-aggregator";

fn persistent() -> Input<'static> {
    Input::new(Kind::VectorAggregator).with("persistence.enabled", json!(true))
}

/// Returns the `StatefulSet` as the API server stores it.
fn stored() -> Value {
    let mut stored = persistent().child("StatefulSet", NAME).expect("one");
    let claim = &mut stored["spec"]["volumeClaimTemplates"][0];
    claim["status"] = json!({"phase": "Pending"});
    claim["spec"]["volumeMode"] = json!("Filesystem");
    stored
}

fn with_stateful_set<'a>(mut input: Input<'a>, stored: &'a Value) -> Input<'a> {
    input.observed = ObservedAggregator {
        stateful_set: Some(stored),
        is_successor_ready: true,
        ..ObservedAggregator::default()
    };
    input
}

#[test]
fn a_stateful_set_keeps_what_kubernetes_does_not_change() {
    let stored = stored();
    let unchanged = with_stateful_set(persistent(), &stored);
    assert_eq!(unchanged.objects(), persistent().objects());
    let same_size = persistent().with("persistence.size", json!("10240Mi"));
    assert_eq!(
        with_stateful_set(same_size, &stored).objects().notices,
        [""; 0]
    );
    let resized = persistent().with("persistence.size", json!("20Gi"));
    let resized = with_stateful_set(resized, &stored);
    let spec = &resized.child("StatefulSet", NAME).expect("one")["spec"];
    let claims = "volumeClaimTemplates";
    assert_eq!(spec[claims], stored["spec"][claims]);
    let notices = resized.objects().notices;
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains(claims), "{notices:?}");
    let mut other = stored.clone();
    other["spec"]["serviceName"] = json!("another");
    other["spec"]["podManagementPolicy"] = json!("OrderedReady");
    let kept = with_stateful_set(persistent(), &other);
    let spec = &kept.child("StatefulSet", NAME).expect("one")["spec"];
    assert_eq!(spec["serviceName"], "another");
    assert_eq!(spec["podManagementPolicy"], "OrderedReady");
}

#[test]
fn templates_of_claims_need_one_for_the_data_directory() {
    let other = json!([{"metadata": {"name": "other"}, "spec": {}}]);
    let input = Input::new(Kind::VectorAggregator).with("persistence.volumeClaimTemplates", other);
    assert_eq!(input.try_objects(), Err(OwnedObjectsError::NoDataClaim));
}

#[test]
fn a_cluster_scoped_aggregator_needs_a_namespace() {
    let mut input = Input::new(Kind::ClusterVectorAggregator);
    input.spec = json!({});
    assert_eq!(input.try_objects(), Err(OwnedObjectsError::NoNamespace));
}

#[test]
fn the_workload_of_the_other_kind_stays_until_its_successor_is_ready() {
    let stored = json!({});
    for (persistent, other) in [(true, "Deployment"), (false, "StatefulSet")] {
        let input = |is_successor_ready| {
            let mut input =
                Input::new(Kind::VectorAggregator).with("persistence.enabled", json!(persistent));
            input.observed = ObservedAggregator {
                deployment: Some(&stored),
                stateful_set: Some(&stored),
                is_successor_ready,
                ..ObservedAggregator::default()
            };
            input
        };
        // With its name alone, it is left unchanged.
        let kept = json!({
            "apiVersion": "apps/v1", "kind": other, "metadata": {"name": NAME, "namespace": "team"},
        });
        assert_eq!(input(false).child(other, NAME), Some(kept));
        assert_eq!(input(true).child(other, NAME), None);
        // The Pods of both do not fit on one node.
        let on_host_network = input(false).with("hostNetwork", json!(true));
        assert_eq!(on_host_network.child(other, NAME), None);
        // The StatefulSet has its Service as long as it exists.
        let headless = |input: &Input<'_>| input.child("Service", "logs-aggregator-headless");
        assert!(headless(&input(false)).is_some(), "{other}");
        assert_eq!(headless(&input(true)).is_some(), persistent);
        let mut alone = input(false);
        alone.observed.deployment = alone.observed.deployment.filter(|_| !persistent);
        alone.observed.stateful_set = alone.observed.stateful_set.filter(|_| persistent);
        assert_eq!(alone.child(other, NAME), None);
    }
}

#[test]
fn the_number_of_pods_stays_until_the_autoscaler_has_written_it() {
    let by = |subresource: Value| {
        json!({
            "metadata": {"managedFields": [
                {"subresource": subresource, "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            ]},
            "spec": {"replicas": 5},
        })
    };
    for (stored, expected) in [
        (None, Value::Null),
        (Some(by(Value::Null)), json!(5)),
        (Some(by(json!("scale"))), Value::Null),
    ] {
        for persistent in [false, true] {
            let mut input = Input::new(Kind::VectorAggregator)
                .with("replicas", json!(2))
                .with("autoscaling.enabled", json!(true))
                .with("persistence.enabled", json!(persistent));
            let (kind, observed) = if persistent {
                ("StatefulSet", &mut input.observed.stateful_set)
            } else {
                ("Deployment", &mut input.observed.deployment)
            };
            *observed = stored.as_ref();
            let workload = input.child(kind, NAME).expect("a workload");
            assert_eq!(workload["spec"]["replicas"], expected, "{kind} {stored:?}");
            let scaler = input.child("HorizontalPodAutoscaler", NAME).expect("one");
            assert_eq!(scaler["spec"]["scaleTargetRef"]["kind"], kind);
        }
    }
}

#[test]
fn a_budget_needs_more_than_one_pod() {
    let budget = |spec: Value| {
        let mut input = Input::new(Kind::VectorAggregator);
        input.spec = spec;
        let input = input.with("podDisruptionBudget.enabled", json!(true));
        input.child("PodDisruptionBudget", NAME).is_some()
    };
    for (spec, expected) in [
        (json!({}), false),
        (json!({"replicas": 1}), false),
        (json!({"replicas": 2}), true),
        (
            json!({"replicas": 1, "autoscaling": {"enabled": true}}),
            true,
        ),
        (
            json!({"replicas": 2, "autoscaling": {"enabled": true, "maxReplicas": 1}}),
            false,
        ),
        (
            json!({"replicas": 2, "autoscaling": {"enabled": false, "maxReplicas": 1}}),
            true,
        ),
    ] {
        assert_eq!(budget(spec.clone()), expected, "{spec}");
    }
}
