//! Every status of an instance in RDS has its meaning in the conditions of its object.

use kube::ResourceExt;
use lockstep_envtest::eventually;

use rds_simulator::End;

use crate::env::{TestEnv, condition, database};
use crate::instance_status_names::{PASSING, SERVING, STALLED};

#[tokio::test(flavor = "multi_thread")]
async fn every_status_of_an_instance_has_its_meaning_in_the_conditions() {
    let (env, rds) = TestEnv::start_on_simulator().await;
    // An object gets only some Events in a time.
    let mut instances = Vec::new();
    for name in ["orders", "billing", "stock", "shop"] {
        env.kubectl_apply(&database(name)).expect("stored");
        env.condition(name, "Synced", "True").await;
        let object = env.databases().get(name).await.expect("the object");
        instances.push((name, format!("cdb-{}", object.uid().expect("a UID"))));
    }
    let serving = SERVING.iter().map(|status| (*status, "True", "Available"));
    let passing = PASSING
        .iter()
        .map(|status| (*status, "False", "InProgress"));
    let stalled = STALLED
        .iter()
        .map(|(status, reason)| (*status, "False", *reason));
    let statuses = serving.chain(passing).chain(stalled);
    for ((status, ready, reason), (name, id)) in statuses.zip(instances.iter().cycle()) {
        rds.force_status(id, status, End::Released);
        let reported = eventually("the report of the status", async || {
            let object = env.databases().get(name).await.expect("the object");
            let found = condition(&object, "Ready")?;
            let is_reported = object.data["status"]["phase"] == status
                && (status == "available" || found.message.contains(status));
            is_reported.then_some((object, found))
        });
        let (object, found) = reported
            .await
            .unwrap_or_else(|error| env.fail(&format!("{status}: {error}")));
        assert_eq!(
            (found.status.as_str(), found.reason.as_str()),
            (ready, reason),
            "{status}"
        );
        let is_stalled = condition(&object, "Stalled").is_some();
        let needs_somebody = STALLED.iter().any(|(name, _)| *name == status);
        assert_eq!(is_stalled, needs_somebody, "{status}");
        if needs_somebody {
            env.warned(name, &format!("as '{status}'")).await;
        }
        // What differs from the spec does not depend on it.
        let synced = condition(&object, "Synced").expect("a condition");
        assert_eq!(synced.status, "True", "{status}: {}", synced.message);
    }
    let metrics = env.metrics(&env.installation.controller_health_url()).await;
    let stalled = r#"lockstep_stalled_objects{controller="clouddatabase",reason="StorageFull"} 1"#;
    assert!(metrics.contains(stalled), "{metrics}");
}
