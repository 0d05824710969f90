//! Vector Remap Language: compilation, cost limits and the signatures of its functions.

pub(crate) mod compiler;
pub(crate) mod cost;
pub(crate) mod diagnostic;
pub(crate) mod limits;
pub(crate) mod program;
pub(crate) mod regex_cost;
pub(crate) mod stdlib;
