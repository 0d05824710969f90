//! Options of `kafka` that contradict each other, by Vector's rules and by those of librdkafka.

use crate::component::ComponentKind;
use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, SetOption, forbid, refuse, require};

const PROPERTIES: &str = "librdkafka_options";

/// Options of a batch and the properties that set the same: option, property.
const BATCH: [(&str, &str); 3] = [
    ("batch", "queue.buffering.max.ms"),
    ("batch.max_events", "batch.num.messages"),
    ("batch.max_bytes", "batch.size"),
];

/// Default of `batch.timeout_secs`, which any option of `batch` sets.
const BATCH_TIMEOUT_SECS: f64 = 1.0;

/// Default of `message_timeout_ms`.
const MESSAGE_TIMEOUT_MS: f64 = 300_000.0;

/// Default of `session_timeout_ms`.
const SESSION_TIMEOUT_MS: u64 = 10_000;

/// Default of the property `max.poll.interval.ms`.
const MAX_POLL_INTERVAL_MS: u64 = 300_000;

/// Minimum of the property `receive.message.max.bytes` beside the default of `fetch.max.bytes`.
const MIN_RECEIVED_BYTES: u64 = 52_429_312;

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if options.kind != "kafka" {
        return;
    }
    match options.family {
        ComponentKind::Sink => {
            for (option, property) in BATCH {
                if options.has(option)
                    && let Some(found) = self::property(options, property)
                {
                    let detail = format!("cannot be set beside `{option}`, which sets the same");
                    forbid(found.path, detail, problems);
                }
            }
            linger(options, problems);
            idempotence(options, problems);
        }
        ComponentKind::Source => consumer(options, problems),
        ComponentKind::Transform => {}
    }
    credentials(options, problems);
}

/// Validates that a message does not time out while it waits for its batch.
fn linger(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let names = ["message.timeout.ms", "delivery.timeout.ms"];
    let is_overridden = names.iter().any(|name| property(options, name).is_some());
    if !options.has("batch") || is_overridden {
        return;
    }
    let number = |option: &str| options.get(option).and_then(|found| found.value.as_f64());
    let linger = number("batch.timeout_secs").unwrap_or(BATCH_TIMEOUT_SECS) * 1_000.0;
    let timeout = number("message_timeout_ms").unwrap_or(MESSAGE_TIMEOUT_MS);
    if timeout > 0.0 && timeout <= linger {
        let detail = format!("must be greater than `batch.timeout_secs`, which is {linger} ms");
        match options.get("message_timeout_ms") {
            Some(found) => found.refuse(detail, problems),
            None => forbid(
                options.path("batch.timeout_secs"),
                format!("must be less than `message_timeout_ms`, which is {timeout} ms"),
                problems,
            ),
        }
    }
}

/// Validates that an idempotent producer waits for all replicas.
fn idempotence(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let is_idempotent = text(options, "enable.idempotence").is_some_and(|it| it == "true");
    if !is_idempotent {
        return;
    }
    for name in ["acks", "request.required.acks"] {
        if let Some(value) = text(options, name).filter(|it| !["all", "-1"].contains(it)) {
            let path = options.path(PROPERTIES).key(name);
            let detail = "must be `all` with `enable.idempotence`";
            refuse(path, value, detail, problems);
        }
    }
}

fn consumer(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let number = |option: &str| options.get(option).and_then(|found| found.value.as_u64());
    let session = number("session_timeout_ms").unwrap_or(SESSION_TIMEOUT_MS);
    if let Some(found) = options.get("drain_timeout_ms")
        && found.value.as_u64() > Some(session)
    {
        let detail = format!("must be at most `session_timeout_ms`, which is {session}");
        found.refuse(detail, problems);
    }
    let interval = property(options, "max.poll.interval.ms");
    if interval.is_none() && session > MAX_POLL_INTERVAL_MS {
        let detail = format!(
            "must be at most `max.poll.interval.ms`, which is {MAX_POLL_INTERVAL_MS} unless `{PROPERTIES}` sets it"
        );
        if let Some(found) = options.get("session_timeout_ms") {
            found.refuse(detail, problems);
        }
    }
    if let Some(protocol) = text(options, "group.protocol")
        && protocol.eq_ignore_ascii_case("consumer")
    {
        let path = options.path(PROPERTIES).key("group.protocol");
        let detail = "must be `classic`: Vector sets the session timeout, which the other protocol does not have";
        refuse(path, protocol, detail, problems);
    }
    let received = text(options, "receive.message.max.bytes");
    if let Some(bytes) = received
        && property(options, "fetch.max.bytes").is_none()
        && bytes.parse::<u64>().is_ok_and(|it| it < MIN_RECEIVED_BYTES)
    {
        let path = options.path(PROPERTIES).key("receive.message.max.bytes");
        let detail =
            format!("must be at least {MIN_RECEIVED_BYTES} unless `fetch.max.bytes` is set");
        refuse(path, bytes, detail, problems);
    }
}

/// Validates that the SASL mechanisms with a password have a user and a password.
fn credentials(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let mechanism = options.text("sasl.mechanism").map(|(_, text)| text);
    let has_password = mechanism.is_some_and(|it| it == "PLAIN" || it.starts_with("SCRAM-SHA-"));
    let is_overridden = ["sasl.mechanism", "sasl.mechanisms"]
        .iter()
        .any(|name| property(options, name).is_some());
    if !options.is_true("sasl.enabled") || !has_password || is_overridden {
        return;
    }
    for (option, property) in [
        ("sasl.username", "sasl.username"),
        ("sasl.password", "sasl.password"),
    ] {
        let is_set = |found: SetOption<'_>| found.value != "";
        let is_given = options.get(option).is_some_and(is_set)
            || self::property(options, property).is_some_and(is_set);
        if !is_given {
            let detail = "must be set with this mechanism";
            require(options.path(option), detail, problems);
        }
    }
}

/// Returns a configuration property of librdkafka that the configuration names.
fn property<'a>(options: &ComponentOptions<'a>, name: &str) -> Option<SetOption<'a>> {
    let properties = options.get(PROPERTIES)?;
    let value = properties.value.get(name)?;
    let path = properties.path.key(name);
    Some(SetOption { path, value })
}

/// Returns a property whose value is known.
fn text<'a>(options: &ComponentOptions<'a>, name: &str) -> Option<&'a str> {
    let text = property(options, name)?.value.as_str()?;
    (!options.interpolation.is_replaced(text)).then_some(text)
}
