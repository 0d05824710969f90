//! Reconciliations of instances that match the spec.

use std::time::Duration;

use serde_json::{Value, json};

use crate::aws::recent::tests::{calls, id};
use crate::tests::environment::Environment;

/// Number of instances for which listings are cheaper than single calls.
const MANY: usize = 150;

fn create(env: &Environment, id: &str) {
    env.rds.create_instance(json!({
        "DBInstanceIdentifier": id, "Engine": "postgres", "EngineVersion": "16.4",
        "DBInstanceClass": "db.t4g.micro", "AllocatedStorage": 20, "StorageType": "gp3",
        "MasterUsername": "app", "MasterUserPassword": "correct-horse", "StorageEncrypted": true, "PubliclyAccessible": false,
        "BackupRetentionPeriod": 7, "CopyTagsToSnapshot": true, "Port": 6000,
    }));
}

#[tokio::test]
async fn the_description_of_a_listing_is_enough_for_an_instance_of_any_origin() {
    let env = Environment::start().await;
    create(&env, "existing");
    create(&env, "observed");
    env.rds.advance(Duration::from_hours(1));
    env.take_snapshot("existing", "before").await;
    env.allow_sources("existing,observed,before");
    let source = json!({"sourceInstance": "observed", "latest": true});
    let origins = [
        ("created", json!({})),
        ("restored", json!({"restoreFrom": {"snapshot": "before"}})),
        ("earlier", json!({"restoreFrom": {"pointInTime": source}})),
        ("replica", json!({"replicaOf": {"identifier": "observed"}})),
        ("adopted", json!({"adopt": {"identifier": "existing"}})),
        (
            "watched",
            json!({"adopt": {"identifier": "observed"}, "managementPolicy": "Observe"}),
        ),
    ];
    for (name, fields) in &origins {
        let mut fields = fields.clone();
        if *name != "created" {
            // The instance keeps its version and its port.
            fields["engineVersion"] = Value::Null;
        }
        env.create(name, &fields).await;
        env.reconcile(name).await;
    }
    for number in 0..MANY {
        create(&env, &id(number));
    }
    env.rds.advance(Duration::from_hours(1));
    // Enough questions for a listing.
    for number in 0..MANY {
        let age = Duration::from_hours(1);
        let description = env.instances().rds.recent(&id(number), age).await;
        description.expect("an answer");
    }
    calls(&env.rds);
    for (name, _) in &origins {
        let before = env.object(name)["status"].clone();
        let output = env.reconcile(name).await;
        assert!(output.error.is_none(), "{name}: {:?}", output.error);
        assert!(output.events.is_empty(), "{name}: {:?}", output.events);
        assert_eq!(env.object(name)["status"], before, "{name}");
        assert!(env.rds.writes().is_empty(), "{name}");
        assert_eq!(calls(&env.rds), (0, 0), "{name}: no call of its own");
    }
}
