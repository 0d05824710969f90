//! Leader election with two replicas.

use crate::env::{TestEnv, database};

#[tokio::test(flavor = "multi_thread")]
async fn another_replica_becomes_leader_when_the_leader_is_killed_or_stops() {
    let mut env = TestEnv::start().await;
    env.kubectl_apply(&database("first")).expect("stored");
    env.condition("first", "Ready", "True").await;
    let other = env
        .installation
        .start_other_controller("pod-1")
        .expect("a second replica");
    lockstep_envtest::eventually("the second replica's wait for the lease", async || {
        other.output().contains("the lease").then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert_eq!(holder(&env), "pod-0");

    // The leader is killed: the lease must expire.
    env.installation.controller().kill();
    env.kubectl_apply(&database("second")).expect("stored");
    env.condition("second", "Ready", "True").await;
    assert_eq!(holder(&env), "pod-1");

    // The leader stops: it releases the lease immediately.
    env.installation
        .start_controller()
        .expect("the process restarts");
    other.terminate().expect("a signal");
    let status =
        lockstep_envtest::eventually("the second replica's exit", async || other.exit_status())
            .await
            .expect("the process ends");
    assert!(status.success(), "{status}: {}", other.output());
    assert_ne!(holder(&env), "pod-1", "the lease was not released");
    lockstep_envtest::eventually("the election of the first replica", async || {
        (holder(&env) == "pod-0").then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    env.kubectl_apply(&database("third")).expect("stored");
    env.condition("third", "Ready", "True").await;
    assert_eq!(env.instances().await.len(), 3);
}

fn holder(env: &TestEnv) -> String {
    let arguments = [
        "get",
        "lease",
        "lockstep-controller",
        "-n",
        "lockstep-system",
        "-o",
        "jsonpath={.spec.holderIdentity}",
    ];
    env.kubectl(&arguments).expect("the Lease")
}
