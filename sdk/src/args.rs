//! Arguments that several subcommands share.

pub(crate) mod cert;
pub(crate) mod cluster;
pub(crate) mod crd_status;
pub(crate) mod input_format;
pub(crate) mod installation;
pub(crate) mod kinds;
pub(crate) mod limits;
pub(crate) mod metrics;
pub(crate) mod policy;
pub(crate) mod reconciliation;
pub(crate) mod scope;
pub(crate) mod shards;
