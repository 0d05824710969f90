//! State of an installation, or of one object: one screen.

pub(crate) mod certificate;
pub(crate) mod crds;
pub(crate) mod leader;
pub(crate) mod object;
pub(crate) mod objects;
pub(crate) mod pods;
pub(crate) mod queue;
pub(crate) mod report;
pub(crate) mod rights;
pub(crate) mod section;
pub(crate) mod visible;
pub(crate) mod watches;
pub(crate) mod webhooks;
