//! The catalogue of what RDS offers: read from the account, kept in a `ConfigMap`, and used by the webhook.

use std::fs;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use lockstep_envtest::eventually;
use rds_simulator::{Disturbance, Simulator};
use serde_json::{Value, json};

use crate::env::{EnvOptions, TestEnv, check, database, database_without_warning};
use crate::metrics_page;

const CONFIG_MAP: &str = "lockstep-rds-catalogue";

/// Key of the catalogue of the simulated account and region.
fn key() -> String {
    format!("{}.{}.json.gz", Simulator::ACCOUNT, Simulator::REGION)
}

/// Returns a database with `MariaDB`, which has the fewest versions and classes.
fn of_mariadb(mut object: Value) -> Value {
    object["spec"]["engine"] = json!("mariadb");
    object["spec"]["engineVersion"] = json!("11.4.4");
    object
}

/// Installation on the simulator whose catalogue is refreshed all the time.
struct Fixture {
    env: TestEnv,
    rds: Simulator,
}

impl Fixture {
    async fn start() -> Self {
        let options = EnvOptions {
            controller_args: vec!["--rds-catalogue-refresh-interval=200ms".to_owned()],
            ..EnvOptions::default()
        };
        let (env, rds) = TestEnv::start_on_simulator_with(options).await;
        Self { env, rds }
    }

    async fn stored(&self) -> Option<ConfigMap> {
        let config_maps: Api<ConfigMap> =
            Api::namespaced(self.env.cluster.client(), "lockstep-system");
        config_maps.get_opt(CONFIG_MAP).await.expect("a response")
    }

    async fn version(&self) -> String {
        let stored = self.stored().await.expect("it exists");
        stored.metadata.resource_version.expect("a version")
    }

    /// Waits until the `ConfigMap` differs from one version, and puts it where both processes read it, as the kubelet does.
    async fn publish(&self, before: Option<&str>) -> String {
        let changed = eventually("another catalogue", async || {
            let stored = self.stored().await?;
            let version = stored.metadata.resource_version.clone()?;
            (Some(version.as_str()) != before).then_some((stored, version))
        });
        let (stored, version) = changed
            .await
            .unwrap_or_else(|error| self.env.fail(&error.to_string()));
        let labels = stored.metadata.labels.unwrap_or_default();
        assert_eq!(labels["app.kubernetes.io/managed-by"], "lockstep");
        let contents = stored.binary_data.expect("contents");
        assert!(contents.contains_key(&key()), "{:?}", contents.keys());
        let folder = self.env.installation.config_map_folder("rds-catalogue");
        fs::create_dir_all(&folder).expect("a folder");
        for (key, content) in &contents {
            let fresh = self.env.cluster.directory().join("fresh-catalogue");
            fs::write(&fresh, &content.0).expect("a file");
            fs::rename(&fresh, folder.join(key)).expect("one file system");
        }
        version
    }

    /// Tries to create a database, without storing it.
    fn dry_run(&self, version: &str, class: &str) -> Result<String, String> {
        let mut object = of_mariadb(database_without_warning("candidate"));
        object["spec"]["engineVersion"] = json!(version);
        object["spec"]["instanceClass"] = json!(class);
        let path = self.env.cluster.directory().join("candidate.json");
        fs::write(&path, object.to_string()).expect("a file");
        let path = path.to_string_lossy();
        self.env
            .kubectl(&["create", "--dry-run=server", "-f", &path])
    }

    /// Waits until a database is denied or, if `expected` is `None`, accepted.
    async fn becomes(&self, version: &str, class: &str, expected: Option<&str>) {
        let what = format!("the result for {version} with {class}");
        let found = eventually(&what, async || {
            match (self.dry_run(version, class), expected) {
                (Ok(_), None) => Some(()),
                (Err(error), Some(expected)) => error.contains(expected).then_some(()),
                _ => None,
            }
        });
        found.await.unwrap_or_else(|error| {
            let last = self.dry_run(version, class);
            self.env.fail(&format!("{error}: {last:?}"))
        });
    }

    /// Objects may be in another region as soon as a Namespace chooses it, and RDS may offer more there.
    async fn another_region_is_chosen(&self, before: &str, mut existing: Value) {
        let elsewhere = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {
                "name": "elsewhere", "annotations": {"database.example.com/region": "us-east-1"},
            },
        });
        self.env.kubectl_apply(&elsewhere).expect("a Namespace");
        self.publish(Some(before)).await;
        self.becomes("11.4.4", "db.m4.large", None).await;
        // Those with an instance remain where they are.
        existing["spec"]["instanceClass"] = json!("db.m4.large");
        let error = self.env.kubectl_apply(&existing).expect_err("a denial");
        assert!(error.contains("[not-offered]"), "{error}");
    }

    /// Waits until a number of further refreshes have had a result, and returns the metrics.
    async fn refreshes(&self, result: &str, count: u64) {
        let url = self.env.installation.controller_health_url();
        let line = format!(
            r#"lockstep_rds_catalogue_refreshes_total{{engine="mariadb",result="{result}"}} "#
        );
        let number = async || {
            let metrics = self.env.metrics(&url).await;
            let number = metrics.lines().find_map(|it| it.strip_prefix(&line));
            number.map_or(0, |number| number.parse::<u64>().expect("a number"))
        };
        let wanted = number().await + count;
        let reached = eventually("refreshes", async || {
            (number().await >= wanted).then_some(())
        });
        reached
            .await
            .unwrap_or_else(|error| self.env.fail(&format!("{result}: {error}")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_account_does_not_offer_is_denied_as_soon_as_its_catalogue_is_read() {
    let fixture = Fixture::start().await;
    let Fixture { env, rds } = &fixture;

    // By the shipped catalogue, a class without an offer gives a warning, also offline.
    let mut object = of_mariadb(database_without_warning("offline"));
    object["spec"]["instanceClass"] = json!("db.m4.large");
    let path = env.cluster.directory().join("offline.json");
    fs::write(&path, object.to_string()).expect("a file");
    let offline = check(&[], &path).to_string();
    assert!(
        offline.contains("is not offered with mariadb 11.4.4, by the catalogue of")
            && offline.contains("not-in-catalogue"),
        "{offline}"
    );
    fixture
        .dry_run("11.4.4", "db.m4.large")
        .expect("it is no error");

    // No engine is read before an object needs it.
    assert!(rds.calls("DescribeDBEngineVersions").is_empty());
    let mut orders = of_mariadb(database("orders"));
    env.kubectl_apply(&orders).expect("stored");
    env.condition("orders", "Synced", "True").await;
    let first = fixture.publish(None).await;
    let denial = format!(
        "is not offered with mariadb 11.4.4, by the catalogue of account {} in {} of ",
        Simulator::ACCOUNT,
        Simulator::REGION
    );
    fixture
        .becomes("11.4.4", "db.m4.large", Some(&denial))
        .await;
    let error = fixture
        .dry_run("11.4.4", "db.m4.large")
        .expect_err("a denial");
    assert!(
        error.contains("the nearest are db.m5.large") && error.contains("[not-offered]"),
        "{error}"
    );
    fixture.becomes("11.4.4", "db.m5.large", None).await;
    let engines = rds.calls("DescribeOrderableDBInstanceOptions");
    assert!(engines.len() > 10, "several pages: {}", engines.len());

    // The same folder for the offline check.
    let folder = env.installation.config_map_folder("rds-catalogue");
    let folder = format!("--rds-catalogues={}", folder.display());
    let offline = check(&[&folder], &path).to_string();
    assert!(
        offline.contains(&denial) && offline.contains("not-offered"),
        "{offline}"
    );

    // Nothing is written while nothing changes.
    rds.clear_journal();
    let stored = env.databases().get("orders").await.expect("the object");
    fixture.refreshes("unchanged", 3).await;
    assert_eq!(fixture.version().await, first);
    assert_eq!(rds.writes(), []);
    let now = env.databases().get("orders").await.expect("the object");
    assert_eq!(
        now.metadata.resource_version,
        stored.metadata.resource_version
    );

    // An offer appears, and another one disappears. Of a later version than the known ones, only RDS knows if it exists.
    let unknown = "is no version of mariadb that RDS offers";
    fixture
        .becomes("11.4.1", "db.t4g.micro", Some(unknown))
        .await;
    rds.add_engine_version("mariadb", "11.4.1");
    rds.deprecate_engine_version("mariadb", "11.4.4");
    let second = fixture.publish(Some(&first)).await;
    // Both changes may have been read one after the other.
    fixture.refreshes("unchanged", 2).await;
    if fixture.version().await != second {
        fixture.publish(Some(&second)).await;
    }
    fixture.becomes("11.4.1", "db.t4g.micro", None).await;
    fixture
        .becomes(
            "11.4.4",
            "db.t4g.micro",
            Some("is offered with no instance class"),
        )
        .await;
    // What RDS runs is kept, and may be changed otherwise.
    orders["spec"]["tags"] = json!({"team": "shop"});
    env.kubectl_apply(&orders).expect("the version stays");
    env.condition("orders", "Synced", "True").await;
    let last = fixture.version().await;

    // Without the permission, databases are managed as before, and the last catalogue is kept.
    let denied = Disturbance::access_denied("DescribeDBEngineVersions");
    rds.inject("DescribeDBEngineVersions", denied, usize::MAX);
    fixture.refreshes("failed", 2).await;
    let mut another = of_mariadb(database("another"));
    another["spec"]["engineVersion"] = json!("11.4.1");
    env.kubectl_apply(&another).expect("stored");
    env.condition("another", "Ready", "True").await;
    assert_eq!(fixture.version().await, last);
    fixture
        .becomes("11.4.4", "db.m4.large", Some("[not-offered]"))
        .await;
    let metrics = env.metrics(&env.installation.controller_health_url()).await;
    let denied = r#"operation="DescribeDBEngineVersions",code="AccessDenied""#;
    assert!(metrics.contains(denied), "{metrics}");
    metrics_page::compare("controller", &metrics);
    rds.clear_injections();
    fixture.refreshes("unchanged", 1).await;
    fixture.another_region_is_chosen(&last, another).await;
}
