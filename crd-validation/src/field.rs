//! Field paths and field errors, which print as those of apimachinery.

pub(crate) mod error;
pub(crate) mod path;

pub use error::{BadValue, ErrorType, FieldError, aggregate};
pub use path::FieldPath;
