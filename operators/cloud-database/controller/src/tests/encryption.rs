//! Sources without encryption: what is made from them is never encrypted.

use std::time::Duration;

use serde_json::{Value, json};

use crate::tests::environment::{Environment, Told};

/// Creates an instance, and returns the ways to use its data.
async fn uses(env: &Environment, id: &str, is_encrypted: bool) -> Vec<Value> {
    env.rds.create_instance(json!({
        "DBInstanceIdentifier": id, "Engine": "postgres", "EngineVersion": "16.4",
        "DBInstanceClass": "db.t4g.micro", "AllocatedStorage": 20, "StorageType": "gp3",
        "MasterUsername": "app", "MasterUserPassword": "correct-horse",
        "StorageEncrypted": is_encrypted, "PubliclyAccessible": false, "BackupRetentionPeriod": 7,
    }));
    env.rds.advance(Duration::from_hours(1));
    let snapshot = format!("of-{id}");
    env.take_snapshot(id, &snapshot).await;
    let instance = env.rds.instance(id).expect("the instance");
    let resource_id = &instance["DbiResourceId"];
    let by_name = json!({"sourceInstance": id, "latest": true});
    let by_resource = json!({"sourceResourceId": resource_id, "latest": true});
    vec![
        json!({"restoreFrom": {"snapshot": snapshot}}),
        json!({"restoreFrom": {"pointInTime": by_name}}),
        json!({"restoreFrom": {"pointInTime": by_resource}}),
        json!({"replicaOf": {"identifier": id}}),
    ]
}

#[tokio::test]
async fn no_unencrypted_instance_is_made_unless_the_spec_says_so() {
    let env = Environment::start().await;
    env.allow_sources("*");
    for is_encrypted in [true, false] {
        let id = format!("source-{is_encrypted}");
        for (number, mut fields) in uses(&env, &id, is_encrypted).await.into_iter().enumerate() {
            let name = format!("{id}-{number}");
            env.store(&name, &fields);
            env.reconcile(&name).await;
            let output = env.reconcile(&name).await;
            let created = env.rds.instance(&format!("cdb-{name}"));
            if is_encrypted {
                assert!(created.is_some(), "{name}: {:?}", output.error);
                continue;
            }
            let told = Told::of(&output);
            let expected = (true, "SourceNotUsable");
            assert_eq!((told.is_stalled, told.reason), expected, "{name}");
            assert!(told.message.contains("spec.encryption.enabled"), "{told:?}");
            assert!(created.is_none(), "{name}");
            fields["encryption"] = json!({"enabled": false});
            env.store(&format!("{name}-plain"), &fields);
            env.reconcile(&format!("{name}-plain")).await;
            env.reconcile(&format!("{name}-plain")).await;
            let created = env.rds.instance(&format!("cdb-{name}-plain"));
            assert_eq!(created.expect("an instance")["StorageEncrypted"], false);
        }
    }
}
