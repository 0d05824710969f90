//! Changed parts are checked by Vector itself before they are published: in Pods, or by a Pod that keeps running.

pub(crate) mod catalogue_learning;
pub(crate) mod checker;
pub(crate) mod exact;
pub(crate) mod foreign_services;
pub(crate) mod pod_checks;
pub(crate) mod pods;
pub(crate) mod warm_checks;
pub(crate) mod warm_validator;
