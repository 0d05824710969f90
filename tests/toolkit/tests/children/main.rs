//! Children, on a real control plane: the garbage collector is the real one.

mod cascades;
mod cleanup;
mod differences;
mod family;
mod ownership;
mod stages;
mod statuses;
mod strategies;
