//! Errors of reading a file, in words that tell the user what to do.

use std::io::{self, ErrorKind};

/// Describes why a file cannot be read, and what to do about it.
#[must_use]
pub fn describe_read_error(error: &io::Error) -> String {
    let reason = match error.kind() {
        ErrorKind::NotFound => "it does not exist; check its path",
        ErrorKind::IsADirectory => "it is a folder; name a file in it",
        ErrorKind::PermissionDenied => {
            "its permissions deny access; make it readable for this user"
        }
        ErrorKind::InvalidData => "it is not UTF-8 text; save it as UTF-8",
        _ => return format!("cannot be read: the operating system reports `{error}`"),
    };
    format!("cannot be read: {reason}")
}
