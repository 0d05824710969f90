//! Exploration of all interleavings: the reconciliation of one object with a model of RDS, in which each call is answered in each
//! way that AWS and the network can, the process is killed at each call, and users change and delete the object.
//!
//! The steps are those of the product: only RDS, the API server, the time and the memory of the process are models. States are
//! visited in the order of the number of steps that lead to them, so that a trace to a violation is a shortest one.
//! `LOCKSTEP_EXPLORATION=FAULTS:DEPTH` explores more than the test does.

mod answers;
mod memory;
mod properties;
mod rds;
mod scenarios;
mod search;
mod world;
