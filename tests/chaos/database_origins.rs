//! Databases that are adopted, restored or replicas, and that have Secrets of the controller.

use aws_sdk_rds::Client;
use lockstep_envtest::eventually;
use rds_simulator::Simulator;
use serde_json::{Value, json};

/// Instance that is replicated and restored, and its snapshot. No object owns them.
const SOURCE: &str = "source";
const SNAPSHOT: &str = "before";

/// Beginning of the identifiers of instances that are adopted.
const ADOPTED: &str = "adopted-";

/// Arguments of `lockstep iam-policy` for the instances that the controller has not created.
pub const PERMISSIONS: [&str; 4] = [
    "--adopt=adopted-*",
    "--restore-snapshot=before",
    "--restore-instance=source",
    "--replicate=source",
];

/// Annotation of the namespace of the objects, which lets them use these instances.
pub const CONSENT: &str = "database.example.com/allowed-sources=adopted-*,source,before";

/// Creates the instances that exist before the objects, those that are adopted among a number of objects included.
pub async fn prepare(rds: &Simulator, client: &Client, objects: usize) {
    let adopted = (0..objects).filter(|number| is_adopted(*number));
    let adopted = adopted.map(|number| format!("{ADOPTED}{number}"));
    for id in adopted.chain([SOURCE.to_owned()]) {
        rds.create_instance(json!({
            "DBInstanceIdentifier": id, "Engine": "postgres", "EngineVersion": "16.4",
            "DBInstanceClass": "db.t4g.micro", "AllocatedStorage": 100, "StorageType": "gp3",
            "MasterUsername": "app", "MasterUserPassword": "correct-horse",
            "StorageEncrypted": true, "PubliclyAccessible": false, "BackupRetentionPeriod": 7,
            "CopyTagsToSnapshot": true,
        }));
    }
    let is_backed_up = || {
        let source = rds.instance(SOURCE).expect("the instance");
        source["DBInstanceStatus"] == "available" && source["LatestRestorableTime"].is_string()
    };
    let backed_up = eventually("a backup", async || is_backed_up().then_some(()));
    backed_up.await.expect("a backup");
    let call = client.create_db_snapshot().db_instance_identifier(SOURCE);
    let taken = call.db_snapshot_identifier(SNAPSHOT).send().await;
    taken.expect("a snapshot");
    let available = eventually("the snapshot", async || {
        let snapshots = rds.snapshots();
        let mut snapshots = snapshots.iter();
        let found = snapshots.find(|it| it["DBSnapshotIdentifier"] == SNAPSHOT)?;
        (found["Status"] == "available").then_some(())
    });
    available.await.expect("the snapshot");
}

fn is_adopted(number: usize) -> bool {
    number % 10 == 5
}

/// Gives a database an origin and credentials by the number in its name. An instance is adopted once: `earlier` is the object
/// that has the name or had it.
pub fn add(object: &mut Value, name: &str, earlier: Option<&Value>) {
    let number = name.rsplit('-').next().and_then(|it| it.parse().ok());
    let number: usize = number.expect("a number");
    let spec = &mut object["spec"];
    match number % 10 {
        0 => {
            spec["credentials"] = json!({"username": "app", "generate": {}});
            spec["connectionSecret"] = json!({});
        }
        1 => spec["connectionSecret"] = json!({}),
        2 => {
            spec["replicaOf"] = json!({"identifier": SOURCE});
            // RDS takes no final snapshot of a replica.
            spec["deletionPolicy"] = json!("Delete");
        }
        3 => spec["restoreFrom"] = json!({"snapshot": SNAPSHOT}),
        4 => {
            let source = json!({"sourceInstance": SOURCE, "latest": true});
            spec["restoreFrom"] = json!({"pointInTime": source});
        }
        _ if is_adopted(number) => {
            let adopts = earlier.is_none_or(|it| it["spec"]["adopt"].is_object());
            if adopts {
                spec["adopt"] = json!({"identifier": format!("{ADOPTED}{number}")});
            }
        }
        _ => {}
    }
}

/// Returns the identifier of an object's instance.
pub fn instance_id(object: &Value, uid: &str) -> String {
    let adopted = object["spec"]["adopt"]["identifier"].as_str();
    adopted.map_or(format!("cdb-{uid}"), String::from)
}

/// Returns true if an instance without an owner is one that existed before the objects.
pub fn existed_before(id: &str) -> bool {
    id == SOURCE || id.starts_with(ADOPTED)
}
