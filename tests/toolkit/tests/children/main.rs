//! Children on a real control plane, with the garbage collector of Kubernetes.

mod cascades;
mod cleanup;
mod differences;
mod family;
mod ownership;
mod stages;
mod statuses;
mod strategies;
