//! Properties that contradict each other, by the rules with which librdkafka creates a client.
//!
//! <https://github.com/confluentinc/librdkafka/blob/v2.12.1/src/rdkafka_conf.c>, `rd_kafka_conf_finalize`.

use crate::component::ComponentKind;
use crate::diagnostic::DiagnosticList;
use crate::start_up::kafka::c_number;
use crate::start_up::kafka::client::{Client, State};

/// Requests in flight of an idempotent producer.
const IDEMPOTENT_IN_FLIGHT: i32 = 5;

/// Default of `transaction.timeout.ms`.
const TRANSACTION_TIMEOUT_MS: i32 = 60_000;

/// Difference that `socket.timeout.ms` may have to `transaction.timeout.ms`.
const TRANSACTION_MARGIN_MS: i32 = 100;

/// Default of `max.poll.interval.ms`.
const MAX_POLL_INTERVAL_MS: i32 = 300_000;

/// Default of `session.timeout.ms`.
const SESSION_TIMEOUT_MS: i32 = 45_000;

/// Default of `fetch.max.bytes`.
const FETCH_BYTES: i32 = 52_428_800;

/// Default of `message.max.bytes`.
const MESSAGE_BYTES: i32 = 1_000_000;

/// Default of `queued.max.messages.kbytes`.
const QUEUED_KBYTES: i32 = 65_536;

/// Bytes of a response besides what is fetched.
const RESPONSE_OVERHEAD: i32 = 512;

/// Defaults of `reconnect.backoff.ms` and `reconnect.backoff.max.ms`.
const RECONNECT_MS: (i32, i32) = (100, 10_000);

pub(crate) fn validate(client: &Client<'_>, problems: &mut DiagnosticList) {
    match client.options.family {
        ComponentKind::Sink => producer(client, problems),
        ComponentKind::Source => consumer(client, problems),
        ComponentKind::Transform => {}
    }
    both(client, problems);
}

/// Validates what any client requires.
fn both(client: &Client<'_>, problems: &mut DiagnosticList) {
    let names = ["reconnect.backoff.ms", "reconnect.backoff.max.ms"];
    let first = client.integer(names[0], RECONNECT_MS.0);
    let last = client.integer(names[1], RECONNECT_MS.1);
    if let (Some(first), Some(last)) = (first, last)
        && last < first
    {
        let detail = format!(
            "`{}`, which is {last}, must be at least `{}`, which is {first}",
            names[1], names[0]
        );
        client.report(&names, &detail, problems);
    }
    let keystore = "ssl.keystore.location";
    if client.has_text(keystore) == Some(true)
        && client.has_text("ssl.keystore.password") == Some(false)
    {
        let detail = "requires `ssl.keystore.password`";
        client.report(&[keystore], detail, problems);
    }
    let names = ["https.ca.location", "https.ca.pem"];
    if names.iter().all(|name| client.has_text(name) == Some(true)) {
        let detail = "cannot be set beside `https.ca.location`; remove one of them";
        client.report(&[names[1]], detail, problems);
    }
}

fn producer(client: &Client<'_>, problems: &mut DiagnosticList) {
    let is_transactional = client.has_text("transactional.id");
    let is_enabled = client.boolean("enable.idempotence");
    if is_transactional == Some(true) {
        transactions(client, problems);
    }
    // Transactions include idempotence.
    match (is_transactional, is_enabled) {
        (Some(true), _) | (_, Some(true)) => idempotence(client, problems),
        (Some(false), Some(false)) => {
            let gapless = "enable.gapless.guarantee";
            if client.boolean(gapless) == Some(true) {
                let detail = "requires `enable.idempotence: \"true\"`";
                client.report(&[gapless], detail, problems);
            }
        }
        _ => {}
    }
    linger(client, problems);
}

/// Validates the properties of a producer with transactions.
fn transactions(client: &Client<'_>, problems: &mut DiagnosticList) {
    let idempotence = "enable.idempotence";
    if client.is_set(idempotence) && client.boolean(idempotence) == Some(false) {
        client.report(
            &[idempotence],
            "must be true with `transactional.id`",
            problems,
        );
    }
    let limit = "transaction.timeout.ms";
    let Some(timeout) = client.integer(limit, TRANSACTION_TIMEOUT_MS) else {
        return;
    };
    for (name, margin) in [
        ("socket.timeout.ms", TRANSACTION_MARGIN_MS),
        ("message.timeout.ms", 0),
    ] {
        let most = timeout.saturating_add(margin);
        // Vector sets both properties.
        if let Some(value) = client.integer(name, 0)
            && value > most
        {
            let detail = format!(
                "`{name}`, which is {value}, must be at most {most}, by `{limit}`, with `transactional.id`"
            );
            client.report(&[name, limit, "transactional.id"], &detail, problems);
        }
    }
}

/// Validates the properties of a producer that repeats no message.
fn idempotence(client: &Client<'_>, problems: &mut DiagnosticList) {
    let is_within = |name, range: std::ops::RangeInclusive<i32>| {
        let value = client.integer(name, *range.start());
        value.is_none_or(|value| range.contains(&value))
    };
    let is_all = match client.state("acks") {
        State::Is(text) => text.eq_ignore_ascii_case("all") || is_within("acks", -1..=-1),
        State::Unset | State::Unknown => true,
    };
    let is_fifo = client.is_one_of("queuing.strategy", "fifo", &["fifo", ""]);
    for (name, is_valid, detail) in [
        (
            "max.in.flight",
            is_within("max.in.flight", i32::MIN..=IDEMPOTENT_IN_FLIGHT),
            "must be at most 5",
        ),
        (
            "retries",
            is_within("retries", 1..=i32::MAX),
            "must be at least 1",
        ),
        (
            "queue.buffering.backpressure.threshold",
            is_within("queue.buffering.backpressure.threshold", 1..=1),
            "must be 1",
        ),
        ("acks", is_all, "must be `all`"),
        ("queuing.strategy", is_fifo != Some(false), "must be `fifo`"),
    ] {
        if !is_valid {
            let detail = format!("{detail} with `enable.idempotence` or `transactional.id`");
            client.report(&[name], &detail, problems);
        }
    }
}

/// Validates that a message does not time out while it waits for its batch.
fn linger(client: &Client<'_>, problems: &mut DiagnosticList) {
    let State::Is(linger) = client.state("linger.ms") else {
        return;
    };
    // Vector sets the time-out.
    let (Some(linger), Some(timeout)) = (
        c_number::number(linger),
        client.integer("message.timeout.ms", 0),
    ) else {
        return;
    };
    let is_too_late = timeout != 0 && f64::from(timeout) <= linger;
    if !is_too_late {
        return;
    }
    let property = "message.timeout.ms";
    if client.is_written(property) {
        let own = if client.options.has("batch") {
            "batch.timeout_secs"
        } else {
            "linger.ms"
        };
        let detail = format!("must be greater than `{own}`, which is {linger} ms");
        client.report(&[property], &detail, problems);
    } else {
        let detail = format!("must be less than `message_timeout_ms`, which is {timeout} ms");
        client.report(&["linger.ms"], &detail, problems);
    }
}

fn consumer(client: &Client<'_>, problems: &mut DiagnosticList) {
    let protocol = client.is_one_of("group.protocol", "classic", &["consumer"]);
    if protocol == Some(true) {
        let detail = "must be `classic`: Vector sets the session timeout, which the other protocol does not have";
        client.report(&["group.protocol"], detail, problems);
    }
    let session = client.integer("session.timeout.ms", SESSION_TIMEOUT_MS);
    let interval = client.integer("max.poll.interval.ms", MAX_POLL_INTERVAL_MS);
    if let (Some(session), Some(interval), Some(false)) = (session, interval, protocol)
        && session > interval
    {
        let detail = format!(
            "`session_timeout_ms`, which is {session}, must be at most `max.poll.interval.ms`, which is {interval}"
        );
        let names = ["session.timeout.ms", "max.poll.interval.ms"];
        client.report(&names, &detail, problems);
    }
    sizes(client, problems);
}

/// Validates that a message fits into what is fetched, and this into a response.
fn sizes(client: &Client<'_>, problems: &mut DiagnosticList) {
    let fetch = "fetch.max.bytes";
    let (Some(fetched), Some(message), Some(queued)) = (
        client.integer(fetch, FETCH_BYTES),
        client.integer("message.max.bytes", MESSAGE_BYTES),
        client.integer("queued.max.messages.kbytes", QUEUED_KBYTES),
    ) else {
        return;
    };
    let fetched = if client.is_set(fetch) {
        if fetched < message {
            let detail = format!(
                "`{fetch}`, which is {fetched}, must be at least `message.max.bytes`, which is {message}"
            );
            client.report(&[fetch, "message.max.bytes"], &detail, problems);
        }
        fetched
    } else {
        fetched.min(queued.saturating_mul(1024)).max(message)
    };
    let received = "receive.message.max.bytes";
    let least = fetched.saturating_add(RESPONSE_OVERHEAD);
    if let Some(bytes) = client.integer(received, i32::MAX)
        && bytes < least
    {
        let detail = format!("must be at least {least}: `{fetch}` and {RESPONSE_OVERHEAD}");
        client.report(&[received], &detail, problems);
    }
}
