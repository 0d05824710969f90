//! Memory, disk and connections that components take, as far as their options say: an estimate by which the users of one process
//! can share it. Options that are not set have small defaults in Vector, which do not count.

use lockstep_shared_validation::FieldPath;
use serde_json::{Map, Value};

use crate::component::Component;

/// Size of an event: <https://vector.dev/docs/setup/going-to-prod/sizing/> calculates with 256 bytes for an unstructured one
/// and 768 for a structured one. The rest is what surrounds it in memory.
pub const EVENT_BYTES: u64 = 1024;

/// Place for an event that Vector allocates when it starts: the buffer of 10^9 events is 56 * 10^9 bytes.
const SLOT_BYTES: u64 = 56;

/// Maximum size of a batch, unless an option says something else.
const BATCH_BYTES: u64 = 10_000_000;

/// Options that are numbers of bytes in memory, in any component and at any depth.
const BYTES: [&str; 14] = [
    "cache_size_per_key",
    "capacity",
    "max_bytes",
    "max_chunk_size",
    "max_length",
    "max_line_bytes",
    "max_merged_line_bytes",
    "max_read_bytes",
    "maximum_buffer_size_bytes",
    "receive_buffer_bytes",
    "send_buffer_bytes",
    "send_buffer_size",
    "socket_receive_buffer_size",
    "socket_send_buffer_size",
];

/// Options that are numbers of events in memory, in any component and at any depth.
const EVENTS: [&str; 8] = [
    "max_events",
    "num_events",
    "num_events_after",
    "num_events_before",
    "pending_messages_limit",
    "prefetch_count",
    "queue_capacity",
    "subscriber_capacity",
];

/// Options that are numbers of connections, in any component and at any depth.
const CONNECTIONS: [&str; 7] = [
    "client_concurrency",
    "concurrency",
    "connection_limit",
    "initial_concurrency",
    "max_concurrency",
    "max_concurrency_limit",
    "pool_size",
];

/// Resource of a process that runs Vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Bytes of memory.
    Memory,
    /// Bytes of disk buffers.
    Disk,
    /// Connections, to a server or of clients.
    Connections,
}

/// Amount of a resource that an option takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// Option.
    pub path: FieldPath,
    /// Value of the option.
    pub value: Value,
    /// Resource.
    pub resource: Resource,
    /// Amount.
    pub amount: u64,
}

/// Resources that a configuration takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of components.
    pub components: u64,
    /// Bytes of names and texts: a lower bound of the configuration's, which costs hardly anything.
    pub text_bytes: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Bytes of disk buffers.
    pub disk_bytes: u64,
    /// Connections.
    pub connections: u64,
}

impl Usage {
    /// Returns the resources that components take.
    #[must_use]
    pub fn total<'a>(components: impl Iterator<Item = Component<'a>>) -> Self {
        let mut usage = Self::default();
        for component in components {
            usage.components += 1;
            usage.add(component.value, false);
        }
        usage
    }

    /// Adds what options take, without their paths, which are made for messages only.
    fn add(&mut self, value: &Value, is_batch: bool) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.add(item, is_batch)),
            Value::String(text) => self.text_bytes += bytes(text),
            Value::Object(options) => {
                for (name, value) in options {
                    self.text_bytes += bytes(name);
                    let Some((resource, amount)) = amount(options, name, value, is_batch) else {
                        self.add(value, name == "batch");
                        continue;
                    };
                    let total = match resource {
                        Resource::Memory => &mut self.memory_bytes,
                        Resource::Disk => &mut self.disk_bytes,
                        Resource::Connections => &mut self.connections,
                    };
                    *total = total.saturating_add(amount);
                }
            }
            _ => {}
        }
    }
}

fn bytes(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

/// Returns what the options of a component take.
#[must_use]
pub fn allocations(component: &Component<'_>) -> Vec<Allocation> {
    let mut found = Vec::new();
    let path = FieldPath::new(component.path());
    collect(&path, component.value, false, &mut found);
    found
}

/// Collects what options take. `is_batch` is true for those of a batch.
fn collect(path: &FieldPath, value: &Value, is_batch: bool, found: &mut Vec<Allocation>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(&path.index(index), item, is_batch, found);
            }
        }
        Value::Object(options) => {
            for (name, value) in options {
                let path = path.child(name);
                match amount(options, name, value, is_batch) {
                    Some((resource, amount)) => found.push(Allocation {
                        path,
                        value: value.clone(),
                        resource,
                        amount,
                    }),
                    None => collect(&path, value, name == "batch", found),
                }
            }
        }
        _ => {}
    }
}

/// Returns what an option takes. `siblings` are the options beside it.
fn amount(
    siblings: &Map<String, Value>,
    name: &str,
    value: &Value,
    is_batch: bool,
) -> Option<(Resource, u64)> {
    let number = number(value)?;
    let is_type = |text: &str| siblings.get("type").is_some_and(|kind| kind == text);
    let (resource, amount) = match name {
        "max_size" if is_type("disk") => (Resource::Disk, number),
        "max_size" => (Resource::Memory, number),
        "max_events" if is_batch => {
            let bytes = siblings.get("max_bytes").and_then(self::number);
            let events = number
                .saturating_mul(EVENT_BYTES)
                .min(bytes.unwrap_or(BATCH_BYTES));
            // The batch itself counts by `max_bytes`.
            let events = if bytes.is_some() { 0 } else { events };
            (
                Resource::Memory,
                events.max(number.saturating_mul(SLOT_BYTES)),
            )
        }
        _ if EVENTS.contains(&name) => (
            Resource::Memory,
            number.saturating_mul(EVENT_BYTES + SLOT_BYTES),
        ),
        _ if BYTES.contains(&name) => (Resource::Memory, number),
        _ if CONNECTIONS.contains(&name) => (Resource::Connections, number),
        _ => return None,
    };
    Some((resource, amount))
}

/// Returns a number, which Vector reads from a float and from a text with a value of a Secret, too.
fn number(value: &Value) -> Option<u64> {
    // A cast saturates.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast to an integer saturates, and negative numbers become 0"
    )]
    let rounded = |number: f64| number as u64;
    value.as_u64().or_else(|| value.as_f64().map(rounded))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::component::components;

    fn usage(config: &Value) -> Usage {
        Usage::total(components(config.as_object().expect("a configuration")))
    }

    #[test]
    fn numbers_by_which_vector_allocates_count_wherever_they_are() {
        for (block, component, memory_bytes) in [
            (
                "sinks",
                json!({"buffer": {"type": "memory", "max_events": 1000}}),
                1_080_000,
            ),
            (
                "sinks",
                json!({"buffer": [{"max_size": 7}, {"max_events": 1}]}),
                1_087,
            ),
            (
                "sinks",
                json!({"encoding": {"csv": {"capacity": 9000}}}),
                9_000,
            ),
            (
                "sinks",
                json!({"message_buffering": {"max_events": 10}}),
                10_800,
            ),
            ("sinks", json!({"batch": {"max_bytes": 5000}}), 5_000),
            ("sinks", json!({"batch": {"max_events": 1000}}), 1_024_000),
            (
                "sinks",
                json!({"batch": {"max_events": 1000, "max_bytes": 5000}}),
                61_000,
            ),
            (
                "sinks",
                json!({"batch": {"max_events": 1_000_000, "timeout_secs": 1}}),
                56_000_000,
            ),
            ("transforms", json!({"cache": {"num_events": 100}}), 108_000),
            ("transforms", json!({"queue_capacity": 100}), 108_000),
            ("transforms", json!({"num_events_before": 100}), 108_000),
            ("sources", json!({"mode": "udp", "max_length": 4096}), 4_096),
            ("sources", json!({"receive_buffer_bytes": 4096.0}), 4_096),
            ("sinks", json!({"max_events": u64::MAX}), u64::MAX),
            (
                "sinks",
                json!({"max_events": -1, "max_bytes": "SECRET[s.k]"}),
                0,
            ),
        ] {
            let mut found = usage(&json!({block: {"a": component}}));
            assert!(found.text_bytes > 5, "{found:?}");
            found.text_bytes = 0;
            let expected = Usage {
                components: 1,
                memory_bytes,
                ..Usage::default()
            };
            assert_eq!(found, expected, "{component}");
        }
    }

    #[test]
    fn disk_buffers_and_connections_count_for_themselves() {
        let mut found = usage(&json!({
            "sources": {"in": {"connection_limit": 100}},
            "sinks": {
                "a": {"buffer": {"type": "disk", "max_size": 300}, "request": {"concurrency": 10}},
                "b": {"buffer": [{"type": "memory", "max_size": 1}, {"type": "disk", "max_size": 400}]},
                "c": {"request": {"concurrency": "adaptive"}},
            },
        }));
        found.text_bytes = 0;
        let expected = Usage {
            components: 4,
            text_bytes: 0,
            memory_bytes: 1,
            disk_bytes: 700,
            connections: 110,
        };
        assert_eq!(found, expected);
    }
}
