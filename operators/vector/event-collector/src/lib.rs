//! Event collector: sends the Kubernetes Events of namespaces to sources of the type `vector`.
//!
//! ```text
//! configuration ─► receivers ─► for each: watch of Events ─► batches ─► PushEvents (gRPC) ─► Vector
//! ```
//!
//! Each receiver has a watch of its own and waits for its own Vector: one that does not answer delays
//! no other. The log events and the metrics are those of the event collector of kaasops, so that either of them can serve a
//! pipeline.

mod batch;
mod collector;
mod configuration;
mod error;
mod log_event;
mod metrics;
mod protocol;
mod read_event;
mod receiver;

pub use crate::collector::EventCollector;
pub use crate::error::CollectorError;
pub use crate::protocol::{EventWrapper, Log, PushEventsRequest, Value, ValueKind, ValueMap};
