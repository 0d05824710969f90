//! Replicas that share the objects by shards, with the rights of the manifests.

use std::collections::BTreeSet;

use lockstep_envtest::eventually;

use crate::env::{EnvOptions, TestEnv, database};
use crate::uninstall::{lockstep, text};

#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_the_objects_and_take_over_those_of_a_killed_one() {
    let mut env = TestEnv::start_with(EnvOptions {
        kinds: Some("CloudDatabase"),
        manifest_args: &["--shards=4"],
        ..EnvOptions::default()
    })
    .await;
    let other = env
        .installation
        .start_other_controller("pod-1")
        .expect("a second replica");
    holders_are(&env, &["pod-0", "pod-1"]).await;
    for number in 0..8 {
        let name = format!("shared-{number}");
        env.kubectl_apply(&database(&name)).expect("stored");
        env.condition(&name, "Ready", "True").await;
    }
    let status = lockstep(&env.cluster.kubeconfig(), &["status"]);
    let status = text(&status.stdout);
    assert!(status.contains("shard"), "{status}");

    env.installation.controller().kill();
    holders_are(&env, &["pod-1"]).await;
    for number in 8..12 {
        let name = format!("shared-{number}");
        env.kubectl_apply(&database(&name)).expect("stored");
        env.condition(&name, "Ready", "True").await;
    }
    assert_eq!(env.instances().await.len(), 12, "each object has one");

    let arguments = ["uninstall", "--dry-run"];
    let plan = text(&lockstep(&env.cluster.kubeconfig(), &arguments).stdout);
    for lease in [" ", "-shard-0", "-shard-3", "-tasks", "-replica-pod-1"] {
        let lease = format!("lockstep-controller{lease}");
        let mut lines = plan.lines().map(|line| format!("{line} "));
        let is_listed = lines.any(|line| line.contains(" Lease ") && line.contains(&lease));
        assert!(is_listed, "{lease}: {plan}");
    }
    other.terminate().expect("a signal");
    let ended = eventually("the replica's exit", async || other.exit_status()).await;
    assert!(ended.expect("it ends").success(), "{}", other.output());
    holders_are(&env, &[]).await;
}

/// Waits until exactly these replicas hold shards.
async fn holders_are(env: &TestEnv, expected: &[&str]) {
    let arguments = [
        "get",
        "leases",
        "--namespace=lockstep-system",
        "--selector=lockstep.dev/leader-election-id=lockstep-controller",
        "--output=jsonpath={range .items[*]}{.metadata.name} {.spec.holderIdentity}{\"\\n\"}{end}",
    ];
    eventually("the shards to be held", async || {
        let leases = env.kubectl(&arguments).expect("the Leases");
        let shards = leases.lines().filter(|line| line.contains("-shard-"));
        let holders = shards.filter_map(|line| line.split_once(' ')?.1.split('/').next());
        let holders: BTreeSet<_> = holders.filter(|holder| !holder.is_empty()).collect();
        let expected = expected.iter().copied().collect::<BTreeSet<_>>();
        (holders == expected).then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
}
