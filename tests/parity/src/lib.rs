//! Comparison of the rules engine with a real API server.
//!
//! [`generate`] makes objects from the schema of a CRD: valid ones, and ones that violate it in every way. [`mutate`]
//! changes valid objects. [`Server`] returns the response of an API server to a strict dry run. [`compare`] returns the
//! difference from the response of the engine.

pub mod case;
pub mod files;
pub mod generate;
pub mod live;
pub mod mutate;
mod older_server;
pub mod response;
mod samples;
pub mod server;
pub mod summary;

pub use case::{Case, Operation};
pub use generate::seed;
pub use response::{Difference, Response, compare};
pub use server::Server;
pub use summary::Summary;
