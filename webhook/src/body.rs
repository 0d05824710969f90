//! The bytes of a request, taken in as far as there is room for them.

use std::sync::Arc;

use axum::body::Body;
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{Limit, Limits};
use crate::metrics::Metrics;
use crate::refusal::RequestError;

/// What is held of all bodies together.
#[derive(Clone)]
pub(crate) struct MemoryBudget {
    bytes: Arc<Semaphore>,
    limits: Limits,
    metrics: Metrics,
}

/// A whole body; the room that it takes is free again when this is dropped.
pub(crate) struct BufferedBody {
    pub(crate) bytes: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
    weight: Option<OwnedSemaphorePermit>,
}

impl MemoryBudget {
    pub(crate) fn new(limits: &Limits, metrics: &Metrics) -> Self {
        Self {
            bytes: Arc::new(Semaphore::new(
                limits.max_inflight_bytes.min(Semaphore::MAX_PERMITS),
            )),
            limits: limits.clone(),
            metrics: metrics.clone(),
        }
    }

    /// Takes in a body of at most so many bytes. Room is taken for what has arrived, not for what is
    /// announced: a client that sends little holds little.
    pub(crate) async fn read(&self, body: Body, most: usize) -> Result<BufferedBody, RequestError> {
        tokio::time::timeout(self.limits.body_timeout, self.collect(body, most))
            .await
            .map_err(|_| {
                self.metrics.rejected(Limit::Body);
                RequestError::timed_out()
            })?
    }

    /// Takes room for what a body becomes when it is read, which may be far more than its bytes.
    pub(crate) fn reserve_for_parse(
        &self,
        received: &mut BufferedBody,
    ) -> Result<(), RequestError> {
        let weight = parsed_size_estimate(&received.bytes).saturating_mul(COPIES);
        if weight > self.limits.max_inflight_bytes {
            self.metrics.rejected(Limit::InflightBytes);
            return Err(RequestError::too_much_memory(
                self.limits.max_inflight_bytes,
            ));
        }
        received.weight = Some(self.reserve(weight)?);
        Ok(())
    }

    /// Takes room, if there is as much.
    fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, RequestError> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let taken = Arc::clone(&self.bytes).try_acquire_many_owned(bytes);
        taken.map_err(|_| {
            self.metrics.rejected(Limit::InflightBytes);
            RequestError::overloaded()
        })
    }

    async fn collect(&self, mut body: Body, most: usize) -> Result<BufferedBody, RequestError> {
        let mut bytes = Vec::new();
        let mut room: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                RequestError::bad_request(format!("the body broke off: {error}"))
            })?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if bytes.len() + data.len() > most {
                self.metrics.rejected(Limit::RequestBytes);
                return Err(RequestError::too_large(most));
            }
            let more = self.reserve(data.len())?;
            match &mut room {
                Some(room) => room.merge(more),
                None => room = Some(more),
            }
            bytes.extend_from_slice(&data);
        }
        Ok(BufferedBody {
            bytes,
            _room: room,
            weight: None,
        })
    }
}

/// What an item of a list, or a field, takes in memory; rather more of an item, and less of a field.
const ITEM_BYTES: usize = 64;

/// What an object takes that has any field: its first node has room for eleven.
const OBJECT_BYTES: usize = 700;

/// The object as it is read, as it is judged, and what becomes of it meanwhile.
const COPIES: usize = 3;

/// About what JSON takes once it is read, without the texts in it. Commas and braces within texts count as
/// well, so that this is rather too much.
fn parsed_size_estimate(json: &[u8]) -> usize {
    let weights = json.iter().map(|byte| match byte {
        b',' => ITEM_BYTES,
        b'{' => OBJECT_BYTES,
        _ => 0,
    });
    weights.sum()
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;

    fn received(bytes: Vec<u8>) -> BufferedBody {
        BufferedBody {
            bytes,
            _room: None,
            weight: None,
        }
    }

    #[test]
    fn what_grows_when_it_is_read_takes_room_for_that() {
        let limits = Limits {
            max_inflight_bytes: 1 << 20,
            ..Limits::default()
        };
        let room = MemoryBudget::new(&limits, &Metrics::register(&mut Registry::default()));
        let mut long = received(vec![b'x'; 4 << 20]);
        assert!(
            room.reserve_for_parse(&mut long).is_ok(),
            "texts stay what they are"
        );
        let mut items = received(b"0,".repeat(5_000));
        assert!(room.reserve_for_parse(&mut items).is_ok());
        let mut more = received(b"0,".repeat(5_000));
        let refusal = room
            .reserve_for_parse(&mut more)
            .expect_err("both together are too much");
        assert_eq!(refusal.code.as_u16(), 429);
        drop(items);
        assert!(
            room.reserve_for_parse(&mut more).is_ok(),
            "there is room again"
        );
        let mut objects = received(b"{\"a\":0},".repeat(1_000));
        let refusal = room
            .reserve_for_parse(&mut objects)
            .expect_err("too much at any time");
        assert_eq!(refusal.code.as_u16(), 413);
    }
}
