//! Leader election with two replicas.

use crate::world::{World, database};

#[tokio::test(flavor = "multi_thread")]
async fn another_replica_becomes_leader_when_the_leader_is_killed_or_stops() {
    let mut world = World::start().await;
    world.kubectl_apply(&database("first")).expect("stored");
    world.condition("first", "Ready", "True").await;
    let mut other = world
        .installation
        .start_other_controller("pod-1")
        .expect("a second replica");
    control_plane::eventually("the second replica's wait for the lease", async || {
        other.output().contains("the lease").then_some(())
    })
    .await
    .unwrap_or_else(|error| world.fail(&error.to_string()));
    assert_eq!(holder(&world), "pod-0");

    // The leader is killed: the lease must expire.
    world.installation.controller().kill();
    world.kubectl_apply(&database("second")).expect("stored");
    world.condition("second", "Ready", "True").await;
    assert_eq!(holder(&world), "pod-1");

    // The leader stops: it releases the lease immediately.
    world
        .installation
        .start_controller()
        .expect("the process restarts");
    other.terminate().expect("a signal");
    let status =
        control_plane::eventually("the second replica's exit", async || other.exit_status())
            .await
            .expect("the process ends");
    assert!(status.success(), "{status}: {}", other.output());
    assert_ne!(holder(&world), "pod-1", "the lease was not released");
    control_plane::eventually("the election of the first replica", async || {
        (holder(&world) == "pod-0").then_some(())
    })
    .await
    .unwrap_or_else(|error| world.fail(&error.to_string()));
    world.kubectl_apply(&database("third")).expect("stored");
    world.condition("third", "Ready", "True").await;
    assert_eq!(world.instances().await.len(), 3);
}

fn holder(world: &World) -> String {
    let arguments = [
        "get",
        "lease",
        "lockstep-controller",
        "-n",
        "lockstep-system",
        "-o",
        "jsonpath={.spec.holderIdentity}",
    ];
    world.kubectl(&arguments).expect("the Lease")
}
