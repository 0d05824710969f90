//! Tests of properties that depend on each other.

use serde_json::{Value, json};

use crate::interpolation::Interpolation;
use crate::start_up::tests::paths_with;

/// Returns the paths with problems of a component with these options besides the required ones.
fn paths(block: &str, options: &Value) -> Vec<String> {
    let mut component = match block {
        "sources" => {
            json!({"type": "kafka", "bootstrap_servers": "k:9092", "group_id": "g", "topics": ["t"]})
        }
        _ => {
            json!({"type": "kafka", "bootstrap_servers": "k:9092", "topic": "t", "encoding": {"codec": "json"}})
        }
    };
    let fields = component.as_object_mut().expect("an object");
    fields.extend(options.as_object().expect("an object").clone());
    paths_with(Interpolation::On, block, &component)
}

fn sink(properties: &Value) -> Vec<String> {
    paths("sinks", &json!({"librdkafka_options": properties}))
}

fn source(properties: &Value) -> Vec<String> {
    paths("sources", &json!({"librdkafka_options": properties}))
}

const NOTHING: [&str; 0] = [];

#[test]
fn values_are_read_as_librdkafka_reads_them() {
    for (name, valid, invalid) in [
        ("linger.ms", "5ms", "abc"),
        ("linger.ms", "0x10", ""),
        ("retries", " 0x10", "many"),
        ("max.in.flight", "010", "0"),
        ("debug", "-all, +Broker,", "broker ,topic"),
        ("debug", "generic", "foo"),
        ("compression.codec", " GZIP", "gzip "),
        ("check.crcs", "T", " true"),
        ("partitioner", " random", "Random"),
        ("acks", "ALL", "some"),
        ("acks", "1000", "1001"),
        ("broker.version.fallback", "0.8.2", "0.7.1"),
        (
            "partition.assignment.strategy",
            "range, roundrobin",
            "range, ",
        ),
        (
            "partition.assignment.strategy",
            "cooperative-sticky",
            "cooperative-sticky,range",
        ),
        ("topic.blacklist", "^a,^(b)", "^a,^("),
        ("test.mock.num.brokers", "0", "-1"),
    ] {
        let path = format!("librdkafka_options[{name}]");
        assert_eq!(sink(&json!({ (name): invalid })), [path], "{invalid}");
        assert_eq!(sink(&json!({ (name): valid })), NOTHING, "{name}: {valid}");
    }
}

#[test]
fn an_idempotent_producer_keeps_order_and_waits_for_all_replicas() {
    for (name, invalid, valid) in [
        ("acks", "1", "all"),
        ("request.required.acks", "0", "-1"),
        ("max.in.flight", "6", "5"),
        ("max.in.flight.requests.per.connection", "6", "5"),
        ("retries", "0", "1"),
        ("queue.buffering.backpressure.threshold", "2", "1"),
        ("queuing.strategy", "LIFO", "fifo"),
    ] {
        let path = format!("librdkafka_options[{name}]");
        let with =
            |flag: &str, value: &str| sink(&json!({"enable.idempotence": flag, (name): value}));
        assert_eq!(with("T", invalid), [path], "{name}");
        assert_eq!(with("true", valid), NOTHING, "{name}");
        assert_eq!(with("false", invalid), NOTHING, "{name}");
        assert_eq!(with("${IDEMPOTENT}", invalid), NOTHING, "{name}");
    }
    let gapless =
        |flag| sink(&json!({"enable.gapless.guarantee": "true", "enable.idempotence": flag}));
    assert_eq!(gapless("true"), NOTHING);
    assert_eq!(
        gapless("false"),
        ["librdkafka_options[enable.gapless.guarantee]"]
    );
}

#[test]
fn a_transaction_outlasts_its_messages_and_requests() {
    let limited = |limit: &str, message: u64| {
        let properties = &json!({"transactional.id": "a", "transaction.timeout.ms": limit});
        paths(
            "sinks",
            &json!({"message_timeout_ms": message, "librdkafka_options": properties}),
        )
    };
    assert_eq!(limited("60000", 60_000), NOTHING);
    assert_eq!(limited("60000", 60_001), ["message_timeout_ms"]);
    assert_eq!(
        limited("59899", 1_000),
        ["librdkafka_options[transaction.timeout.ms]"]
    );
    // The default of the time-out of messages is longer than that of transactions.
    assert_eq!(
        sink(&json!({"transactional.id": "a"})),
        ["librdkafka_options[transactional.id]"]
    );
    assert_eq!(sink(&json!({"transactional.id": ""})), NOTHING);
    let disabled = &json!({"transactional.id": "a", "transaction.timeout.ms": "300000", "enable.idempotence": "false"});
    assert_eq!(sink(disabled), ["librdkafka_options[enable.idempotence]"]);
}

#[test]
fn a_message_outlasts_its_batch() {
    let both = |linger: &str, timeout: u64| {
        paths(
            "sinks",
            &json!({"message_timeout_ms": timeout, "librdkafka_options": {"linger.ms": linger}}),
        )
    };
    assert_eq!(both("500", 500), ["message_timeout_ms"]);
    assert_eq!(both("500", 501), NOTHING);
    assert_eq!(both("500", 0), NOTHING);
    // Without an explicit time, librdkafka adapts its own.
    assert_eq!(paths("sinks", &json!({"message_timeout_ms": 1})), NOTHING);
    // Vector sets the two names of the property in no fixed order.
    let twice = &json!({"message_timeout_ms": 1, "librdkafka_options": {"delivery.timeout.ms": "1000", "linger.ms": "500"}});
    assert_eq!(paths("sinks", twice), NOTHING);
}

#[test]
fn a_consumer_polls_within_its_session_and_receives_what_it_fetches() {
    assert_eq!(
        source(&json!({"max.poll.interval.ms": "9999"})),
        ["session_timeout_ms"].map(|_| "librdkafka_options[max.poll.interval.ms]")
    );
    assert_eq!(source(&json!({"max.poll.interval.ms": "10000"})), NOTHING);
    assert_eq!(
        source(&json!({"session.timeout.ms": "300001"})),
        ["librdkafka_options[session.timeout.ms]"]
    );
    assert_eq!(
        source(&json!({"session.timeout.ms": "300001", "max.poll.interval.ms": "300001"})),
        NOTHING
    );
    assert_eq!(
        source(&json!({"fetch.max.bytes": "999999"})),
        ["librdkafka_options[fetch.max.bytes]"]
    );
    assert_eq!(
        source(&json!({"fetch.max.bytes": "1000000", "receive.message.max.bytes": "1000511"})),
        ["librdkafka_options[receive.message.max.bytes]"]
    );
    assert_eq!(
        source(
            &json!({"queued.max.messages.kbytes": "1024", "receive.message.max.bytes": "1049088"})
        ),
        NOTHING
    );
    assert_eq!(
        source(&json!({"reconnect.backoff.ms": "10001"})),
        ["librdkafka_options[reconnect.backoff.ms]"]
    );
}

#[test]
fn topics_are_unique_and_their_patterns_compile() {
    let topics = |topics: &[&str]| paths("sources", &json!({"topics": topics}));
    assert_eq!(topics(&["a", "^b.*", "("]), NOTHING);
    assert_eq!(topics(&[]), ["topics"]);
    assert_eq!(topics(&[""]), ["topics[0]"]);
    assert_eq!(topics(&["a", "b", "a"]), ["topics[2]"]);
    assert_eq!(topics(&["^("]), ["topics[0]"]);
    assert_eq!(topics(&["${A}", "${A}"]), NOTHING);
    assert_eq!(paths("sources", &json!({"group_id": " "})), ["group_id"]);
    assert_eq!(
        paths(
            "sources",
            &json!({"group_id": "", "librdkafka_options": {"group.id": "g"}})
        ),
        NOTHING
    );
}

#[test]
fn the_protocol_that_is_used_selects_what_authentication_requires() {
    let enabled = |properties: &Value| {
        paths(
            "sinks",
            &json!({"sasl": {"enabled": true}, "librdkafka_options": properties}),
        )
    };
    assert_eq!(enabled(&json!({})), ["sasl.mechanism"]);
    assert_eq!(enabled(&json!({"security.protocol": "plaintext"})), NOTHING);
    assert_eq!(
        enabled(&json!({"sasl.kerberos.min.time.before.relogin": "0"})),
        NOTHING
    );
    let password =
        &json!({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u"});
    assert_eq!(sink(password), ["sasl.password"]);
    let tokens = &json!({"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc"});
    assert_eq!(sink(tokens).len(), 3);
}
