//! The examples: each is applied, and the valid ones must become ready.

use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lockstep_envtest::Cluster;

use crate::args::kinds::KindArgs;
use crate::environment::Environment;

/// Applies every example.
pub(super) fn apply_all(cluster: &Cluster, examples: &Path) -> anyhow::Result<()> {
    let mut unexpected = Vec::new();
    for (folder, must_be_admitted) in [("valid", true), ("invalid", false)] {
        for path in documents(&examples.join(folder))? {
            let shown = Path::new("examples").join(path.strip_prefix(examples).unwrap_or(&path));
            let result = cluster
                .kubectl()
                .args(["apply", "-f"])
                .arg(&path)
                .output()
                .context("cannot run kubectl")?;
            let admitted = result.status.success();
            let description = if admitted {
                result.stdout
            } else {
                result.stderr
            };
            let outcome = if admitted { "admitted" } else { "denied" };
            writeln!(stdout(), "{outcome:<12} {}", shown.display())?;
            for line in String::from_utf8_lossy(&description)
                .trim_end()
                .lines()
                .filter(|line| !line.is_empty())
            {
                writeln!(stdout(), "             {line}")?;
            }
            if admitted != must_be_admitted {
                unexpected.push(format!("{} was {outcome}", shown.display()));
            }
        }
    }
    writeln!(stdout())?;
    if !unexpected.is_empty() {
        bail!("{}", unexpected.join(", "));
    }
    Ok(())
}

/// Waits until the admitted objects of the registered kinds are ready, and lists them. Returns the plural names of
/// their kinds.
pub(super) fn show_all(
    cluster: &Cluster,
    environment: &Environment,
    kinds: &KindArgs,
) -> anyhow::Result<Vec<String>> {
    let mut shown = Vec::new();
    for ruleset in kinds.choose(environment.registry())?.validators().iter() {
        let plural = ruleset.crd()["spec"]["names"]["plural"].as_str();
        let plural = plural.unwrap_or_default();
        let found = cluster.run_kubectl(&["get", plural, "--output=name"])?;
        if found.is_empty() {
            continue;
        }
        cluster.run_kubectl(&[
            "wait",
            "--for=condition=Ready",
            plural,
            "--all",
            "--timeout=60s",
        ])?;
        writeln!(stdout(), "{}", cluster.run_kubectl(&["get", plural])?)?;
        shown.push(plural.to_owned());
    }
    Ok(shown)
}

/// Returns the files of a folder in the order of their names.
pub(super) fn documents(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths: Vec<_> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}
