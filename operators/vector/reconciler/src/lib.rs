//! Vector's kinds in the loop. For now a pipeline is judged and its status tells of it; what runs pipelines is
//! not made here.

mod hash;
mod pipelines;

pub use pipelines::Pipelines;
