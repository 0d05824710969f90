//! Batch: events of a receiver that are sent together.

use prost::Message;

use crate::protocol::{EventWrapper, PushEventsRequest};

/// Maximum size of a batch in bytes, unless one event is larger. A server of gRPC accepts 4 MiB, and each user who may
/// create Events chooses the length of their messages.
const MAX_BYTES: usize = 1 << 20;

/// Events that were not sent yet.
pub(crate) struct Batch {
    max_events: usize,
    events: Vec<EventWrapper>,
    bytes: usize,
}

impl Batch {
    /// Creates an empty batch.
    pub(crate) fn new(max_events: usize) -> Self {
        Self {
            max_events,
            events: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds an event.
    pub(crate) fn push(&mut self, event: EventWrapper) {
        self.bytes += event.encoded_len();
        self.events.push(event);
    }

    /// Returns true if it is to be sent before another event is added.
    pub(crate) fn is_full(&self) -> bool {
        self.events.len() >= self.max_events || self.bytes >= MAX_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns the events, which stay until they are accepted.
    pub(crate) fn request(&self) -> PushEventsRequest {
        PushEventsRequest {
            events: self.events.clone(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes = 0;
        self.events.clear();
    }
}

#[cfg(test)]
mod tests {
    use crate::protocol::{Log, Value, ValueKind};

    use super::*;

    fn event(length: usize) -> EventWrapper {
        let value = Value {
            kind: Some(ValueKind::RawBytes(vec![b'a'; length])),
        };
        EventWrapper {
            log: Some(Log { value: Some(value) }),
        }
    }

    #[test]
    fn a_batch_has_a_maximum_number_and_a_maximum_size() {
        let mut batch = Batch::new(2);
        batch.push(event(1));
        assert!(!batch.is_full());
        batch.push(event(1));
        assert!(batch.is_full());
        assert_eq!(batch.request().events.len(), 2);
        batch.clear();
        assert!(batch.is_empty() && !batch.is_full());
        batch.push(event(MAX_BYTES));
        assert!(batch.is_full());
    }
}
