//! YAML documents whose values know where they were written.

pub(crate) mod document;
pub(crate) mod embedded_spans;
mod hidden_colons;
#[cfg(test)]
mod kubectl_comparison;
pub(crate) mod node;
mod parser;
mod position;
mod scalar;
pub(crate) mod spans;
pub(crate) mod split;
