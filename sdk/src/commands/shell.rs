//! `lockstep completions` and `lockstep man`: shell completions and manual pages.

use std::path::PathBuf;

use crate::environment::Environment;
use crate::printer;
use anyhow::Context;

#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Shell to write the completion script for.
    shell: clap_complete::Shell,
}

#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// Output folder.
    #[arg(default_value = ".")]
    directory: PathBuf,
}

pub(crate) fn completions(
    args: &CompletionsArgs,
    mut command: clap::Command,
    environment: &Environment,
) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, environment.name(), &mut script);
    printer::print(&String::from_utf8_lossy(&script))
}

pub(crate) fn man(args: &ManArgs, command: clap::Command) -> anyhow::Result<()> {
    let directory = &args.directory;
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    clap_mangen::generate_to(command, directory).with_context(|| directory.display().to_string())
}
