//! `lockstep completions` and `lockstep man`: for the shell that it runs in.

use std::path::PathBuf;

use anyhow::Context;
use clap::CommandFactory;

use crate::{Cli, stdout};

#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: clap_complete::Shell,
}

#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// The folder to write the pages to.
    #[arg(default_value = ".")]
    directory: PathBuf,
}

pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "lockstep", &mut script);
    stdout::print(&String::from_utf8_lossy(&script))
}

pub(crate) fn man(args: &ManArgs) -> anyhow::Result<()> {
    let directory = &args.directory;
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    clap_mangen::generate_to(Cli::command(), directory)
        .with_context(|| directory.display().to_string())
}
