//! Repository that tests add to.

use std::path::Path;

use clap::Parser;

use crate::{NewArgs, create};

/// Creates a repository with the kind `Lamp`.
pub(crate) fn repository(folder: &Path) {
    let directory = folder.display().to_string();
    let args = ["new", "a", "--kind", "Lamp", "--group", "demo.example.com"];
    let args = args.into_iter().chain(["--directory", &directory]);
    create(&NewArgs::parse_from(args)).expect("a repository");
}
