//! Development tasks that tests use, too.

pub mod image;
pub mod shipped_catalogue;
