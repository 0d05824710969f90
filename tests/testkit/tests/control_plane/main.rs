//! Tests of the controller and of the test kit on a real control plane. They are one program, because most of them wait for
//! the control plane for most of their time.

mod chaos_simulators;
mod children;
mod concurrency;
mod idempotence;
mod inconclusive_errors;
mod kinds_under_chaos;
mod protection;
mod reconcile_once;
mod references_under_chaos;
mod sharding;
mod stuck_deletion;
mod watches;
