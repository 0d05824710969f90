//! Effects of a publication on the Pods: mounted Secrets that they read anew, and reloads.

pub(crate) mod follower;
pub(crate) mod loading;
pub(crate) mod pod_refresh;
pub(crate) mod reload;
