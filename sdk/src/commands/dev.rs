//! `lockstep dev`: a demo on a real control plane on this machine, with the program installed and the examples
//! applied.

mod examples;
mod suggestions;

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, bail};
use futures::future::try_join_all;
use futures::try_join;
use lockstep_envtest::{
    Cluster, ClusterOptions, Components, Download, Installation, Options, without_progress,
};

use crate::args::kinds::KindArgs;
use crate::commands::dev::suggestions::suggestions;
use crate::commands::manifests;
use crate::environment::Environment;
use crate::operator::dev_service::{DevService, RunningService};
use crate::server::runtime;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Exit after the demo, with an error if it failed. Default: run until Ctrl-C.
    #[arg(long)]
    once: bool,
    /// Folder with the examples: objects in `valid` must be admitted, objects in `invalid` must be denied.
    #[arg(long)]
    examples: PathBuf,
    /// Download etcd, kube-apiserver and kubectl with setup-envtest, instead of building them. Not needed if
    /// `KUBEBUILDER_ASSETS` names a folder that contains them.
    #[arg(long)]
    download: bool,
    /// Index of the archives to download. Default: the index of setup-envtest.
    #[arg(long, value_name = "URL", requires = "download")]
    download_index: Option<String>,
    /// Start kube-controller-manager, kube-scheduler and kwok even if no installed kind creates objects.
    #[arg(long)]
    all_components: bool,
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
    let chosen = args.kinds.choose(environment.registry())?;
    let services: Vec<_> = chosen.dev_services().collect();
    let all = async {
        let cluster = start_cluster(args, chosen.create_objects(), &services).await?;
        let running = start_services(&cluster, &services).await?;
        let installing = install(&cluster, &services, &running, environment, &args.kinds);
        let installed = format!("Installed {}", environment.name());
        let mut installation = step(&installed, installing).await?;
        step(
            "Started the webhook and the controller",
            installation.start(&cluster),
        )
        .await?;
        writeln!(stdout())?;
        let outcome = examples::apply_all(&cluster, &examples)
            .and_then(|()| examples::show_all(&cluster, environment, &args.kinds));
        let plurals = match outcome {
            Ok(plurals) => plurals,
            Err(error) => bail!("the demo failed: {error:#}\n{}", installation.output()),
        };
        anyhow::Ok((cluster, running, installation, plurals))
    };
    let (cluster, _running, installation, plurals) = tokio::select! {
        running = all => running?,
        () = runtime::stopped(stop.clone()) => return Ok(()),
    };
    if !args.once {
        for line in suggestions(
            &cluster,
            &installation,
            &examples,
            &plurals,
            &environment.names(),
        )
        .await?
        {
            writeln!(stdout(), "{line}")?;
        }
        writeln!(stdout(), "# Press Ctrl-C here to stop the control plane.")?;
        tokio::select! {
            () = runtime::stopped(stop) => {}
            ended = installation.ended() => return Err(ended.into()),
        }
    }
    Ok(())
}

/// Starts the cluster. Its programs are built while those of the services are installed.
async fn start_cluster(
    args: &Args,
    with_workloads: bool,
    services: &[&DevService],
) -> anyhow::Result<Cluster> {
    let (components, started) = if with_workloads || args.all_components {
        let started =
            "Started etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok";
        (Components::All, started)
    } else {
        (Components::ApiServer, "Started etcd and kube-apiserver")
    };
    let options = ClusterOptions {
        components,
        download: args.download.then(|| Download {
            index: args.download_index.clone(),
        }),
        ..ClusterOptions::default()
    };
    let prepared = async { Ok(Cluster::prepare(&options).await?) };
    let installed = try_join_all(services.iter().map(|service| service.install()));
    try_join!(prepared, installed)?;
    let cluster = step(started, Cluster::start_from(&options)).await?;
    if components == Components::All {
        // Node for the Pods of operators.
        cluster.add_node("node").await?;
    }
    Ok(cluster)
}

/// Runs one step and prints how long it took.
async fn step<T, E>(what: &str, doing: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let started = Instant::now();
    let done = doing.await?;
    let line = format!("{what} in {:.1} s", started.elapsed().as_secs_f64());
    // The demo continues if the reader has closed the pipe.
    let _ = without_progress(|| writeln!(stdout(), "{line}"));
    Ok(done)
}

/// Starts the services.
async fn start_services(
    cluster: &Cluster,
    services: &[&DevService],
) -> anyhow::Result<Vec<RunningService>> {
    let mut running = Vec::new();
    for service in services {
        let started = format!("Started {}", service.name);
        running.push(step(&started, service.start(&cluster.logs())).await?);
    }
    Ok(running)
}

async fn install(
    cluster: &Cluster,
    services: &[&DevService],
    running: &[RunningService],
    environment: &Environment,
    kinds: &KindArgs,
) -> anyhow::Result<Installation> {
    let directory = cluster.directory().join("manifests");
    manifests::write(&directory, environment, kinds)?;
    let variables = running.iter().flat_map(|service| &service.environment);
    let dev_args = services.iter().flat_map(|service| &service.controller_args);
    let options = Options {
        program: std::env::current_exe().context("cannot find the path of this program")?,
        controller_env: variables.cloned().collect(),
        controller_args: dev_args.cloned().collect(),
        controller_server: None,
    };
    Ok(Installation::apply(cluster, &directory, options).await?)
}
