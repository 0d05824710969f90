//! `lockstep completions` and `lockstep man`: shell completions and manual pages.

use std::io;
use std::path::{Path, PathBuf};

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
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut written = Vec::new();
    write_pages(command, directory, &mut written)
        .with_context(|| directory.display().to_string())?;
    let lines = written
        .iter()
        .map(|path| format!("Wrote {}\n", path.display()));
    printer::print(&lines.collect::<String>())
}

/// Writes the pages of a command and of its subcommands, and adds their paths.
fn write_pages(
    command: clap::Command,
    directory: &Path,
    written: &mut Vec<PathBuf>,
) -> io::Result<()> {
    let subcommands = command.get_subcommands().filter(|one| !one.is_hide_set());
    for subcommand in subcommands.cloned() {
        write_pages(subcommand, directory, written)?;
    }
    written.push(clap_mangen::Man::new(command).generate_to(directory)?);
    Ok(())
}
