//! `lockstep manifests`: writes the YAML files that install Lockstep.

mod file_plan;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::ensure;
use lockstep_manifests::{
    InstallOptions, Manifest, render, render_chart_files, render_initial_chart_files,
};

use crate::args::kinds::KindArgs;
use crate::args::scope::InstallScopeArgs;
use crate::args::shards::shard_count;
#[cfg(feature = "dev")]
use crate::commands::manifests::file_plan::write_file;
use crate::commands::manifests::file_plan::{FilePlan, Output};
use crate::environment::Environment;
use crate::printer;

/// Exit code if the folder has files of others.
const REFUSED: u8 = 2;

/// Folders with a `kustomization.yaml`, in the order in which they are applied.
const BASES: [&str; 4] = ["crds", "crd-protection", "cluster", ""];

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

pub(crate) fn run(args: &Args, environment: &Environment) -> ExitCode {
    match run_or_refuse(args, environment) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{}: {error:#}", environment.name());
            ExitCode::FAILURE
        }
    }
}

fn run_or_refuse(args: &Args, environment: &Environment) -> anyhow::Result<ExitCode> {
    let program = environment.name();
    let outputs = outputs(args, environment)?;
    let next = next_commands(args, environment, &outputs);
    let plan = FilePlan::new(outputs, program);
    if args.check {
        let out_of_date = plan.out_of_date();
        ensure!(
            out_of_date.is_empty(),
            "files are out of date: {}; run `{program} manifests`",
            out_of_date.join(", ")
        );
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(refusal) = plan.refusal(program) {
        eprintln!("{program}: {refusal}");
        return Ok(ExitCode::from(REFUSED));
    }
    let written = plan.write()?;
    printer::print(&format!("{written}Next:\n\n{next}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Renders all files.
fn outputs<'a>(args: &'a Args, environment: &Environment) -> anyhow::Result<Vec<Output<'a>>> {
    let with_shards = |install: &InstallOptions<'_>| {
        let shards = args.shards;
        render(&InstallOptions {
            shards,
            ..install.clone()
        })
    };
    let mut outputs = vec![Output {
        folder: &args.directory,
        files: with_options(environment, &args.kinds, Some(&args.scope), with_shards)?,
    }];
    if let Some(charts) = &args.charts {
        // The values of a chart select its scope.
        let mut files = with_options(environment, &args.kinds, None, render_chart_files)?;
        let initial = with_options(environment, &args.kinds, None, render_initial_chart_files)?;
        let missing = initial
            .into_iter()
            .filter_map(|file| initial_file(charts, file, environment.version()));
        let missing: Vec<_> = missing.collect();
        ensure!(
            !missing.is_empty() || charts.join(environment.name()).is_dir(),
            "{} does not contain the chart `{}`: its templates are written by hand, and this command adds the files that depend \
             on the kinds",
            charts.display(),
            environment.name()
        );
        files.extend(missing);
        outputs.push(Output {
            folder: charts,
            files,
        });
    }
    Ok(outputs)
}

/// Returns a file that the author of a chart may change, if it is missing. Of an existing `Chart.yaml`, only the version of
/// the program is written.
fn initial_file(charts: &Path, mut file: Manifest, version: &str) -> Option<Manifest> {
    let path = charts.join(&file.name);
    if path.symlink_metadata().is_err() {
        return Some(file);
    }
    let existing = fs::read_to_string(&path).ok()?;
    let content = with_app_version(&existing, version);
    let is_chart = path.file_name() == Some("Chart.yaml".as_ref());
    let is_stale = is_chart && content != existing;
    file.content = content;
    is_stale.then_some(file)
}

/// Returns the commands that apply the files, each on a line.
fn next_commands(args: &Args, environment: &Environment, outputs: &[Output<'_>]) -> String {
    let files = outputs.iter().flat_map(|output| &output.files);
    let names: BTreeSet<&str> = files.map(|file| file.name.as_str()).collect();
    let mut commands = String::new();
    for base in BASES {
        let base = Path::new(base);
        let kustomization = base.join("kustomization.yaml");
        if names.contains(kustomization.to_string_lossy().as_ref()) {
            let folder: PathBuf = args.directory.join(base).components().collect();
            let _ = writeln!(commands, "  kubectl apply -k {}", folder.display());
        }
    }
    if let Some(charts) = &args.charts {
        let _ = writeln!(
            commands,
            "\nor, with Helm:\n\n  helm upgrade --install {} {} --namespace {} --create-namespace",
            environment.name(),
            charts.join(environment.name()).display(),
            environment.names().namespace
        );
    }
    commands
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
