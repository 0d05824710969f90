//! Field paths and field errors, which print as those of apimachinery.

pub(crate) mod error;
pub(crate) mod path;
pub(crate) mod text;

pub use error::{BadValue, ErrorType, FieldError, MAX_MESSAGE_BYTES, aggregate};
pub use path::FieldPath;
pub use text::shortened;
