//! Development tasks that tests use, too.

pub mod image;
