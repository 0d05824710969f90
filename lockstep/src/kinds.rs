//! Which kinds there are: the one place that names them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use cloud_database_reconciler::{CloudDatabaseReconciler, Instances, Timing};
use controller::{Loop, Metrics, Run};
use kube::Client;
use serde_json::Value;
use shared_validation::Rulesets;

/// Compiles every kind's ruleset.
pub(crate) fn rulesets() -> anyhow::Result<Rulesets> {
    Ok(Rulesets::default().with(Arc::new(cloud_database_rules::ruleset().context("the rules of CloudDatabase")?)))
}

/// What the operators may do beyond their own kinds, as RBAC rules.
pub(crate) fn access() -> Vec<Value> {
    cloud_database_reconciler::access()
}

/// What the operators can be told.
#[derive(clap::Args)]
pub(crate) struct OperatorArgs {
    /// How often RDS is looked at while something is under way.
    #[arg(long, default_value = "30s", value_parser = crate::serving::duration)]
    rds_poll: Duration,
    /// How often RDS is looked at while all is as it should be.
    #[arg(long, default_value = "10m", value_parser = crate::serving::duration)]
    rds_resync: Duration,
}

/// Every kind's loop.
pub(crate) async fn loops(client: &Client, metrics: &Metrics, args: &OperatorArgs) -> anyhow::Result<Vec<Box<dyn Run>>> {
    let timing = Timing { poll: args.rds_poll, resync: args.rds_resync };
    let databases = CloudDatabaseReconciler::new(client.clone(), Instances::from_environment().await, timing);
    let ruleset = Arc::new(cloud_database_rules::ruleset().context("the rules of CloudDatabase")?);
    Ok(vec![Box::new(Loop::new(client.clone(), ruleset, databases, metrics.clone()))])
}
