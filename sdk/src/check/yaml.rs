//! YAML documents whose values know where they were written.

pub(crate) mod document;
pub(crate) mod embedded_spans;
pub(crate) mod node;
pub(crate) mod spans;
pub(crate) mod split;
pub(crate) mod yaml11_scalar;
