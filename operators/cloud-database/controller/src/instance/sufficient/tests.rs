//! Descriptions for reconciliations of many objects, on the simulator of RDS.

use std::time::Duration;

use kube::Client;
use kube::client::Body;
use lockstep_controller::Leadership;
use rds_simulator::Simulator;
use serde_json::{Value, json};

use super::*;
use crate::aws::access::Access;
use crate::aws::rate_limits::RateLimits;
use crate::aws::rds_client::RdsClient;
use crate::aws::rds_clients::RdsClients;
use crate::aws::recent::tests::{calls, config_at, id, start};
use crate::instance::instance_reconciler::{RdsConfig, Shared};

/// Reconciler with its objects, each of which has a recorded instance.
pub(super) struct Objects {
    pub(super) reconciler: InstanceReconciler,
    statuses: Vec<Value>,
}

impl Objects {
    /// Records the instances that RDS lists.
    pub(super) async fn of(rds: &RdsClient, config: RdsConfig) -> Self {
        let mut statuses = Vec::new();
        let mut marker = None;
        loop {
            let page = rds.page(marker).await.expect("a page");
            statuses.extend(page.instances.iter().map(|it| {
                json!({"status": {
                    "instanceId": it.db_instance_identifier(), "resourceId": it.dbi_resource_id(),
                    "phase": it.db_instance_status(),
                }})
            }));
            marker = page.marker;
            if marker.is_none() {
                break;
            }
        }
        let server = tower::service_fn(async |_: http::Request<Body>| {
            Err::<http::Response<Body>, _>(std::io::Error::other("not called"))
        });
        let shared = Shared {
            secret_access: lockstep_controller::SecretAccess::default(),
            client: Client::new(server, "shop"),
            config,
            ca_bundle: None,
            certificate_expiry: Default::default(),
            source_policy: Default::default(),
            enqueue: Default::default(),
            quotas: Default::default(),
            events: Default::default(),
            clients: RdsClients::of(
                config_at("http://127.0.0.1:1").await,
                Leadership::always(),
                RateLimits::unlimited(),
                None,
                Default::default(),
            ),
            watches_namespaces: false,
        };
        Self {
            reconciler: InstanceReconciler::new(shared, Access::default(), rds.clone()),
            statuses,
        }
    }

    pub(super) async fn describe(
        &self,
        number: usize,
        class: &str,
    ) -> Result<Option<DbInstance>, CallError> {
        let id = id(number);
        let uid = id.trim_start_matches("cdb-");
        let object = json!({
            "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabase",
            "metadata": {"name": uid, "namespace": "shop", "uid": uid},
            "spec": {
                "engine": "postgres", "instanceClass": class, "storage": {"sizeGib": 20},
                "credentials": {"username": "app", "secretName": "s"},
            },
        });
        let object = serde_json::from_value(object).expect("a database");
        let record = Record::from_object(&self.statuses[number], &id);
        let user = Err(ReconcileError::Permanent {
            reason: "SecretNotFound",
            message: String::new(),
        });
        let described = self.reconciler.describe(&id, &object, &record, &user, None);
        described.await
    }
}

/// Class with which the instances were created.
pub(super) const CLASS: &str = "db.t4g.micro";

/// Starts a number of objects whose instances a sweep has just listed.
async fn swept(count: usize) -> (Simulator, Objects) {
    let (rds, client) = start(count).await;
    let config = RdsConfig {
        resync_period: Duration::from_hours(4),
        ..RdsConfig::default()
    };
    let objects = Objects::of(&client, config).await;
    for number in 0..count {
        objects.describe(number, CLASS).await.expect("an answer");
    }
    calls(&rds);
    (rds, objects)
}

#[tokio::test]
async fn a_description_from_a_sweep_only_confirms_what_is_recorded() {
    let (rds, objects) = swept(150).await;
    let described = async |number, class| {
        let instance = objects.describe(number, class).await;
        instance.expect("an answer").expect("an instance")
    };
    described(1, CLASS).await;
    assert_eq!(calls(&rds), (0, 0));
    // A modification is requested only because of a description of the present state.
    rds.change(&id(2), json!({"DBInstanceClass": "db.m7g.large"}));
    let changed = described(2, "db.m7g.large").await;
    assert_eq!(changed.db_instance_class(), Some("db.m7g.large"));
    assert_eq!(calls(&rds), (1, 0));
}

#[tokio::test]
async fn an_instance_with_another_status_than_the_recorded_one_is_described_again() {
    let (rds, mut objects) = swept(150).await;
    objects.statuses[3]["status"]["phase"] = json!("backing-up");
    // The descriptions are too old for an instance that is changing.
    objects.reconciler.shared.config.poll_interval = Duration::ZERO;
    objects.describe(3, CLASS).await.expect("an answer");
    assert_eq!(calls(&rds), (1, 0));
    objects.reconciler.shared.config.poll_interval = Duration::from_hours(1);
    objects.describe(3, CLASS).await.expect("an answer");
    assert_eq!(calls(&rds), (1, 0));
}

#[tokio::test]
async fn descriptions_of_instances_that_are_changing_are_younger() {
    let (_rds, client) = start(0).await;
    let reconciler = Objects::of(&client, RdsConfig::default()).await.reconciler;
    let nothing = json!({});
    let record = Record::from_object(&nothing, "cdb-1");
    let location = reconciler.locate("cdb-1", &record).await;
    tokio::time::pause();
    let age = |phase: Option<&str>| reconciler.max_age(phase).as_secs();
    assert_eq!(age(Some("available")), 150);
    let health = &reconciler.shared.events.health;
    health.set(true);
    assert_eq!(reconciler.steady_state().0, Duration::from_mins(10));
    // Events report changes from now on.
    health.record_event(location.expect("a location"));
    assert_eq!(reconciler.steady_state().0, Duration::from_hours(1));
    for (seconds, expected) in [(0, 150), (200, 200), (1_000, 900)] {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        assert_eq!(age(Some("available")), expected);
    }
    for phase in [Some("modifying"), Some("stopped"), None] {
        assert_eq!(age(phase), 15, "{phase:?}");
    }
}
