//! Request bodies, buffered within a memory limit.

use std::sync::Arc;

use axum::body::Body;
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::admission::error::RequestError;
use crate::limits::{Limit, Limits};
use crate::metrics::Metrics;

/// Memory limit shared by all request bodies.
#[derive(Clone)]
pub(crate) struct MemoryBudget {
    bytes: Arc<Semaphore>,
    limits: Limits,
    metrics: Metrics,
}

/// Complete request body. Dropping it releases the memory that it has reserved.
pub(crate) struct BufferedBody {
    pub(crate) bytes: Vec<u8>,
    _reserved: Option<OwnedSemaphorePermit>,
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

    /// Reads a body of at most `most` bytes, the limit of its endpoint. Memory is reserved for the bytes that have
    /// arrived, not for `Content-Length`, so that a client that sends little reserves little.
    pub(crate) async fn read(
        &self,
        body: Body,
        (most, limit): (usize, Limit),
    ) -> Result<BufferedBody, RequestError> {
        tokio::time::timeout(self.limits.body_timeout, self.collect(body, most, limit))
            .await
            .map_err(|_| {
                self.metrics.rejected(Limit::BodyTimeout);
                RequestError::timed_out()
            })?
    }

    /// Reserves memory for the parsed form of a body, which may be far larger than its bytes.
    pub(crate) fn reserve_for_parse(
        &self,
        received: &mut BufferedBody,
    ) -> Result<(), RequestError> {
        let weight = parsed_size_estimate(&received.bytes).saturating_mul(COPIES);
        if weight > self.limits.max_inflight_bytes {
            self.metrics.rejected(Limit::MaxInflightBytes);
            return Err(RequestError::too_much_memory(
                self.limits.max_inflight_bytes,
            ));
        }
        received.weight = Some(self.reserve(weight)?);
        Ok(())
    }

    /// Reserves memory, or fails if less than that is free.
    fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, RequestError> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.bytes).try_acquire_many_owned(bytes);
        permit.map_err(|_| {
            self.metrics.rejected(Limit::MaxInflightBytes);
            RequestError::overloaded()
        })
    }

    async fn collect(
        &self,
        mut body: Body,
        most: usize,
        limit: Limit,
    ) -> Result<BufferedBody, RequestError> {
        let mut bytes = Vec::new();
        let mut reserved: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                RequestError::bad_request(format!("cannot read the body: {error}"))
            })?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if bytes.len() + data.len() > most {
                self.metrics.rejected(limit);
                return Err(RequestError::too_large(most));
            }
            let more = self.reserve(data.len())?;
            match &mut reserved {
                Some(reserved) => reserved.merge(more),
                None => reserved = Some(more),
            }
            bytes.extend_from_slice(&data);
        }
        Ok(BufferedBody {
            bytes,
            _reserved: reserved,
            weight: None,
        })
    }
}

/// Memory estimate for a list item or a field: rather too high for an item, and too low for a field.
const ITEM_BYTES: usize = 64;

/// Memory estimate for an object with at least one field: its first B-tree node has room for eleven.
const OBJECT_BYTES: usize = 700;

/// Number of copies of an object in memory: as parsed, as validated, and one for intermediate values.
const COPIES: usize = 3;

/// Memory estimate for parsed JSON, without the strings in it. Commas and braces within strings are counted, too,
/// so the estimate is rather too high.
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
    use super::*;

    fn received(bytes: Vec<u8>) -> BufferedBody {
        BufferedBody {
            bytes,
            _reserved: None,
            weight: None,
        }
    }

    #[test]
    fn memory_is_reserved_for_the_parsed_form_of_a_body() {
        let limits = Limits {
            max_inflight_bytes: 1 << 20,
            ..Limits::default()
        };
        let budget = MemoryBudget::new(&limits, &Metrics::unregistered());
        let mut long = received(vec![b'x'; 4 << 20]);
        assert!(
            budget.reserve_for_parse(&mut long).is_ok(),
            "strings do not grow when parsed"
        );
        let mut items = received(b"0,".repeat(5_000));
        assert!(budget.reserve_for_parse(&mut items).is_ok());
        let mut more = received(b"0,".repeat(5_000));
        let error = budget
            .reserve_for_parse(&mut more)
            .expect_err("both together exceed the limit");
        assert_eq!(error.code.as_u16(), 429);
        drop(items);
        assert!(
            budget.reserve_for_parse(&mut more).is_ok(),
            "the memory has been released"
        );
        let mut objects = received(b"{\"a\":0},".repeat(1_000));
        let error = budget
            .reserve_for_parse(&mut objects)
            .expect_err("this body alone exceeds the limit");
        assert_eq!(error.code.as_u16(), 413);
    }
}
