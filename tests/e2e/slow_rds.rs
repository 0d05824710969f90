//! RDS takes time to create and to delete an instance, and the object waits for it.

use lockstep_envtest::eventually;

use crate::env::{TestEnv, database};

#[tokio::test(flavor = "multi_thread")]
async fn an_object_waits_until_its_instance_is_created_and_until_it_is_deleted() {
    let (env, proxy) = TestEnv::start_behind_proxy().await;
    let calls = || {
        proxy
            .calls()
            .iter()
            .filter(|call| *call == "DescribeDBInstances")
            .count()
    };
    let calls_again = async |times: usize| {
        let before = calls();
        let again = eventually("another request to RDS", async || {
            (calls() >= before + times).then_some(())
        });
        again
            .await
            .unwrap_or_else(|error| env.fail(&error.to_string()));
    };

    proxy.report(Some("creating"));
    env.kubectl_apply(&database("orders")).expect("stored");
    let reported = eventually("the report of the RDS state", async || {
        let ready = env.condition("orders", "Ready", "False").await;
        (ready.message == "RDS reports the instance as 'creating'").then_some(())
    });
    reported
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    calls_again(3).await;
    env.condition("orders", "Ready", "False").await;
    let creations = proxy
        .calls()
        .iter()
        .filter(|call| *call == "CreateDBInstance")
        .count();
    assert_eq!(creations, 1, "{:?}", proxy.calls());

    // An unknown state counts as temporary; a state in which the instance serves clients counts as ready.
    proxy.report(Some("rebooting"));
    calls_again(2).await;
    env.condition("orders", "Ready", "False").await;
    proxy.report(Some("backing-up"));
    env.condition("orders", "Ready", "True").await;

    proxy.report(Some("deleting"));
    env.kubectl(&["delete", "cdb/orders", "--wait=false"])
        .expect("deletion begins");
    calls_again(3).await;
    assert!(
        env.has_database("orders").await,
        "the object was removed before its instance"
    );
    proxy.report(None);
    env.kubectl(&["wait", "--for=delete", "cdb/orders", "--timeout=60s"])
        .unwrap_or_else(|e| env.fail(&e));
    assert_eq!(env.instances().await.len(), 0);
}
