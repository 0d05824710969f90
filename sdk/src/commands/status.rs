//! `lockstep status`: what an installation does, or the state of one object, on one screen.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use k8s_openapi::api::apps::v1::Deployment;
use serde::Serialize;

use crate::args::cluster::ClusterArgs;
use crate::args::installation::InstallationArgs;
use crate::environment::Environment;
use crate::installation::{self, Installation, age};
use crate::printer;
use crate::server::runtime;
use crate::status::leader::LeaderReport;
use crate::status::object::{
    ObjectName, ObjectReader, ObjectReport, Standing, object_name, standing,
};
use crate::status::report::Report;
use crate::status::visible::Visible;
use crate::status::{certificate, crds, leader, objects, pods, queue, rights, watches, webhooks};

/// Time between two looks at an object.
const POLL: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Object to show instead of the installation, such as clouddatabase/orders. It is in the namespace of `--namespace`, or
    /// else of the kubeconfig.
    #[arg(value_name = "KIND/NAME", value_parser = object_name)]
    object: Option<ObjectName>,
    /// Wait until the object is ready (exit code 0), or until a user has to act (`Stalled`, exit code 1).
    #[arg(long, requires = "object")]
    wait: bool,
    /// Time to wait before the command ends with the exit code 2.
    #[arg(long, requires = "wait", default_value = "30m", value_parser = runtime::duration)]
    timeout: Duration,
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
    if let Some(object) = &args.object {
        return object_status(args, object, environment).await;
    }
    let client = args.cluster.client_without_retries().await?;
    let found = installation::deployments(&client, &args.installation, &environment.names()).await;
    let deployments = Visible::of(found).context("cannot read the cluster")?;
    let known = known(&deployments);
    let installation = Installation::new(client, &args.installation, known, environment)?;
    let report = read(&installation, deployments).await;
    let report = report.context("cannot read the cluster")?;
    print(args, &report, Report::to_text)?;
    Ok(report.problems.is_empty())
}

/// Returns true if the object is ready with its present generation, and no user has to act.
async fn object_status(
    args: &Args,
    object: &ObjectName,
    environment: &Environment,
) -> anyhow::Result<bool> {
    let client = args.cluster.client().await?;
    // Only the names in the CRDs are needed.
    let kinds = environment.registry().lazy_validators();
    let reader = ObjectReader::new(client, &kinds, object, args.installation.namespace())?;
    let until = Instant::now() + args.timeout;
    let mut object = reader.read().await?;
    while args.wait && standing(&object) == Standing::InProgress && Instant::now() < until {
        tokio::time::sleep(POLL).await;
        object = reader.read().await?;
    }
    let report = reader.report(&object).await?;
    print(args, &report, ObjectReport::to_text)?;
    if args.wait && report.standing == Standing::InProgress {
        anyhow::bail!("it is not ready after {}", age::short(args.timeout));
    }
    Ok(report.standing == Standing::Ready)
}

fn print<R: Serialize>(args: &Args, report: &R, to_text: fn(&R) -> String) -> anyhow::Result<()> {
    match args.output {
        Output::Text => printer::print(&to_text(report)),
        Output::Json => printer::print(&format!("{}\n", serde_json::to_string_pretty(report)?)),
    }
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
