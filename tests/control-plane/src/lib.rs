//! Real control plane for tests: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, and moto
//! instead of AWS.
//!
//! All programs are built once from Go modules and Python packages that this crate pins, cached below `target/`, and
//! started in seconds. Everything that a value of this crate has started is stopped when the value is dropped.

mod checks;
mod cluster;
mod error;
mod fleet;
mod installation;
mod kubeconfig;
mod moto;
mod network;
mod oracle;
mod pod;
mod probe;
mod process;
mod tools;
mod wait;

pub use checks::{check_metrics, h2spec, kstatus};
pub use cluster::Cluster;
pub use error::Error;
pub use fleet::{APISERVER_ARGS, Fleet};
pub use installation::{Installation, Options, wait_until_fail_closed};
pub use moto::{Moto, aws_environment};
pub use network::Network;
pub use oracle::oracle;
pub use process::{Process, free_port};
pub use wait::{eventually, eventually_within, stays};
