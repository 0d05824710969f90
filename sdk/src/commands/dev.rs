//! `lockstep dev`: a demo on a real control plane on this machine, with Lockstep installed and the examples
//! applied.

use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use control_plane::{Cluster, Installation, Options};

use crate::args::kinds::KindArgs;
use crate::commands::manifests;
use crate::environment::Environment;
use crate::operator::dev_service::RunningService;
use crate::server::runtime;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Exit after the demo, with an error if it failed. Default: run until Ctrl-C.
    #[arg(long)]
    once: bool,
    /// Folder with the examples: objects in `valid` must be admitted, objects in `invalid` must be denied.
    #[arg(long)]
    examples: PathBuf,
    #[command(flatten)]
    kinds: KindArgs,
}

pub(crate) fn run(args: &Args, environment: &Environment) -> anyhow::Result<()> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    runtime::block_on(show(args, environment))
}

async fn show(args: &Args, environment: &Environment) -> anyhow::Result<()> {
    let examples = args
        .examples
        .canonicalize()
        .with_context(|| format!("cannot find the examples in {}", args.examples.display()))?;
    let stop = runtime::shutdown_signal()?;
    let all = async {
        let cluster = step(
            "Started etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok",
            Cluster::start(),
        )
        .await?;
        // Node for the Pods of operators.
        cluster.add_node("node").await?;
        let services = start_services(&cluster, environment).await?;
        let installing = install(&cluster, &services, environment, &args.kinds);
        let mut installation = step("Installed Lockstep", installing).await?;
        step(
            "Started the webhook and the controller",
            installation.start(&cluster),
        )
        .await?;
        writeln!(stdout())?;
        let outcome = apply_all(&cluster, &examples)
            .and_then(|()| show_all(&cluster, environment, &args.kinds));
        if let Err(error) = outcome {
            bail!("the demo failed: {error:#}\n{}", installation.output());
        }
        anyhow::Ok((cluster, services, installation))
    };
    let running = tokio::select! {
        running = all => running?,
        () = runtime::stopped(stop.clone()) => return Ok(()),
    };
    writeln!(
        stdout(),
        "export KUBECONFIG={}",
        running.0.kubeconfig().display()
    )?;
    if !args.once {
        writeln!(stdout(), "Press Ctrl-C to stop the control plane.")?;
        runtime::stopped(stop).await;
    }
    Ok(())
}

/// Runs one step and prints how long it took.
async fn step<T, E>(what: &str, doing: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let started = Instant::now();
    let done = doing.await?;
    // The demo continues if the reader has closed the pipe.
    let _ = writeln!(
        stdout(),
        "{what} in {:.1} s",
        started.elapsed().as_secs_f64()
    );
    Ok(done)
}

/// Starts the services of all operators.
async fn start_services(
    cluster: &Cluster,
    environment: &Environment,
) -> anyhow::Result<Vec<RunningService>> {
    let mut running = Vec::new();
    for service in environment.registry().dev_services() {
        let started = format!("Started {}", service.name);
        running.push(step(&started, service.start(&cluster.logs())).await?);
    }
    Ok(running)
}

async fn install(
    cluster: &Cluster,
    services: &[RunningService],
    environment: &Environment,
    kinds: &KindArgs,
) -> anyhow::Result<Installation> {
    let directory = cluster.directory().join("manifests");
    manifests::write(&directory, environment, kinds)?;
    let variables = services.iter().flat_map(|service| &service.environment);
    let dev_args = environment
        .registry()
        .dev_services()
        .flat_map(|service| &service.controller_args);
    let options = Options {
        program: std::env::current_exe().context("cannot find the path of this program")?,
        controller_env: variables.cloned().collect(),
        controller_args: dev_args.cloned().collect(),
        controller_server: None,
    };
    Ok(Installation::apply(cluster, &directory, options).await?)
}

/// Applies every example.
fn apply_all(cluster: &Cluster, examples: &Path) -> anyhow::Result<()> {
    let mut surprises = Vec::new();
    for (folder, must_be_admitted) in [("valid", true), ("invalid", false)] {
        for path in documents(&examples.join(folder))? {
            let shown = Path::new("examples").join(path.strip_prefix(examples).unwrap_or(&path));
            let answer = cluster
                .kubectl()
                .args(["apply", "-f"])
                .arg(&path)
                .output()
                .context("cannot run kubectl")?;
            let admitted = answer.status.success();
            let said = if admitted {
                answer.stdout
            } else {
                answer.stderr
            };
            let outcome = if admitted { "admitted" } else { "denied" };
            writeln!(stdout(), "{outcome:<12} {}", shown.display())?;
            for line in String::from_utf8_lossy(&said)
                .trim_end()
                .lines()
                .filter(|line| !line.is_empty())
            {
                writeln!(stdout(), "             {line}")?;
            }
            if admitted != must_be_admitted {
                surprises.push(format!("{} was {outcome}", shown.display()));
            }
        }
    }
    writeln!(stdout())?;
    if !surprises.is_empty() {
        bail!("{}", surprises.join(", "));
    }
    Ok(())
}

/// Waits until the admitted objects of the registered kinds are ready, and lists them.
fn show_all(cluster: &Cluster, environment: &Environment, kinds: &KindArgs) -> anyhow::Result<()> {
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
    }
    Ok(())
}

fn documents(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths: Vec<_> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}
