//! Objects that are explored, and the bounds.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::virtual_time::Time;
use crate::exploration::rds::{Disruption, Instance, Phase, Rds};
use crate::exploration::search::Search;
use crate::exploration::world::{Surroundings, World};

/// Object with the changes that its user makes one after the other.
struct Scenario {
    name: &'static str,
    spec: Value,
    edits: Vec<Value>,
    rds: Rds,
}

fn spec(fields: &Value) -> Value {
    let mut spec = json!({
        "engine": "postgres", "engineVersion": "16.4", "instanceClass": "db.t4g.micro",
        "storage": {"sizeGib": 20}, "credentials": {"username": "app", "secretName": "s"},
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    spec
}

fn scenarios() -> Vec<Scenario> {
    let scenario = |name, fields: Value, edits: Vec<Value>| Scenario {
        name,
        spec: spec(&fields),
        edits,
        rds: Rds::default(),
    };
    let existing = Instance {
        id: "legacy".to_owned(),
        resource_id: "db-0".to_owned(),
        owner: None,
        object: Some("shop/orders".to_owned()),
        phase: Phase::Available,
        class: "db.t4g.micro".to_owned(),
        version: "16.4".to_owned(),
        is_public: false,
        is_encrypted: true,
        is_protected: false,
        change: Disruption::default(),
        final_snapshot: None,
    };
    vec![
        scenario(
            "another class, then deleted with a final snapshot",
            json!({"applyChanges": "Immediately"}),
            vec![json!({"instanceClass": "db.t4g.small"})],
        ),
        scenario(
            "deleted with its data",
            json!({"deletionPolicy": "Delete"}),
            vec![],
        ),
        scenario(
            "protected, and retained",
            json!({"deletionPolicy": "Retain", "deletionProtection": true}),
            vec![json!({"deletionPolicy": "Snapshot"})],
        ),
        Scenario {
            rds: Rds::with(existing),
            ..scenario(
                "adopted",
                json!({"adopt": {"identifier": "legacy"}, "deletionPolicy": "Delete"}),
                vec![],
            )
        },
    ]
}

/// Returns the number of faults and of steps.
fn extent() -> (u8, usize) {
    let wanted = std::env::var("LOCKSTEP_EXPLORATION").ok();
    let wanted = wanted.as_deref().and_then(|text| text.split_once(':'));
    wanted.map_or((1, 12), |(faults, depth)| {
        let number = |text: &str| text.parse().expect("FAULTS:DEPTH");
        (
            u8::try_from(number(faults)).expect("few faults"),
            number(depth),
        )
    })
}

#[tokio::test]
async fn no_interleaving_breaks_a_property() {
    let surroundings = Surroundings::new().await;
    let time = Time {
        timestamp: Timestamp::from_second(1_800_000_000).expect("a time"),
        instant: std::time::Instant::now(),
    };
    let (faults, depth) = extent();
    for scenario in scenarios() {
        let mut search = Search::default();
        let world = World::new(&scenario.spec, scenario.rds, time, faults);
        let found = search.explore(&surroundings, world, &scenario.edits, depth);
        let found = found.await;
        println!(
            "{}: {} states, {} steps, depth {}, {:.1} s",
            scenario.name,
            search.states(),
            search.steps,
            search.depth,
            search.took.as_secs_f64(),
        );
        if let Some(trace) = found {
            panic!("{}: {trace}", scenario.name);
        }
    }
}
