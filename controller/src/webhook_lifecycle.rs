//! The failure policy of the webhook, and the report on the installed CRDs.

pub(crate) mod crd_status;
pub(crate) mod failure_policy;
