//! Connections of watches. The concepts, in reading order:
//!
//! # Silence
//!
//! A connection can be lost without a sign: a node, a load balancer or a NAT drops it, and neither side receives a FIN.
//! Such a watch delivers nothing, like a healthy watch on objects that do not change. An API server tells them apart by
//! bookmarks, once a minute. [`WatchLimits::silence`] is the time after which a watch that has delivered nothing, not
//! even a bookmark, is resumed on a new connection.
//!
//! # Guarantees
//!
//! A watch is resumed from the last resource version that it has received. Its objects are listed again only if the API
//! server no longer has this version, and answers 410 (Gone).
//!
//! A healthy watch is resumed, too, if it has no bookmarks. Kubernetes guarantees none, and an API server sends none for a
//! type of which nothing has changed since it started, or if its watch cache is disabled. Such a watch costs one more
//! request in each period of silence, and a list once etcd has compacted its version. It is no failure, and
//! `lockstep_watch_up` is 0 only until the API server accepts the request.
//!
//! # State
//!
//! [`Watches`] are all watches of a process, with metrics and a list of those that are down. [`WatchState`] is the state
//! of one of them. It is up from the moment at which the API server accepts the request, and down from a failure or a
//! silence until the next such moment.

mod connection;
mod limits;
mod object;
mod state;

pub use crate::limits::WatchLimits;
pub use crate::object::{WatchedObject, failure_reason, type_name};
pub use crate::state::{WatchState, Watches};
