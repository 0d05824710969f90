//! CloudDatabase: subcommands that work without a cluster, and the files that they write.

#![allow(clippy::doc_markdown, reason = "product names are no code")]

pub mod catalogue_files;
pub mod iam_policy;
pub mod rds;
