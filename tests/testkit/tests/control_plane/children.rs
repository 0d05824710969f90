//! Children on a real control plane, with the garbage collector of Kubernetes.

mod by_namespace;
mod cascading_deletion;
mod cleanup;
mod dependencies;
mod drift;
mod fixture_kind;
mod other_program;
mod ownership;
mod rejection;
mod statuses;
mod strategies;
