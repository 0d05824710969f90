//! Program of the event collector.

use serde_json::{Value, json};

use crate::owned::tests::{Input, Kind, event_pipeline};

const NAME: &str = "logs-event-collector";

/// Returns the container of the event collector.
fn container(input: &Input<'_>) -> Value {
    let deployment = input.child("Deployment", NAME).expect("a Deployment");
    deployment["spec"]["template"]["spec"]["containers"][0].clone()
}

#[test]
fn this_program_collects_events_unless_another_one_is_named_or_runs() {
    let mut input = Input::new(Kind::VectorAggregator);
    input.publication.services = vec![event_pipeline(None)];
    let other = |input: &Input<'_>, image: &str| {
        let container = container(input);
        assert_eq!(
            (&container["image"], &container["args"]),
            (&json!(image), &Value::Null)
        );
    };
    other(&input, "kaasops/event-collector:v0.5.0");
    let without_program = input.child("Deployment", NAME).expect("a Deployment");
    input.cluster.program_image = Some("lockstep:2".to_owned());
    let own = container(&input);
    assert_eq!(own["image"], "lockstep:2");
    assert_eq!(own["args"], json!(["vector", "collect-events"]));
    // An upgrade of this program is one of the collector, too.
    let mut before = input.child("Deployment", NAME).expect("a Deployment");
    before["spec"]["template"]["spec"]["containers"][0]["image"] = json!("lockstep:1");
    input.observed.event_collector = Some(&before);
    assert_eq!(container(&input), own);
    input.observed.event_collector = Some(&without_program);
    other(&input, "kaasops/event-collector:v0.5.0");
    input.observed.event_collector = None;
    let named = input.with("eventCollector.image", json!("mirror/event-collector:1"));
    other(&named, "mirror/event-collector:1");
}

#[test]
fn only_vector_gets_the_network_of_the_node() {
    let mut input = Input::new(Kind::VectorAggregator).with("hostNetwork", json!(true));
    input.publication.services = vec![event_pipeline(None)];
    let pod = |name: &str| {
        let deployment = input.child("Deployment", name).expect("a Deployment");
        deployment["spec"]["template"]["spec"].clone()
    };
    assert_eq!(pod("logs-aggregator")["hostNetwork"], true);
    assert_eq!(pod(NAME)["hostNetwork"], Value::Null);
}
