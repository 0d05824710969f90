//! Real control plane for tests: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, and moto
//! instead of AWS.
//!
//! All programs are built once from Go modules and Python packages that this crate pins, cached below `target/`, and
//! started in seconds. Everything that a value of this crate has started is stopped when the value is dropped.

mod cache;
mod checks;
mod cluster;
mod components;
mod crds;
mod error;
mod fleet;
mod go_build;
mod installation;
mod kubeconfig;
mod moto;
mod moto_install;
mod network;
#[cfg(feature = "node")]
mod node;
mod oracle;
mod pod;
mod pool;
mod probe;
mod process;
mod progress;
mod prometheus;
mod setup_envtest;
mod tools;
mod wait;

pub use checks::{check_metrics, h2spec, helm, kstatus};
pub use cluster::Cluster;
pub use components::{ClusterOptions, Components, Download, Programs};
pub use crds::third_party_crds;
pub use error::Error;
pub use fleet::{APISERVER_ARGS, Fleet};
pub use installation::{Installation, Options, wait_until_fail_closed};
pub use moto::{Moto, aws_environment};
pub use moto_install::install_moto;
pub use network::Network;
#[cfg(feature = "node")]
pub use node::Node;
pub use oracle::oracle;
pub use process::{Process, free_port};
pub use progress::without_progress;
pub use prometheus::{QueryResult, Recording, Series, promtool};
pub use wait::{eventually, eventually_within, stays};
