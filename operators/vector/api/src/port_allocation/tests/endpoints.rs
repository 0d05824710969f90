//! Conflicts between endpoints.

use crate::port_allocation::tests::*;

#[test]
fn aggregators_have_each_port_once() {
    // The host could serve both, but the Service of the Pods cannot.
    let pipelines = [
        pipeline("new", "2", "127.0.0.2:9000"),
        pipeline("old", "1", "127.0.0.1:9000"),
    ];
    assert_eq!(holder(&pipelines, &any_workload()), Some("old".to_owned()));
}

#[test]
fn conflicts_within_one_pipeline_are_found_without_a_workload() {
    let rules = Ruleset::<VectorPipeline>::compile().expect("it compiles");
    let mut pipeline = pipeline("a", "1", "0.0.0.0:9000");
    let mut message = |address: &str| {
        let another = json!({"type": "vector", "address": address});
        pipeline["spec"]["sources"]["other"] = another;
        pipeline["spec"]["sinks"]["out"]["inputs"] = json!(["in", "other"]);
        rules
            .validate(&ValidationRequest::create(&pipeline))
            .message()
    };
    assert_eq!(
        message("127.0.0.1:9000"),
        "spec.sources[other].address: Invalid value: \"127.0.0.1:9000\": tcp 127.0.0.1:9000 conflicts with the source `in`, which listens on 0.0.0.0:9000; choose another port [duplicate-listen-address]"
    );
    assert_eq!(message("127.0.0.1:9001"), "");
    // It is reported only once.
    let equal = message("0.0.0.0:9000");
    assert!(
        equal.contains("[topology]") && !equal.contains("[duplicate-listen-address]"),
        "{equal}"
    );
}

#[test]
fn a_pipeline_with_too_many_addresses_is_invalid_and_compared_in_part() {
    let rules = Ruleset::<VectorPipeline>::compile().expect("it compiles");
    let with = |count: u16| {
        let mut pipeline = pipeline("a", "1", PORT);
        for port in 0..count {
            let address = format!("127.0.0.1:{}", 10_000 + port);
            let source = json!({"type": "vector", "address": address});
            pipeline["spec"]["sources"][format!("s{port}")] = source;
        }
        pipeline["spec"]["sinks"]["out"]["inputs"] = json!(["in"]);
        pipeline
    };
    let (most, more) = (with(99), with(100));
    // The ports, and the key of the pipeline itself.
    assert_eq!((keys(&most).len(), keys(&more).len()), (101, 101));
    let message = |pipeline| {
        rules
            .validate(&ValidationRequest::create(pipeline))
            .message()
    };
    assert_eq!(message(&most), "");
    let expected = "spec: Invalid value: listens on 101 addresses; at most 100 can be compared with those of other pipelines [duplicate-listen-address]";
    assert_eq!(message(&more), expected);
}

#[test]
fn a_wildcard_address_conflicts_with_every_other_address_on_its_port() {
    let agents = [json!({"kind": "Vector", "metadata": {"name": "a", "namespace": "n"}})];
    for (one, another, conflicts) in [
        ("0.0.0.0:9000", "0.0.0.0:9000", true),
        ("0.0.0.0:9000", "127.0.0.1:9000", true),
        ("[::]:9000", "127.0.0.1:9000", true),
        ("[::]:9000", "0.0.0.0:9000", true),
        ("0.0.0.0:9000", "[::1]:9000", false),
        ("[::ffff:127.0.0.1]:9000", "127.0.0.1:9000", true),
        ("127.0.0.2:9000", "127.0.0.1:9000", false),
        ("0.0.0.0:9000", "0.0.0.0:9001", false),
        ("[::1]:9000", "[::]:9000", true),
        ("[::1]:9000", "127.0.0.1:9000", false),
        // Vector compares the addresses as written, whatever the host does with them.
        ("0.0.0.0:0", "0.0.0.0:0", true),
        ("0.0.0.0:0", "127.0.0.1:0", false),
        ("127.0.0.1:0", "[::ffff:127.0.0.1]:0", false),
        ("systemd", "systemd#1", true),
        ("systemd", "systemd#2", false),
    ] {
        for (one, another) in [(one, another), (another, one)] {
            let pipelines = [on_nodes("new", "2", one), on_nodes("old", "1", another)];
            let by = holder(&pipelines, &agents);
            assert_eq!(by.is_some(), conflicts, "{one} and {another}");
            let [one_key, another_key] = [0, 1].map(|at| keys(&pipelines[at]));
            let shares = one_key.iter().any(|key| another_key.contains(key));
            assert!(shares || !conflicts, "{one} and {another} are not found");
        }
    }
    let mut udp = pipeline("new", "2", PORT);
    udp["spec"]["sources"]["in"] = json!({"type": "socket", "mode": "udp", "address": PORT});
    let pipelines = [udp, pipeline("old", "1", PORT)];
    assert_eq!(holder(&pipelines, &any_workload()), None);
}

#[test]
fn the_api_of_the_workload_occupies_its_port() {
    let workloads = [workload("r", &json!({"api": {"enabled": true}}))];
    let shared = shared_by(&[pipeline("new", "2", "0.0.0.0:8686")], &workloads);
    assert_eq!(shared["taken"][0]["by"], "Vector's own API");
    assert_eq!(shared["taken"][0]["workload"], "VectorAggregator team/r");
    let shared = shared_by(&[pipeline("new", "2", "0.0.0.0:8687")], &workloads);
    assert_eq!(shared["taken"], json!([]));
}

#[test]
fn the_metrics_of_the_workload_occupy_their_port_unless_an_administrator_exports_metrics() {
    let spec = json!({"agent": {"internalMetrics": true}});
    let agents =
        [json!({"kind": "Vector", "metadata": {"name": "a", "namespace": "n"}, "spec": spec})];
    let mut pipeline = on_nodes("new", "2", "127.0.0.1:9598");
    let shared = shared_by(&[pipeline.clone()], &agents);
    assert_eq!(shared["taken"][0]["by"], "Vector's own metrics");
    pipeline["spec"]["sources"]["in"] = json!({"type": "kubernetes_logs"});
    pipeline["spec"]["sinks"]["out"] = json!({"type": "prometheus_exporter", "inputs": ["in"]});
    let of_tenant = shared_by(&[pipeline.clone()], &agents);
    assert_eq!(of_tenant["taken"][0]["by"], "Vector's own metrics");
    // The policy can permit it. Then the pipeline holds the address.
    let held = |waits| addresses(&pipeline, &of_tenant, waits);
    assert_eq!(held(false), ["tcp 0.0.0.0:9598"]);
    assert_eq!(held(true), ["tcp 0.0.0.0:9598"]);
    // It has replaced them before.
    let listens = with_status(
        pipeline.clone(),
        true,
        &["tcp 0.0.0.0:9598"],
        &["Vector n/a"],
    );
    assert_eq!(shared_by(&[listens], &agents)["taken"], json!([]));
    let mut elsewhere = pipeline.clone();
    elsewhere["spec"]["sinks"]["out"]["address"] = "0.0.0.0:9000".into();
    assert_eq!(shared_by(&[elsewhere], &agents)["taken"], json!([]));
    let administrators = of_administrator(pipeline);
    assert_eq!(shared_by(&[administrators], &agents)["taken"], json!([]));
}

#[test]
fn a_source_of_kubernetes_events_listens_on_its_address() {
    let events = |name: &str, created: &str, mode: &str| {
        let mut pipeline = pipeline(name, created, PORT);
        pipeline["spec"]["sources"]["in"] =
            json!({"type": "kubernetes_events", "address": PORT, "mode": mode});
        pipeline
    };
    let old = pipeline("old", "1", PORT);
    let by = |mode| holder(&[events("new", "2", mode), old.clone()], &any_workload());
    assert_eq!(by("tcp"), Some("old".to_owned()));
    assert_eq!(by("udp"), None);
}
