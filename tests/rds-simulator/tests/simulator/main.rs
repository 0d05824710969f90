//! The simulator, called with the SDK of AWS as the operator calls it.

mod client;
mod creation;
mod deletion;
mod model;
mod modification;
