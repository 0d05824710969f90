//! `lockstep manifests`: writes the YAML files that install Lockstep.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use manifests::{InstallOptions, render};

use crate::args::kinds::KindArgs;
use crate::args::scope::InstallScopeArgs;
use crate::environment::Environment;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Output folder.
    #[arg(default_value = "manifests/config")]
    directory: PathBuf,
    /// Write nothing; fail if a file is missing or out of date.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    kinds: KindArgs,
    #[command(flatten)]
    scope: InstallScopeArgs,
}

pub(crate) fn run(args: &Args, environment: &Environment) -> anyhow::Result<()> {
    let mut stale = Vec::new();
    for file in files(environment, &args.kinds, Some(&args.scope))? {
        let path = args.directory.join(&file.name);
        if fs::read_to_string(&path).is_ok_and(|content| content == file.content) {
            continue;
        }
        if args.check {
            stale.push(file.name);
            continue;
        }
        write_file(&path, &file.content)?;
    }
    if !stale.is_empty() {
        bail!(
            "files in {} are out of date: {}; run `{} manifests`",
            args.directory.display(),
            stale.join(", "),
            environment.name()
        );
    }
    Ok(())
}

/// Writes all files into a folder, which is created if it does not exist.
#[cfg(feature = "dev")]
pub(crate) fn write(
    directory: &Path,
    environment: &Environment,
    kinds: &KindArgs,
) -> anyhow::Result<()> {
    for file in files(environment, kinds, None)? {
        write_file(&directory.join(&file.name), &file.content)?;
    }
    Ok(())
}

fn write_file(path: &Path, content: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Renders all files, for the whole cluster or for some namespaces.
fn files(
    environment: &Environment,
    kinds: &KindArgs,
    scope: Option<&InstallScopeArgs>,
) -> anyhow::Result<Vec<manifests::Manifest>> {
    let chosen = kinds.choose(environment.registry())?;
    let validators = chosen.validators();
    let namespaces = scope.map(|scope| scope.namespaces(chosen.cluster_scoped_kind()));
    let namespaces = namespaces.transpose()?;
    let gate_only = scope.and_then(InstallScopeArgs::argument);
    Ok(render(&InstallOptions {
        validators: &validators,
        rbac_rules: chosen.rbac_rules(),
        controller_args: kinds.argument().into_iter().chain(gate_only).collect(),
        webhook_only: scope.is_some_and(InstallScopeArgs::is_webhook_only),
        namespaces: namespaces.unwrap_or_default().to_vec(),
    }))
}
