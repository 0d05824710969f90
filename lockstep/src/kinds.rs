//! Which kinds there are: the one place that names them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use cloud_database_reconciler::{CloudDatabaseReconciler, Instances, Timing};
use cloud_database_rules::CloudDatabase;
use controller::{Loop, Metrics, Run};
use kube::Client;
use serde_json::Value;
use shared_validation::{CurrentPolicy, Ruleset, Rulesets};

use crate::serving::duration;

/// Every kind's ruleset, compiled.
pub(crate) struct Kinds {
    databases: Arc<Ruleset<CloudDatabase>>,
}

impl Kinds {
    pub(crate) fn compile() -> anyhow::Result<Self> {
        let databases = cloud_database_rules::ruleset().context("the rules of CloudDatabase")?;
        Ok(Self {
            databases: Arc::new(databases),
        })
    }

    /// All of them, for who judges whatever kind comes.
    pub(crate) fn rulesets(&self) -> Rulesets {
        Rulesets::default().with(self.databases.clone())
    }
}

/// Compiles every kind's ruleset.
pub(crate) fn rulesets() -> anyhow::Result<Rulesets> {
    Ok(Kinds::compile()?.rulesets())
}

/// What the operators may do beyond their own kinds, as RBAC rules.
pub(crate) fn access() -> Vec<Value> {
    cloud_database_reconciler::access()
}

/// What the operators can be told.
#[derive(clap::Args)]
pub(crate) struct OperatorArgs {
    /// How often RDS is looked at while something is under way.
    #[arg(long = "rds-poll", default_value = "30s", value_parser = duration)]
    poll: Duration,
    /// How often RDS is looked at while all is as it should be.
    #[arg(long = "rds-resync", default_value = "10m", value_parser = duration)]
    resync: Duration,
    /// How long an instance that may have been asked for must stay unseen before it counts as gone.
    #[arg(long = "rds-settle", default_value = "2m", value_parser = duration)]
    settle: Duration,
}

/// The operators, ready to work for as many terms as this replica leads.
pub(crate) struct Operators {
    client: Client,
    instances: Instances,
    timing: Timing,
    kinds: Kinds,
    policy: CurrentPolicy,
}

impl Operators {
    /// Sets up what outlives a term.
    pub(crate) async fn new(
        client: &Client,
        args: &OperatorArgs,
        kinds: Kinds,
        policy: CurrentPolicy,
    ) -> Self {
        Self {
            client: client.clone(),
            kinds,
            policy,
            instances: Instances::from_environment().await,
            timing: Timing {
                poll: args.poll,
                resync: args.resync,
                settle: args.settle,
            },
        }
    }

    /// Every kind's loop, for one term.
    pub(crate) fn loops(&self, metrics: &Metrics) -> Vec<Box<dyn Run>> {
        let databases =
            CloudDatabaseReconciler::new(self.client.clone(), self.instances.clone(), self.timing);
        vec![Box::new(Loop::new(
            self.client.clone(),
            self.kinds.databases.clone(),
            databases,
            metrics.clone(),
            self.policy.clone(),
        ))]
    }
}
