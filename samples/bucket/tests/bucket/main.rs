//! Chaos test of the operator of buckets.

mod simulator;

use std::time::Duration;

use fastrand::Rng;
use lockstep_test::chaos::{ActualState, BrokenInvariant, Chaos, Process, chaos};
use sample_bucket::{Buckets, StorageApi};
use serde_json::{Value, json};

use crate::simulator::Storage;

fn operator(process: &Process) -> Buckets {
    Buckets {
        api: StorageApi::new(process.external_url(), Duration::from_secs(5)),
        client: process.client(),
        leadership: process.leadership(),
    }
}

/// Returns a random spec. Three of the objects replicate to another one, and two of these to each other.
fn spec(random: &mut Rng, object: &str) -> Value {
    let targets = [("alpha", "bravo"), ("bravo", "alpha"), ("charlie", "delta")];
    let target = targets.iter().find(|(name, _)| *name == object);
    let versioning = random.u32(..4) > 0;
    let mut spec = json!({"bucketName": format!("{object}-bucket"), "versioning": versioning});
    if let Some((_, target)) = target
        && versioning
        && random.u32(..4) > 0
    {
        spec["replicateTo"] = (*target).into();
    }
    spec
}

fn resources(object: &Value) -> Vec<Value> {
    vec![json!({
        "name": object["spec"]["bucketName"], "owner": object["metadata"]["uid"],
        "versioning": object["spec"]["versioning"].as_bool().unwrap_or_default(),
    })]
}

/// Compares the replication of each bucket with what its object and the target, if that exists, want.
fn replication_follows_the_target(actual: &ActualState) -> Result<(), BrokenInvariant> {
    for object in &actual.objects {
        let named = |name: &Value| {
            let found = actual
                .objects
                .iter()
                .find(|it| it["metadata"]["name"] == *name);
            found.filter(|it| it["metadata"]["deletionTimestamp"].is_null())
        };
        let target = named(&object["spec"]["replicateTo"]);
        let wanted = target.map_or(&Value::Null, |target| &target["spec"]["bucketName"]);
        let name = object["spec"]["bucketName"].as_str().unwrap_or_default();
        let bucket = actual.resources.get(name);
        let bucket = bucket.filter(|bucket| bucket["owner"] == object["metadata"]["uid"]);
        if let Some(bucket) = bucket.filter(|bucket| bucket["replication"] != *wanted) {
            return Err(BrokenInvariant {
                object: object["metadata"]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                found: format!("{bucket} instead of replication to {wanted}"),
            });
        }
    }
    Ok(())
}

fn test() -> Chaos<Buckets> {
    chaos(operator)
        .external(Storage::default)
        .specs(spec)
        .expected_resources(resources)
        .invariant(replication_follows_the_target)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_survives_chaos() {
    println!("{:?}", test().seeds(6).run().await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn the_operator_survives_chaos_with_a_hundred_seeds() {
    println!("{:?}", test().seeds(100).run().await);
}
