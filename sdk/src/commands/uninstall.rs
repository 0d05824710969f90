//! `lockstep uninstall`: removes the objects and the installation in a safe order.

use std::io::{self, BufRead, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tokio::time::Instant;

use crate::args::cluster::ClusterArgs;
use crate::args::installation::InstallationArgs;
use crate::environment::Environment;
use crate::installation::{self, Installation};
use crate::printer;
use crate::server::runtime;
use crate::uninstall::cascade::Cascade;
use crate::uninstall::plan::Plan;
use crate::uninstall::teardown::Step;
use crate::uninstall::{access, crds, objects, teardown};

#[derive(clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    installation: InstallationArgs,
    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,
    /// Print the plan, and exit with code 0.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Propagation of the deletion of objects, as with `kubectl delete`.
    #[arg(long, value_enum, default_value = "background")]
    cascade: Cascade,
    /// Delete the CRDs as well, once no object of their kinds exists in any namespace.
    #[arg(long)]
    crds: bool,
    /// Delete only the objects, and leave the installation running.
    #[arg(long, conflicts_with_all = ["crds", "cascade"])]
    objects_only: bool,
    /// Time after which the command gives up waiting.
    #[arg(long, default_value = "1h", value_parser = runtime::duration)]
    timeout: Duration,
}

/// Result of an uninstallation that could read the cluster.
enum Outcome {
    /// Nothing is left to remove.
    Removed,
    /// Some of it still exists; the output names it.
    Incomplete,
    /// Nothing was changed, because the user did not confirm.
    NotConfirmed,
}

/// Exit code for an error before anything was changed.
const NOT_STARTED: u8 = 2;

pub(crate) fn run(args: &Args, environment: &Environment) -> ExitCode {
    match runtime::block_on(uninstall(args, environment)) {
        Ok(Outcome::Removed) => ExitCode::SUCCESS,
        Ok(Outcome::Incomplete) => ExitCode::from(1),
        Ok(Outcome::NotConfirmed) => ExitCode::from(3),
        Err(error) => {
            eprintln!("{}: {error:#}; nothing was changed", environment.name());
            ExitCode::from(NOT_STARTED)
        }
    }
}

/// Returns an error only if nothing was changed.
async fn uninstall(args: &Args, environment: &Environment) -> anyhow::Result<Outcome> {
    let client = args.cluster.client().await?;
    let deployments =
        installation::deployments(&client, &args.installation, &environment.names()).await;
    let deployments = deployments.context("cannot read the Deployments of the installation")?;
    let installation = Installation::new(client, &args.installation, &deployments, environment)?;
    if let Some(release) = installation
        .helm_release
        .as_ref()
        .filter(|_| !args.objects_only)
    {
        let home = &installation.home;
        anyhow::bail!(
            "the Helm release {release} manages this installation; delete the objects with \
             `{} uninstall --objects-only --namespace={home}`, and then the release with \
             `helm uninstall {release} --namespace={home}`",
            environment.name()
        );
    }
    let plan = Plan::read(&installation, args.cascade, args.objects_only).await?;
    if plan.is_empty(args.crds) {
        printer::print("nothing to remove\n")?;
        return Ok(Outcome::Removed);
    }
    printer::print(&plan.to_text(args.crds))?;
    let missing = access::missing(&installation.client, &plan, args.cascade, args.crds).await?;
    anyhow::ensure!(
        missing.is_empty(),
        "you lack these rights:\n  {}\n",
        missing.join("\n  ")
    );
    if let Some(obstacle) = plan.obstacle(args.cascade) {
        anyhow::bail!("{obstacle}\n");
    }
    if args.dry_run {
        return Ok(Outcome::Removed);
    }
    if !args.yes && !is_confirmed()? {
        printer::print("nothing was changed; `--yes` confirms in advance\n")?;
        return Ok(Outcome::NotConfirmed);
    }
    match remove(args, &installation, &plan).await {
        Ok(outcome) => Ok(outcome),
        Err(error) => {
            eprintln!(
                "{}: {error:#}; repeat the command to continue",
                environment.name()
            );
            Ok(Outcome::Incomplete)
        }
    }
}

/// Asks for confirmation on a terminal. Without one, nothing is confirmed.
fn is_confirmed() -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    printer::print("Remove all this? Type `yes` to go on: ")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

async fn remove(
    args: &Args,
    installation: &Installation<'_>,
    plan: &Plan,
) -> anyhow::Result<Outcome> {
    let deadline = Instant::now() + args.timeout;
    if args.cascade == Cascade::Orphan {
        // A running controller would delete what the objects manage, and add its finalizer again.
        let runs = |step| matches!(step, Step::WebhookConfigurations | Step::Deployments);
        teardown::delete(installation, &plan.parts, runs, deadline).await?;
        teardown::wait_until_no_leader(installation, deadline).await?;
    }
    let left = objects::delete(installation, plan, args.cascade, deadline).await?;
    if !left.is_empty() {
        let mut out = format!("timed out: {} objects still exist\n", left.len());
        for object in &left {
            let state = object.state().unwrap_or_else(|| "no condition".to_owned());
            let command = object.describe_command();
            out.push_str(&format!(
                "  {}: {state}\n    see `{command}`\n",
                object.shown()
            ));
        }
        out.push_str(
            "The installation stays, so that it can finish. Repeat the command to continue.\n",
        );
        printer::print(&out)?;
        return Ok(Outcome::Incomplete);
    }
    if args.objects_only {
        return Ok(Outcome::Removed);
    }
    let created = Plan::read(installation, args.cascade, true).await?;
    if !created.objects.is_empty() && args.cascade == Cascade::Background {
        printer::print(&format!(
            "{} objects were created in the meantime. The installation stays; repeat the command.\n",
            created.objects.len()
        ))?;
        return Ok(Outcome::Incomplete);
    }
    teardown::delete(installation, &plan.parts, |_| true, deadline).await?;
    if args.crds {
        crds::delete(installation, &plan.crds, deadline).await?;
    }
    Ok(Outcome::Removed)
}
