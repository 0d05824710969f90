//! Whether the rules engine and a real API server say the same.
//!
//! [`generate`] makes objects from the schema of a CRD: fitting ones, and ones that break it in every
//! way. [`mutate`] does something to objects that stand. [`Server`] asks an API server what it says to them, by a strict dry run. [`compare`] tells
//! where that differs from what the engine says.

pub mod answer;
pub mod case;
pub mod files;
pub mod generate;
pub mod live;
pub mod mutate;
mod samples;
pub mod server;
pub mod tally;

pub use answer::{Answer, Difference, compare};
pub use case::{Case, Operation};
pub use generate::seed;
pub use server::Server;
pub use tally::Tally;
