//! Many objects after a start of the controller: most instances are described by listings, not by a call for each.

use std::time::Duration;

use kube::api::{ListParams, PostParams};
use lockstep_envtest::{eventually, stays};

use crate::env::{EnvOptions, TestEnv, condition, database};

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
    for number in 0..OBJECTS {
        let object = serde_json::from_value(database(&format!("orders-{number}")));
        let created = env
            .databases()
            .create(&PostParams::default(), &object.expect("an object"))
            .await;
        created.expect("stored");
    }
    let all = eventually("all objects in their desired state", async || {
        let objects = env.databases().list(&ListParams::default()).await.ok()?;
        let is = |object, type_| condition(object, type_).is_some_and(|it| it.status == "True");
        let mut objects = objects.items.iter();
        objects
            .all(|it| is(it, "Ready") && is(it, "Synced"))
            .then_some(())
    });
    all.await
        .unwrap_or_else(|error| env.fail(&error.to_string()));

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
