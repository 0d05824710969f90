//! `lockstep manifests`: writes the YAML files that install Lockstep.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use lockstep_manifests::{
    InstallOptions, Manifest, render, render_chart_files, render_initial_chart_files,
};

use crate::args::kinds::KindArgs;
use crate::args::scope::InstallScopeArgs;
use crate::args::shards::shard_count;
use crate::environment::Environment;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Output folder.
    #[arg(default_value = "manifests/config")]
    directory: PathBuf,
    /// Folder of the Helm charts. If it is given, the files of the chart that depend on the kinds are written, too, and those
    /// that you may change are created if they are missing.
    #[arg(long, value_name = "DIRECTORY")]
    charts: Option<PathBuf>,
    /// Write nothing; fail if a file is missing or out of date.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    kinds: KindArgs,
    #[command(flatten)]
    scope: InstallScopeArgs,
    /// Distribute the objects over the replicas by this number of shards. Default: the leader reconciles all objects.
    #[arg(long, value_name = "NUMBER", value_parser = shard_count, conflicts_with = "webhook_only")]
    shards: Option<NonZeroU32>,
}

pub(crate) fn run(args: &Args, environment: &Environment) -> anyhow::Result<()> {
    let with_shards = |install: &InstallOptions<'_>| {
        let shards = args.shards;
        render(&InstallOptions {
            shards,
            ..install.clone()
        })
    };
    let files = with_options(environment, &args.kinds, Some(&args.scope), with_shards)?;
    let mut all = vec![(&args.directory, files)];
    if let Some(charts) = &args.charts {
        // The values of a chart select its scope.
        let files = with_options(environment, &args.kinds, None, render_chart_files)?;
        let initial = with_options(environment, &args.kinds, None, render_initial_chart_files)?;
        let initial = initial.into_iter();
        let missing: Vec<_> = initial
            .filter_map(|mut file| {
                if let Ok(existing) = fs::read_to_string(charts.join(&file.name)) {
                    let is_chart = Path::new(&file.name).file_name() == Some("Chart.yaml".as_ref());
                    file.content = with_app_version(&existing, environment.version());
                    return (is_chart && file.content != existing).then_some(file);
                }
                Some(file)
            })
            .collect();
        ensure!(
            !missing.is_empty() || charts.join(environment.name()).is_dir(),
            "{} does not contain the chart `{}`: its templates are written by hand, and this command adds the files that depend \
             on the kinds",
            charts.display(),
            environment.name()
        );
        all.extend([(charts, files), (charts, missing)]);
    }
    let mut stale = Vec::new();
    let all = all
        .into_iter()
        .flat_map(|(folder, files)| files.into_iter().map(move |file| (folder, file)));
    for (folder, file) in all {
        let path = folder.join(&file.name);
        if fs::read_to_string(&path).is_ok_and(|content| content == file.content) {
            continue;
        }
        if args.check {
            stale.push(path.display().to_string());
            continue;
        }
        write_file(&path, &file.content)?;
    }
    if !stale.is_empty() {
        bail!(
            "files are out of date: {}; run `{} manifests`",
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
    for file in with_options(environment, kinds, None, render)? {
        write_file(&directory.join(&file.name), &file.content)?;
    }
    Ok(())
}

/// Returns a `Chart.yaml` with the version of the program, which is the default tag of the image: another one would install
/// CRDs and arguments that the image does not know. Everything else in it is the author's.
fn with_app_version(chart: &str, version: &str) -> String {
    let lines = chart.split_inclusive('\n').map(|line| {
        let value = line.strip_prefix("appVersion:");
        let value = value.map(|value| value.trim().trim_matches(['"', '\'']));
        match value {
            Some(value) if value != version => format!("appVersion: {version}\n"),
            _ => line.to_owned(),
        }
    });
    lines.collect()
}

fn write_file(path: &Path, content: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Renders files with the options of the installation: for the whole cluster or for some namespaces.
pub(crate) fn with_options(
    environment: &Environment,
    kinds: &KindArgs,
    scope: Option<&InstallScopeArgs>,
    render: impl FnOnce(&InstallOptions<'_>) -> Vec<Manifest>,
) -> anyhow::Result<Vec<Manifest>> {
    let chosen = kinds.choose(environment.registry())?;
    let validators = chosen.validators();
    let tenant_validators = chosen.tenant_validators();
    let namespaces = scope.map(|scope| scope.namespaces(chosen.cluster_scoped_kind()));
    let namespaces = namespaces.transpose()?;
    let webhook_only = scope.and_then(InstallScopeArgs::argument);
    Ok(render(&InstallOptions {
        names: environment.names(),
        image: format!("{}:{}", environment.name(), environment.version()),
        environment_config_maps: chosen.environment_config_maps(),
        validators: &validators,
        tenant_validators: &tenant_validators,
        rbac_rules: chosen.rbac_rules(),
        tenant_rbac_rules: chosen.tenant_rbac_rules(),
        own_namespace_rules: chosen.own_namespace_rules(),
        admission_check_rules: chosen.admission_check_rules(),
        policy_folder_args: chosen.policy_folder_args(),
        config_map_args: chosen.config_map_args(),
        has_admission_checks: chosen.have_admission_checks(),
        controller_args: kinds.argument().into_iter().chain(webhook_only).collect(),
        webhook_only: scope.is_some_and(InstallScopeArgs::is_webhook_only),
        no_webhook: scope.is_some_and(InstallScopeArgs::is_without_webhook),
        namespaces: namespaces.unwrap_or_default().to_vec(),
        shards: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_the_program_is_the_only_change_of_a_chart() {
        let chart = "name: greeter\nversion: 3.0.0\nappVersion: \"0.1.0\"\nkeywords: [mine]\n";
        assert_eq!(with_app_version(chart, "0.1.0"), chart);
        let changed = "name: greeter\nversion: 3.0.0\nappVersion: 0.2.0\nkeywords: [mine]\n";
        assert_eq!(with_app_version(chart, "0.2.0"), changed);
    }
}
