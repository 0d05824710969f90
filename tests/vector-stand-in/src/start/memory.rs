//! Memory and disk that components take when they are built.

use serde_json::Value;

use crate::start::component::Component;
use crate::start::machine::Machine;

/// Bytes of a place in a queue of events (`lib/vector-buffers/src/topology/channel/limited_queue.rs`): measured, 56 GB for 10^9.
const SLOT_BYTES: u64 = 56;

/// Default number of events of a buffer in memory (`lib/vector-buffers/src/config.rs`).
const DEFAULT_EVENTS: u64 = 500;

/// Smallest disk buffer, in bytes (`lib/vector-buffers/src/variants/disk_v2/common.rs`).
const SMALLEST_DISK: u64 = 268_435_488;

/// Options other than those of buffers with numbers of events for which memory is allocated at once.
const ALLOCATED: [&str; 4] = [
    "num_events",
    "num_events_before",
    "queue_capacity",
    "subscriber_capacity",
];

/// Refuses disk buffers that are too small, or together larger than the disk, and memory beyond that of the machine.
pub(crate) fn check(components: &[Component<'_>], machine: &Machine) -> Result<(), String> {
    let (mut memory, mut disk) = (0_u64, 0_u64);
    for component in components {
        for stage in stages(&component.options["buffer"]) {
            if stage["type"] == "disk" {
                let bytes = stage["max_size"].as_u64().unwrap_or_default();
                if bytes < SMALLEST_DISK {
                    return Err(format!(
                        "{}: `max_size` must be at least {SMALLEST_DISK}",
                        component.id
                    ));
                }
                disk = disk.saturating_add(bytes);
            } else {
                let events = stage["max_events"].as_u64().unwrap_or(DEFAULT_EVENTS);
                memory = memory.saturating_add(events.saturating_mul(SLOT_BYTES));
            }
        }
        memory = memory.saturating_add(allocated(component.options));
    }
    if disk > machine.disk_bytes {
        return Err(format!(
            "disk buffers of {disk} bytes on a disk of {}",
            machine.disk_bytes
        ));
    }
    if memory > machine.memory_bytes {
        return Err(format!("killed: out of memory ({memory} bytes)"));
    }
    Ok(())
}

/// Returns the stages of a buffer.
fn stages(buffer: &Value) -> Vec<&Value> {
    match buffer {
        Value::Null => Vec::new(),
        Value::Array(stages) => stages.iter().collect(),
        stage => vec![stage],
    }
}

/// Returns the bytes for other numbers of events, at any depth.
fn allocated(options: &Value) -> u64 {
    let nested = |value: &Value| match value {
        Value::Object(_) | Value::Array(_) => allocated(value),
        _ => 0,
    };
    match options {
        Value::Object(fields) => fields.iter().fold(0_u64, |total, (name, value)| {
            let is_allocated = ALLOCATED.contains(&&**name);
            let events = value.as_u64().filter(|_| is_allocated).unwrap_or_default();
            total
                .saturating_add(events.saturating_mul(SLOT_BYTES))
                .saturating_add(nested(value))
        }),
        Value::Array(items) => items.iter().map(nested).fold(0, u64::saturating_add),
        _ => 0,
    }
}
