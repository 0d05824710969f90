//! Vector's kinds in the loop. For now objects are judged and their status tells of it; what runs pipelines is
//! not made here.

mod hash;
mod judging;
mod neighbours;

pub use judging::ValidateOnlyReconciler;
