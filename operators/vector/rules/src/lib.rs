//! Vector's log pipelines: their types, and the complete check of a configuration. Pure.

mod addresses;
mod catalogue;
mod component;
mod flow;
mod functions;
mod judge;
mod limits;
mod option_errors;
mod options;
mod outputs;
mod problem;
mod program;
mod readable;
mod topology;
mod transforms;

pub use addresses::Address;
pub use catalogue::Catalogue;
pub use component::{Component, Family, components};
pub use judge::judge;
pub use problem::{Check, Problem};
