//! The source and the sink `kafka`. Vector passes most of their options to librdkafka, which validates them when its
//! client is created.

mod c_number;
mod client;
mod posix_pattern;
mod property;
mod relations;
mod sasl;
#[cfg(test)]
mod tests;
mod topics;

use crate::component::ComponentKind;
use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, forbid};
use crate::start_up::kafka::client::{Client, PROPERTIES};

/// Options of a batch and the properties that set the same: option, property.
const BATCH: [(&str, &str); 3] = [
    ("batch", "queue.buffering.max.ms"),
    ("batch.max_events", "batch.num.messages"),
    ("batch.max_bytes", "batch.size"),
];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if options.kind != "kafka" {
        return;
    }
    let client = Client::of(options);
    for (name, setting) in client.settings() {
        property::validate(name, setting, problems);
    }
    relations::validate(&client, problems);
    sasl::validate(&client, problems);
    match options.family {
        ComponentKind::Sink => twice(options, problems),
        ComponentKind::Source => {
            drain(options, problems);
            topics::validate(&client, problems);
        }
        ComponentKind::Transform => {}
    }
}

/// Validates that no property repeats an option of `batch`.
fn twice(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let Some(properties) = options.get(PROPERTIES) else {
        return;
    };
    for (option, property) in BATCH {
        if options.has(option) && properties.value.get(property).is_some() {
            let detail = format!("cannot be set beside `{option}`, which sets the same");
            forbid(properties.path.key(property), detail, problems);
        }
    }
}

/// Default of `session_timeout_ms`.
const SESSION_TIMEOUT_MS: u64 = 10_000;

/// Validates that a partition is drained within the session. Vector compares its own options, whatever the properties are.
fn drain(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let session = options.get("session_timeout_ms");
    let session = session.and_then(|found| found.value.as_u64());
    let session = session.unwrap_or(SESSION_TIMEOUT_MS);
    if let Some(found) = options.get("drain_timeout_ms")
        && found.value.as_u64() > Some(session)
    {
        let detail = format!("must be at most `session_timeout_ms`, which is {session}");
        found.refuse(detail, problems);
    }
}
