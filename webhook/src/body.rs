//! Request and response bodies, buffered within a memory limit.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use http_body_util::{BodyExt, Limited};
use memchr::memchr_iter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::admission::error::RequestError;
use crate::limits::{Limit, Limits};
use crate::metrics::Metrics;

/// Memory limit shared by all request and response bodies.
#[derive(Clone)]
pub(crate) struct MemoryBudget {
    bytes: Arc<Semaphore>,
    /// Part of the memory that these bodies may use, if not all.
    share: Option<Arc<Semaphore>>,
    /// Maximum memory for one body.
    most: usize,
    limits: Limits,
    metrics: Metrics,
}

/// Memory that is reserved until this is dropped.
pub(crate) struct Reservation {
    bytes: OwnedSemaphorePermit,
    share: Option<OwnedSemaphorePermit>,
}

impl Reservation {
    fn merge(&mut self, more: Self) {
        self.bytes.merge(more.bytes);
        match (&mut self.share, more.share) {
            (Some(share), Some(more)) => share.merge(more),
            (share, more) => *share = share.take().or(more),
        }
    }

    /// Releases all memory but `bytes`.
    fn shrink_to(&mut self, bytes: usize) {
        for permit in [Some(&mut self.bytes), self.share.as_mut()]
            .into_iter()
            .flatten()
        {
            drop(permit.split(permit.num_permits().saturating_sub(bytes)));
        }
    }
}

/// Complete request body. Dropping it releases the memory that it has reserved.
pub(crate) struct BufferedBody {
    pub(crate) bytes: Vec<u8>,
    reserved: Option<Reservation>,
}

impl BufferedBody {
    /// Drops the body, and returns the memory that it has reserved.
    pub(crate) fn into_reservation(self) -> Option<Reservation> {
        self.reserved
    }
}

/// Response body with the memory that it has reserved. HTTP drops it when the client has read it.
struct ReservedBytes {
    bytes: Vec<u8>,
    _reserved: Option<Reservation>,
}

impl AsRef<[u8]> for ReservedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl MemoryBudget {
    pub(crate) fn new(limits: &Limits, metrics: &Metrics) -> Self {
        Self {
            bytes: semaphore(limits.max_inflight_bytes),
            share: None,
            most: limits.max_inflight_bytes,
            limits: limits.clone(),
            metrics: metrics.clone(),
        }
    }

    /// Returns the part of this budget that conversions may use. Their responses can be large, and clients that do not
    /// read them would otherwise keep all memory from admission reviews.
    pub(crate) fn for_conversions(&self) -> Self {
        let most = self.most / 4 * 3;
        Self {
            share: Some(semaphore(most)),
            most,
            ..self.clone()
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

    /// Reserves memory for the handling of a body, which may need far more than its bytes.
    pub(crate) fn reserve_for_handling(
        &self,
        received: &mut BufferedBody,
        bytes: usize,
    ) -> Result<(), RequestError> {
        let held = received.reserved.as_ref().map_or(0, held);
        add(&mut received.reserved, self.reserve_more(held, bytes)?);
        Ok(())
    }

    /// Reserves memory for a request that already holds some.
    pub(crate) fn reserve_more(
        &self,
        held: usize,
        bytes: usize,
    ) -> Result<Reservation, RequestError> {
        if held.saturating_add(bytes) > self.most {
            self.metrics.rejected(Limit::MaxInflightBytes);
            return Err(RequestError::too_much_memory(self.most));
        }
        self.reserve(bytes)
    }

    /// Returns a response body that counts until the client has read it. It takes over the memory that was reserved for its
    /// request, and releases what it does not need.
    pub(crate) fn response(
        &self,
        bytes: Vec<u8>,
        reserved: Option<Reservation>,
    ) -> Result<Bytes, RequestError> {
        let mut bytes = bytes;
        let mut reserved = reserved;
        // Its buffer has grown to up to twice its length.
        bytes.shrink_to_fit();
        let needed = bytes.capacity();
        let held = reserved.as_ref().map_or(0, held);
        if let Some(missing) = needed.checked_sub(held).filter(|missing| *missing > 0) {
            add(&mut reserved, self.reserve(missing)?);
        } else if let Some(reserved) = &mut reserved {
            reserved.shrink_to(needed);
        }
        Ok(Bytes::from_owner(ReservedBytes {
            bytes,
            _reserved: reserved,
        }))
    }

    /// Reserves memory, or fails if less than that is free.
    fn reserve(&self, bytes: usize) -> Result<Reservation, RequestError> {
        let share = self.share.as_ref().map(|share| self.acquire(share, bytes));
        Ok(Reservation {
            share: share.transpose()?,
            bytes: self.acquire(&self.bytes, bytes)?,
        })
    }

    fn acquire(
        &self,
        semaphore: &Arc<Semaphore>,
        bytes: usize,
    ) -> Result<OwnedSemaphorePermit, RequestError> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let permit = Arc::clone(semaphore).try_acquire_many_owned(bytes);
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
        let mut reserved: Option<Reservation> = None;
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
            match self.reserve(data.len()) {
                Ok(more) => add(&mut reserved, more),
                Err(error) => {
                    let rest = most - bytes.len() - data.len();
                    drop((bytes, data, reserved));
                    discard(body, rest).await;
                    return Err(error);
                }
            }
            bytes.extend_from_slice(&data);
        }
        Ok(BufferedBody { bytes, reserved })
    }
}

/// Reads at most `most` bytes, and keeps none. A client that gets a response before it has sent the whole body may fail with the
/// error of its connection instead, and would not retry.
async fn discard(body: Body, most: usize) {
    let mut body = Limited::new(body, most);
    while let Some(Ok(_)) = body.frame().await {}
}

fn semaphore(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)))
}

fn held(reserved: &Reservation) -> usize {
    reserved.bytes.num_permits()
}

fn add(reserved: &mut Option<Reservation>, more: Reservation) {
    match reserved {
        Some(reserved) => reserved.merge(more),
        None => *reserved = Some(more),
    }
}

/// Memory estimate for a list item, and for the value of a field.
const ITEM_BYTES: usize = 64;

/// Memory estimate for the name of a field.
const NAME_BYTES: usize = 96;

/// Memory estimate for a list with at least one item: its buffer has room for four.
const LIST_BYTES: usize = 128;

/// Memory estimate for an object with at least one field: its first B-tree node has room for eleven.
const OBJECT_BYTES: usize = 700;

/// Number of copies of an object in memory: as parsed, as validated, and one for intermediate values.
const COPIES: usize = 3;

/// Memory estimate for all copies of parsed JSON. Punctuation within strings is counted, too, so the estimate is
/// rather too high.
pub(crate) fn parsed_size_estimate(json: &[u8]) -> usize {
    let weights = [
        (b',', ITEM_BYTES),
        (b':', NAME_BYTES),
        (b'[', LIST_BYTES),
        (b'{', OBJECT_BYTES),
    ];
    // One pass over the bytes for each, because each of them compares many bytes at once.
    let added = weights.map(|(byte, weight)| memchr_iter(byte, json).count() * (weight - 1));
    (json.len() + added.iter().sum::<usize>()).saturating_mul(COPIES)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn budget(bytes: usize) -> MemoryBudget {
        let limits = Limits {
            max_inflight_bytes: bytes,
            ..Limits::default()
        };
        MemoryBudget::new(&limits, &Metrics::unregistered())
    }

    fn received(bytes: Vec<u8>) -> BufferedBody {
        BufferedBody {
            bytes,
            reserved: None,
        }
    }

    fn reserve(budget: &MemoryBudget, body: &mut BufferedBody) -> Result<(), RequestError> {
        let estimate = parsed_size_estimate(&body.bytes);
        budget.reserve_for_handling(body, estimate)
    }

    #[test]
    fn the_estimate_counts_items_fields_lists_and_objects_and_the_other_bytes() {
        let estimate = |json: &str| parsed_size_estimate(json.as_bytes());
        assert_eq!(estimate(""), 0);
        assert_eq!(estimate("12345"), 5 * COPIES);
        let expected = OBJECT_BYTES + NAME_BYTES + LIST_BYTES + ITEM_BYTES + 7;
        assert_eq!(estimate(r#"{"a":[1,2]}"#), expected * COPIES);
    }

    #[test]
    fn memory_is_reserved_for_the_parsed_form_of_a_body() {
        let budget = budget(1 << 20);
        let mut long = received(vec![b'x'; 300 << 10]);
        assert!(
            reserve(&budget, &mut long).is_ok(),
            "the copies of a string are as long as the string"
        );
        drop(long);
        let mut items = received(b"0,".repeat(5_000));
        assert!(reserve(&budget, &mut items).is_ok());
        let mut more = received(b"0,".repeat(5_000));
        let error = reserve(&budget, &mut more).expect_err("both together exceed the limit");
        assert_eq!(error.code.as_u16(), 429);
        drop(items);
        assert!(
            reserve(&budget, &mut more).is_ok(),
            "the memory has been released"
        );
        let mut objects = received(b"{\"a\":0},".repeat(1_000));
        let error = reserve(&budget, &mut objects).expect_err("this body alone exceeds the limit");
        assert_eq!(error.code.as_u16(), 413);
    }

    #[tokio::test]
    async fn a_body_without_room_is_read_to_its_end() {
        let budget = budget(10);
        let taken = budget.reserve(1).expect("there is room");
        let mut parts = std::iter::repeat_n(Bytes::from_static(&[0; 10]), 5);
        let left = Arc::new(AtomicUsize::new(5));
        let counted = Arc::clone(&left);
        let body = futures::stream::iter(std::iter::from_fn(move || {
            counted.fetch_sub(usize::from(parts.len() > 0), Ordering::Relaxed);
            parts.next().map(Ok::<_, Infallible>)
        }));
        let body = Body::from_stream(body);
        let read = budget.read(body, (100, Limit::MaxRequestBytes)).await;
        assert_eq!(left.load(Ordering::Relaxed), 0);
        let error = read.err().expect("there is no room");
        assert_eq!(error.code.as_u16(), 429);
        drop(taken);
        assert_eq!(budget.bytes.available_permits(), 10);
    }

    #[test]
    fn a_response_reserves_memory_until_it_is_dropped() {
        let budget = budget(1000);
        let free = || budget.bytes.available_permits();
        let mut body = received(vec![0; 10]);
        budget
            .reserve_for_handling(&mut body, 600)
            .expect("there is room");
        assert_eq!(free(), 400);
        let small = budget.response(vec![0; 100], body.into_reservation());
        let small = small.expect("it needs less than was reserved");
        assert_eq!(free(), 900);
        let large = budget.response(vec![0; 700], None).expect("there is room");
        assert_eq!(free(), 200);
        let clone = large.clone();
        drop(large);
        assert_eq!(free(), 200, "the bytes are still in use");
        let error = budget.response(vec![0; 300], None).expect_err("too much");
        assert_eq!(error.code.as_u16(), 429);
        drop((small, clone));
        assert_eq!(free(), 1000);
    }

    #[test]
    fn a_response_does_not_reserve_the_spare_room_of_its_buffer() {
        let budget = budget(1000);
        let mut bytes = Vec::with_capacity(900);
        bytes.extend_from_slice(&[0; 100]);
        let response = budget.response(bytes, None).expect("there is room");
        assert_eq!(budget.bytes.available_permits(), 900);
        drop(response);
    }

    #[test]
    fn unread_conversions_leave_memory_for_reviews() {
        let budget = budget(1000);
        let conversions = budget.for_conversions();
        let mut unread = Vec::new();
        let refused = loop {
            match conversions.response(vec![0; 100], None) {
                Ok(response) => unread.push(response),
                Err(error) => break error,
            }
        };
        assert_eq!((unread.len(), refused.code.as_u16()), (7, 429));
        let mut review = received(vec![0; 10]);
        assert!(budget.reserve_for_handling(&mut review, 250).is_ok());
        assert!(
            budget
                .response(vec![0; 10], review.into_reservation())
                .is_ok()
        );
        let mut large = received(vec![0; 10]);
        let error = conversions.reserve_for_handling(&mut large, 751);
        assert_eq!(error.expect_err("too large").code.as_u16(), 413);
        // Both parts are released, and a response keeps no more than it needs of either.
        unread.clear();
        let mut body = received(vec![0; 10]);
        assert!(conversions.reserve_for_handling(&mut body, 750).is_ok());
        let response = conversions.response(vec![0; 50], body.into_reservation());
        assert!(response.is_ok());
        let share = conversions.share.as_ref().expect("a share");
        let free = (share.available_permits(), budget.bytes.available_permits());
        assert_eq!(free, (700, 950));
        drop(response);
        let reviews = budget.response(vec![0; 900], None);
        assert!(reviews.is_ok(), "reviews may use all of the memory");
        let error = conversions.response(vec![0; 200], None).expect_err("full");
        assert_eq!(error.code.as_u16(), 429);
        assert_eq!(share.available_permits(), 750, "nothing stays reserved");
    }
}
