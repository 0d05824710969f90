//! AWS query protocol: form → parameters, result → XML.

pub(crate) mod answer;
pub(crate) mod credentials;
pub(crate) mod fault;
pub(crate) mod form;
