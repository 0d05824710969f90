//! CloudDatabase: subcommands that work without a cluster, and the files that they write.

pub mod catalogue_files;
pub mod iam_policy;
pub mod rds;
