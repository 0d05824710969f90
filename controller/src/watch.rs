//! Watches of the API server, and the events that they deliver.

pub(crate) mod dependency;
pub(crate) mod event_stream;
pub(crate) mod handler;
pub(crate) mod intake;
pub(crate) mod namespace_watches;
pub(crate) mod read_objects;
pub(crate) mod read_watches;
pub(crate) mod sources;
pub(crate) mod stores;

pub use crate::cache::related::{Lookup, RelatedObjects};
pub use crate::watch::dependency::{Reference, Watch};
