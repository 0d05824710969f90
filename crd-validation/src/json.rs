//! JSON: parsing, access by path, and types.

pub(crate) mod numbers;
pub(crate) mod parse;
pub mod pointer;
pub(crate) mod raw;
pub(crate) mod types;

pub use numbers::{has_floats, reread};
pub use parse::ParsedJson;
pub use raw::{MAX_DEPTH, RawMetadata, RawObject, Tree};
pub use types::as_integer;
