//! Field paths and field errors, which print as those of apimachinery.

pub(crate) mod error;
mod lazy_path;
pub(crate) mod path;
pub(crate) mod text;

pub use error::{BadValue, ErrorType, FieldError, MAX_MESSAGE_BYTES, aggregate};
pub use lazy_path::LazyPath;
pub use path::FieldPath;
pub use text::shortened;
