//! The bytes of a request, taken in as far as there is room for them.

use std::sync::Arc;

use axum::body::Body;
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{Limit, Limits};
use crate::metrics::Metrics;
use crate::refusal::Refusal;

/// What is held of all bodies together.
#[derive(Clone)]
pub(crate) struct Room {
    bytes: Arc<Semaphore>,
    limits: Limits,
    metrics: Metrics,
}

/// A whole body; the room that it takes is free again when this is dropped.
pub(crate) struct Received {
    pub(crate) bytes: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
}

impl Room {
    pub(crate) fn new(limits: &Limits, metrics: &Metrics) -> Self {
        Self {
            bytes: Arc::new(Semaphore::new(
                limits.bodies_bytes.min(Semaphore::MAX_PERMITS),
            )),
            limits: limits.clone(),
            metrics: metrics.clone(),
        }
    }

    /// Takes in a body of at most so many bytes. Room is taken for what has arrived, not for what is announced: a client that
    /// sends little holds little.
    pub(crate) async fn receive(&self, body: Body, most: usize) -> Result<Received, Refusal> {
        tokio::time::timeout(self.limits.body, self.collect(body, most))
            .await
            .map_err(|_| {
                self.metrics.limited(Limit::Body);
                Refusal::timed_out()
            })?
    }

    async fn collect(&self, mut body: Body, most: usize) -> Result<Received, Refusal> {
        let mut bytes = Vec::new();
        let mut room: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let frame = frame
                .map_err(|error| Refusal::bad_request(format!("the body broke off: {error}")))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if bytes.len() + data.len() > most {
                self.metrics.limited(Limit::BodyBytes);
                return Err(Refusal::too_large(most));
            }
            let more = u32::try_from(data.len()).unwrap_or(u32::MAX);
            let more = Arc::clone(&self.bytes)
                .try_acquire_many_owned(more)
                .map_err(|_| {
                    self.metrics.limited(Limit::BodiesBytes);
                    Refusal::overloaded()
                })?;
            match &mut room {
                Some(room) => room.merge(more),
                None => room = Some(more),
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Received { bytes, _room: room })
    }
}
