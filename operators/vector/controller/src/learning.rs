//! Learning of the catalogue of a Vector version that a workload runs, from the schema that its image prints.
//!
//! ```text
//! schema of the image ─► catalogue ─► ConfigMap ─► files of webhook and controller
//! ```
//!
//! A [`CatalogueLearner`] gets the schema from a [`SchemaSource`], and writes the catalogue into a `ConfigMap` that webhook and
//! controller mount. Nothing is learned twice: what the `ConfigMap` contains is used by each replica, also after a restart.

mod attempts;
mod learned_catalogue;
mod learned_catalogues;
mod learner;
mod schema_source;

pub use crate::learning::learned_catalogue::UnusableSchema;
pub use crate::learning::learner::{CatalogueLearner, LearningState, VersionToLearn};
pub use crate::learning::schema_source::{ImageSchema, SchemaSource, SchemaSourceError};
