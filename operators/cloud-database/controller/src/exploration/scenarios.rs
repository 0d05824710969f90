//! Objects that are explored: each with the changes that its user makes, and with what RDS has before.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::virtual_time::Time;
use crate::exploration::rds::{
    Disruption, Instance, Phase, Rds, SOURCE_PASSWORD, Snapshot, VERSION,
};
use crate::exploration::search::Search;
use crate::exploration::world::{Extras, PASSWORDS, Surroundings, World};

/// Object with the changes that its user makes one after the other.
struct Scenario {
    spec: Value,
    edits: Vec<Value>,
    rds: Rds,
    extras: Extras,
    /// Ends that must be reached.
    ends: &'static [&'static str],
}

/// Snapshot from which instances are restored.
pub(super) const BACKUP: &str = "backup";

fn spec(fields: &Value) -> Value {
    let mut spec = json!({
        "engine": "postgres", "engineVersion": VERSION, "instanceClass": "db.t4g.micro",
        "storage": {"sizeGib": 20}, "credentials": {"username": "app", "secretName": "s"},
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    spec
}

fn with_backup(is_encrypted: bool) -> Rds {
    let backup = Snapshot {
        name: BACKUP.to_owned(),
        instance: "legacy".to_owned(),
        is_encrypted,
    };
    Rds {
        snapshots: vec![backup],
        ..Rds::default()
    }
}

fn scenario(fields: &Value, edits: Vec<Value>) -> Scenario {
    Scenario {
        spec: spec(fields),
        edits,
        rds: Rds::default(),
        extras: Extras::default(),
        ends: &["as desired", "gone"],
    }
}

/// Returns an instance that no object owns, or that of another object.
fn existing(owner: Option<&str>) -> Rds {
    Rds::with(Instance {
        id: "legacy".to_owned(),
        resource_id: "db-0".to_owned(),
        owner: owner.map(String::from),
        object: Some("shop/orders".to_owned()),
        phase: Phase::Available,
        class: "db.t4g.micro".to_owned(),
        version: VERSION.to_owned(),
        is_public: false,
        is_encrypted: true,
        is_protected: false,
        password: PASSWORDS[0].to_owned(),
        source: None,
        change: Disruption::default(),
        final_snapshot: None,
    })
}

/// Returns the instance of another object of the namespace.
fn with_source() -> Rds {
    let mut rds = existing(Some("uid-0"));
    for instance in rds.instances.iter_mut().chain(&mut rds.before) {
        instance.object = Some("shop/legacy".to_owned());
        instance.password = SOURCE_PASSWORD.to_owned();
    }
    rds
}

fn adoption() -> Value {
    json!({"adopt": {"identifier": "legacy"}, "deletionPolicy": "Delete"})
}

/// Returns the number of faults and of steps.
fn extent() -> (u8, usize) {
    let Ok(wanted) = std::env::var("LOCKSTEP_EXPLORATION") else {
        return (1, usize::MAX);
    };
    let numbers = wanted.split_once(':').and_then(|(faults, depth)| {
        let depth = if depth == "all" {
            usize::MAX
        } else {
            depth.parse().ok()?
        };
        Some((faults.parse().ok()?, depth))
    });
    numbers.expect("LOCKSTEP_EXPLORATION is FAULTS:STEPS, such as 2:all")
}

async fn explore(scenario: Scenario) {
    let surroundings = Surroundings::new().await;
    let time = Time {
        timestamp: Timestamp::from_second(1_800_000_000).expect("a time"),
        instant: std::time::Instant::now(),
    };
    let (faults, steps) = extent();
    let mut search = Search::default();
    let world = World::new(&scenario.spec, scenario.rds, time, faults, scenario.extras);
    let found = search.explore(&surroundings, world, &scenario.edits, steps);
    let found = found.await;
    println!(
        "{} states, {} steps, depth {}, {:.1} s",
        search.states(),
        search.steps,
        search.depth,
        search.took.as_secs_f64(),
    );
    if let Some(trace) = found {
        panic!("{trace}");
    }
    for end in scenario.ends.iter().filter(|_| steps == usize::MAX) {
        assert!(search.ends.contains(*end), "{end}: {:?}", search.ends);
    }
}

/// Declares tests, of which each explores what can happen to one object.
macro_rules! explorations {
    ($($name:ident: $scenario:expr;)+) => {
        $(#[tokio::test]
        async fn $name() {
            explore($scenario).await;
        })+
    };
}

explorations! {
    gets_another_class_and_is_deleted_after_a_final_snapshot: scenario(
        &json!({"applyChanges": "Immediately"}),
        vec![json!({"instanceClass": "db.t4g.small"})],
    );
    gets_another_class_in_the_maintenance_window: scenario(
        &json!({"applyChanges": "MaintenanceWindow", "deletionPolicy": "Delete"}),
        vec![json!({"instanceClass": "db.t4g.small"})],
    );
    is_upgraded: scenario(
        &json!({"applyChanges": "Immediately", "deletionPolicy": "Delete"}),
        vec![json!({"engineVersion": "17.2", "allowMajorVersionUpgrade": "17"})],
    );
    is_deleted_with_its_data: scenario(&json!({"deletionPolicy": "Delete"}), Vec::new());
    is_retained: Scenario {
        ends: &["as desired", "retained"],
        ..scenario(&json!({"deletionPolicy": "Retain"}), Vec::new())
    };
    is_protected: Scenario {
        ends: &["as desired", "gone", "DeletionProtected"],
        ..scenario(
            &json!({"deletionProtection": true}),
            vec![json!({"deletionProtection": false})],
        )
    };
    is_restored: Scenario {
        rds: with_backup(true),
        ..scenario(
            &json!({"restoreFrom": {"snapshot": BACKUP}, "deletionPolicy": "Delete"}),
            Vec::new(),
        )
    };
    is_not_restored_from_a_snapshot_without_encryption: Scenario {
        ends: &["SourceNotUsable", "gone"],
        rds: with_backup(false),
        ..scenario(&json!({"restoreFrom": {"snapshot": BACKUP}}), Vec::new())
    };
    is_adopted: Scenario {
        rds: existing(None),
        extras: Extras { password_changes: true, ..Extras::default() },
        ..scenario(&adoption(), Vec::new())
    };
    does_not_adopt_the_instance_of_another_object: Scenario {
        ends: &["InstanceOwned", "retained"],
        rds: existing(Some("uid-0")),
        ..scenario(&adoption(), Vec::new())
    };
    gets_another_password: Scenario {
        extras: Extras { password_changes: true, ..Extras::default() },
        ..scenario(&json!({"deletionPolicy": "Delete"}), Vec::new())
    };
    is_restored_to_a_point_in_time: Scenario {
        rds: with_source(),
        ..scenario(
            &json!({
                "restoreFrom": {"pointInTime": {"sourceInstance": "legacy", "latest": true}},
                "deletionPolicy": "Delete",
            }),
            Vec::new(),
        )
    };
    replicates_another_instance_and_is_promoted: Scenario {
        rds: with_source(),
        ..scenario(
            &json!({"replicaOf": {"identifier": "legacy"}, "deletionPolicy": "Delete"}),
            vec![json!({"replicaOf": null})],
        )
    };
    comes_from_a_backup_of_the_cluster: Scenario {
        ends: &["as desired", "gone", "InstanceOfEarlierObject"],
        extras: Extras { backups: true, ..Extras::default() },
        ..scenario(&json!({}), Vec::new())
    };
    is_adopted_and_comes_from_a_backup_of_the_cluster: Scenario {
        ends: &["as desired", "gone", "InstanceOwned"],
        rds: existing(None),
        extras: Extras { backups: true, ..Extras::default() },
        ..scenario(&adoption(), Vec::new())
    };
}
