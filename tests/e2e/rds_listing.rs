//! Many objects after a start of the controller: most instances are described by listings, not by a call for each.

use std::time::Duration;

use lockstep_envtest::{eventually, stays};

use crate::env::{EnvOptions, TestEnv};

/// More objects than a page of a listing has.
const OBJECTS: usize = 130;

/// Number of questions before a listing, and of its pages.
const CALLS: usize = 99 + 2;

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_controller_lists_instances_instead_of_asking_for_each() {
    let options = EnvOptions {
        controller_args: vec!["--rds-resync-period=10m".to_owned()],
        ..EnvOptions::default()
    };
    let (mut env, rds) = TestEnv::start_on_simulator_with(options).await;
    rds.set_quotas(|quotas| quotas.instances = OBJECTS);
    env.create_databases(OBJECTS).await;
    env.databases_are_synced(OBJECTS, Duration::from_mins(2))
        .await;

    env.installation.controller().kill();
    rds.clear_journal();
    env.installation.start_controller().expect("a controller");
    let calls = || rds.calls("DescribeDBInstances");
    let listed = eventually("a listing", async || (calls().len() >= CALLS).then_some(()));
    listed
        .await
        .unwrap_or_else(|error| env.fail(&format!("{error} {}", calls().len())));
    stays(Duration::from_secs(1), "calls", async || calls().len()).await;
    let calls = calls();

    let single = calls
        .iter()
        .filter(|it| it.parameters["DBInstanceIdentifier"].is_string());
    assert_eq!((single.count(), calls.len()), (CALLS - 2, CALLS));
    assert_eq!(rds.writes().len(), 0);
}
