//! Life of an admission webhook in a cluster: its failure policy, and the CRDs that it validates by. The concepts, in
//! reading order:
//!
//! # Failure policy
//!
//! A webhook configuration with `failurePolicy: Fail` before the webhook answers would block every write of its kinds.
//! With `Ignore` for ever, objects would be stored without validation whenever the webhook is down.
//!
//! # Admission probe
//!
//! An admission probe is an object that only the webhook denies, sent through the API server as a dry run. If it is
//! denied, API server, configuration, certificates and webhook work together.
//! `FailurePolicyController` sends probes. It sets the failure policy to `Fail` once a probe was denied, and back to
//! `Ignore` when the webhook has no replica any more.
//!
//! # CRD status
//!
//! The API server validates an object by the CRD in the cluster, and the webhook by the CRD compiled into it. If both
//! are equal, the webhook need not evaluate schema and CEL rules again; if they differ, an upgrade is in progress
//! ([`CrdMatch`](lockstep_shared_validation::CrdMatch)). The webhook has no access to the API server. Therefore,
//! another process of the same Pod compares the CRDs (`CrdStatusReporter`) and writes a [`CrdStatusReport`] with one
//! [`CrdStatus`] for each kind to a file. The webhook's process reads the file into a [`CrdStatusCache`]. A report that
//! is not renewed expires, and everything is validated again.
//!
//! # Features
//!
//! The feature `client` adds the parts that call the API server: `FailurePolicyController` and `CrdStatusReporter`.
//! The file and its cache do without it, so that a process without credentials needs no client.

#[cfg(feature = "client")]
mod admission_probe;
mod crd_status;
#[cfg(feature = "client")]
mod failure_policy;

pub use crate::crd_status::cache::CrdStatusCache;
pub use crate::crd_status::report::{CrdStatus, CrdStatusReport};
#[cfg(feature = "client")]
pub use crate::crd_status::reporter::{CrdStatusMetrics, CrdStatusReporter};
#[cfg(feature = "client")]
pub use crate::failure_policy::{BackendProbe, FailurePolicyController, FailurePolicyMetrics};
