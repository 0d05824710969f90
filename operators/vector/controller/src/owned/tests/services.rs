//! Services and their names.

use lockstep_vector_assembly::{PipelineService, Protocol, kebab_case};
use serde_json::{Value, json};

use crate::owned::dns_label::{dns_label, is_dns_label};
use crate::owned::tests::{Input, Kind, event_pipeline, listener};

/// Returns an aggregator with these pipelines.
fn aggregator(services: Vec<PipelineService>) -> Input<'static> {
    let mut input = Input::new(Kind::VectorAggregator);
    input.publication.services = services;
    input
}

/// Returns the names of all Services.
fn names(input: &Input<'_>) -> Vec<String> {
    let children = input.objects().children.into_iter();
    let services = children.filter(|child| child["kind"] == "Service");
    services
        .map(|service| {
            service["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

fn ports(input: &Input<'_>, name: &str) -> Value {
    input.child("Service", name).expect("a Service")["spec"]["ports"].clone()
}

fn called(mut service: PipelineService, name: &str) -> PipelineService {
    service.service_name = Some(name.to_owned());
    service
}

#[test]
fn each_pipeline_has_a_service_with_its_ports() {
    let mut pipeline = listener("webShop", "httpIn", 9000);
    let mut udp = listener("webShop", "udp_in", 9000).ports.remove(0);
    udp.protocol = Protocol::Udp;
    pipeline.ports.push(udp);
    let silent = PipelineService {
        ports: Vec::new(),
        ..listener("silent", "in", 1)
    };
    let input = aggregator(vec![pipeline, silent]);
    assert_eq!(names(&input), ["logs-aggregator-web-shop"]);
    assert_eq!(
        ports(&input, "logs-aggregator-web-shop"),
        json!([
            {"name": "http-in", "port": 9000, "protocol": "TCP", "targetPort": 9000},
            {"name": "udp-in", "port": 9000, "protocol": "UDP", "targetPort": 9000},
        ])
    );
}

#[test]
fn pipelines_with_one_service_name_share_the_service() {
    let input = aggregator(vec![
        called(listener("a", "in", 9000), "shared"),
        called(listener("b", "in", 9001), "shared"),
        // The name of the Service of the API.
        called(listener("c", "in", 9002), "logs-aggregator"),
    ])
    .with("api.enabled", json!(true));
    assert_eq!(names(&input), ["logs-aggregator", "shared"]);
    let names_of = |name: &str| {
        let ports = ports(&input, name);
        let ports = ports.as_array().expect("ports").iter();
        ports
            .map(|it| (it["name"].clone(), it["port"].clone()))
            .collect::<Vec<_>>()
    };
    let expected = [
        (json!("in"), json!(9000)),
        (json!("in-tcp-9001"), json!(9001)),
    ];
    assert_eq!(names_of("shared"), expected);
    let expected = [(json!("api"), json!(8686)), (json!("in"), json!(9002))];
    assert_eq!(names_of("logs-aggregator"), expected);
}

#[test]
fn a_name_that_no_service_can_have_is_replaced_and_reported() {
    for name in [
        "Upper",
        "9lives",
        "a.b",
        "logs-event-collector",
        &"a".repeat(64),
    ] {
        let input = aggregator(vec![
            called(listener("app", "in", 9000), name),
            event_pipeline(Some("team")),
        ]);
        let expected = [
            "logs-aggregator-app",
            "logs-aggregator-events",
            "logs-event-collector",
        ];
        assert_eq!(names(&input), expected, "{name}");
        let notices = input.objects().notices;
        assert_eq!(notices.len(), 1, "{name}: {notices:?}");
        assert!(notices[0].contains(&format!("`{name}`")), "{notices:?}");
    }
    let valid = aggregator(vec![called(listener("app", "in", 9000), "valid")]);
    assert_eq!(valid.objects().notices, [""; 0]);
}

#[test]
fn the_event_collector_sends_to_the_service_of_the_pipeline() {
    let input = aggregator(vec![called(event_pipeline(Some("team")), "own-name")]);
    let config = input
        .child("ConfigMap", "logs-event-collector")
        .expect("one");
    let config = config["data"]["config.json"]
        .as_str()
        .expect("text")
        .to_owned();
    let config: Value = serde_json::from_str(&config).expect("JSON");
    assert_eq!(config["Receivers"][0]["ServiceName"], "own-name");
    assert!(input.child("Service", "own-name").is_some());
    // Without such a source there is no collector.
    let without = aggregator(vec![listener("app", "in", 9000)]);
    let children = without.objects().children;
    let is_collector = |child: &&Value| child["metadata"]["name"] == "logs-event-collector";
    assert_eq!(children.iter().find(is_collector), None);
}

#[test]
fn names_are_made_as_in_the_operator_of_kaasops() {
    for (text, expected) in [
        ("logs-aggregator-app", "logs-aggregator-app"),
        ("httpIn", "http-in"),
        ("HTTPServer", "http-server"),
        ("a_b  c", "a-b-c"),
        ("snake_case", "snake-case"),
        ("myURL", "my-url"),
        ("v2Source", "v2source"),
        (" padded ", "padded"),
        ("a--b", "a-b"),
    ] {
        assert_eq!(kebab_case(text), expected, "{text}");
    }
}

#[test]
fn every_text_becomes_a_valid_label() {
    let long = "a-".repeat(50);
    let longer = "a-".repeat(51);
    for text in ["", "-", "a.b", "9", "ä", "in_", "-a-", &long, &longer] {
        let label = dns_label(text);
        assert!(is_dns_label(&label), "{text}: {label}");
    }
    assert_ne!(dns_label(&long), dns_label(&longer));
    assert_eq!(dns_label("valid-1"), "valid-1");
    assert_eq!(dns_label("a.b"), "a-b");
}
