//! `lockstep status`: what an installation does, on one screen.

use std::process::ExitCode;

use anyhow::Context;
use k8s_openapi::api::apps::v1::Deployment;

use crate::args::cluster::ClusterArgs;
use crate::args::installation::InstallationArgs;
use crate::environment::Environment;
use crate::installation::{self, Installation};
use crate::printer;
use crate::server::runtime;
use crate::status::leader::LeaderReport;
use crate::status::report::Report;
use crate::status::visible::Visible;
use crate::status::{certificate, crds, leader, objects, pods, queue, rights, watches, webhooks};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    installation: InstallationArgs,
    /// Output format.
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Output {
    /// Human-readable tables.
    Text,
    /// One JSON object.
    Json,
}

pub(crate) fn run(args: &Args, environment: &Environment) -> ExitCode {
    match runtime::block_on(status(args, environment)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{}: {error:#}", environment.name());
            ExitCode::from(2)
        }
    }
}

/// Returns true if no problem was found.
async fn status(args: &Args, environment: &Environment) -> anyhow::Result<bool> {
    let client = args.cluster.client_without_retries().await?;
    let found = installation::deployments(&client, &args.installation, &environment.names()).await;
    let deployments = Visible::of(found).context("cannot read the cluster")?;
    let known = known(&deployments);
    let installation = Installation::new(client, &args.installation, known, environment)?;
    let report = read(&installation, deployments).await;
    let report = report.context("cannot read the cluster")?;
    match args.output {
        Output::Text => printer::print(&report.to_text())?,
        Output::Json => printer::print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?,
    }
    Ok(report.problems.is_empty())
}

async fn read(
    installation: &Installation<'_>,
    deployments: Visible<Vec<Deployment>>,
) -> anyhow::Result<Report> {
    let mut problems = Vec::new();
    let has_own_files = deployments
        .known()
        .is_some_and(|found| has_argument(found, "--cert-source=files"));
    let rights = rights::read(installation, known(&deployments)).await?;
    let missing_rights = rights.into_content(&mut problems);
    let deployments = pods::deployments(deployments, &installation.home);
    let deployments = deployments.into_content(&mut problems);
    let (mut leader, mut queues) = (None, None);
    let pods = pods::pods(installation).await?;
    if !installation.is_webhook_only {
        let found = leader::read(installation)
            .await?
            .into_content(&mut problems);
        let reconciling = found.known().map(LeaderReport::reconciling);
        let reconciling = reconciling.unwrap_or_default();
        queues = Some(queue::read(installation, &pods, &reconciling).await?);
        leader = Some(found);
    }
    let watches = watches::read(installation, &pods).await?;
    let watches = watches.into_content(&mut problems);
    let mut webhooks = None;
    if installation.has_webhook {
        let secret = certificate::read_secret(installation).await?;
        let found = webhooks::read(installation, secret, has_own_files).await?;
        webhooks = Some(found.into_content(&mut problems));
    }
    let crds = crds::read(installation).await?.into_content(&mut problems);
    let objects = objects::read(installation)
        .await?
        .into_content(&mut problems);
    Ok(Report {
        problems,
        namespace: installation.home.clone(),
        watched_namespaces: installation.namespaces.clone(),
        deployments,
        pods,
        crds,
        webhooks,
        leader,
        queues,
        watches,
        missing_rights,
        objects,
    })
}

/// Returns the Deployments that are visible.
fn known(deployments: &Visible<Vec<Deployment>>) -> &[Deployment] {
    deployments.known().map(Vec::as_slice).unwrap_or_default()
}

/// Returns true if a container has an argument.
fn has_argument(deployments: &[Deployment], argument: &str) -> bool {
    let pods = deployments
        .iter()
        .filter_map(|deployment| deployment.spec.as_ref()?.template.spec.as_ref());
    pods.flat_map(|pod| &pod.containers)
        .flat_map(|container| container.args.iter().flatten())
        .any(|found| found == argument)
}
