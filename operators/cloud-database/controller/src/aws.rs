//! AWS: what the controller calls, with which access, how often, and what the answers mean.

pub(crate) mod access;
pub(crate) mod access_check;
pub(crate) mod access_pool;
pub(crate) mod account;
pub(crate) mod call_error;
pub(crate) mod descriptions;
pub(crate) mod environment;
pub(crate) mod error_code;
pub(crate) mod external_ids;
pub(crate) mod iam_policy;
pub(crate) mod location;
pub(crate) mod metrics;
pub(crate) mod namespaces;
pub(crate) mod rate_limits;
pub(crate) mod rds_api;
pub(crate) mod rds_client;
pub(crate) mod rds_clients;
pub(crate) mod rds_events;
pub(crate) mod recent;
pub(crate) mod shared_list;
