//! Region and IAM role by annotation: one controller, three accounts and several regions, on the simulator of RDS.

use std::collections::BTreeSet;

use kube::api::{Api, DynamicObject};
use lockstep_envtest::{Installation, eventually};
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::env::{EnvOptions, TestEnv, condition, database, iam_policy, resource_of};

const REGION: &str = "database.example.com/region";
const ROLE: &str = "database.example.com/role-arn";
const REGIONS: &str = "database.example.com/allowed-regions";
const ALLOWED: &str = "database.example.com/allowed-role-arns";

/// Role of the Namespace `team-a`, which all of its objects use.
const ROLE_A: &str = "arn:aws:iam::111111111111:role/team-a";

/// Role that objects in the Namespace `team-b` may use.
const ROLE_B: &str = "arn:aws:iam::222222222222:role/team-b";

/// Role of the Namespace `team-d`, which demands the external ID of its annotation.
const ROLE_D: &str = "arn:aws:iam::333333333333:role/team-d";

struct Teams {
    env: TestEnv,
    rds: Simulator,
}

impl Teams {
    async fn start() -> Self {
        let options = EnvOptions {
            // What happens after the start is triggered by watches.
            controller_args: vec![
                "--rds-resync-period=1h".to_owned(),
                "--external-ids=annotation".to_owned(),
            ],
            ..EnvOptions::default()
        };
        let (env, rds) = TestEnv::start_on_simulator_with(options).await;
        let roles = [ROLE_A, ROLE_B, ROLE_D].map(|role| format!("--assume-role={role}"));
        let policy = iam_policy(&roles.each_ref().map(String::as_str));
        rds.set_policy(Simulator::ACCESS_KEY, &policy);
        let teams = Self { env, rds };
        for (namespace, role, annotations) in [
            (
                "team-a",
                ROLE_A,
                json!({ROLE: ROLE_A, REGION: "us-east-1", REGIONS: "eu-west-1"}),
            ),
            (
                "team-b",
                ROLE_B,
                json!({ALLOWED: ROLE_B, REGIONS: "eu-west-1"}),
            ),
        ] {
            let uid = teams.namespace(namespace, &annotations).await;
            let account = role.split(':').nth(4).expect("an account");
            let policy = iam_policy(&[&format!("--account={account}")]);
            teams.rds.add_role(role, &uid, Some(&policy));
        }
        teams
    }

    /// Creates a Namespace with a Secret, and returns its UID.
    async fn namespace(&self, name: &str, annotations: &Value) -> String {
        let metadata = json!({"name": name, "annotations": annotations});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        self.env.kubectl_apply(&namespace).expect("a Namespace");
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "credentials", "namespace": name},
            "stringData": {"username": "app", "password": "correct-horse"},
        });
        self.env.kubectl_apply(&secret).expect("a Secret");
        Installation::allow_secrets(&self.env.cluster, name)
            .await
            .expect("a RoleBinding");
        let uid = ["get", "namespace", name, "-o", "jsonpath={.metadata.uid}"];
        self.env.kubectl(&uid).expect("a UID")
    }

    fn api(&self, namespace: &str) -> Api<DynamicObject> {
        let resource = resource_of(&database("any"));
        Api::namespaced_with(self.env.cluster.client(), namespace, &resource)
    }

    async fn is(&self, namespace: &str, name: &str, type_: &str, reason: &str) -> String {
        let api = self.api(namespace);
        let what = format!("{type_} of {namespace}/{name} with the reason {reason}");
        let found = eventually(&what, async || {
            let object = api.get(name).await.ok()?;
            let found = condition(&object, type_)?;
            (found.reason == reason).then_some(found.message)
        });
        found
            .await
            .unwrap_or_else(|error| self.env.fail(&error.to_string()))
    }

    /// Returns the number of instances in each account and region.
    fn instances(&self) -> Vec<(&'static str, &'static str, usize)> {
        let accounts = [Simulator::ACCOUNT, "111111111111", "222222222222"];
        let regions = [Simulator::REGION, "us-east-1", "eu-west-1"];
        let all = accounts
            .into_iter()
            .flat_map(|account| regions.map(|region| (account, region)));
        let counted = all.map(|(account, region)| {
            let found = self.rds.at(account, region).instance_ids();
            (account, region, found.len())
        });
        counted.filter(|it| it.2 > 0).collect()
    }

    fn annotate(&self, object: &[&str], annotation: &str) -> Result<String, String> {
        let args = [&["annotate", "--overwrite"], object, &[annotation]].concat();
        self.env.kubectl(&args)
    }
}

fn in_namespace(namespace: &str, name: &str, annotations: Value) -> Value {
    let mut object = database(name);
    object["metadata"]["namespace"] = json!(namespace);
    object["metadata"]["annotations"] = annotations;
    object
}

/// Uses a role whose trust policy demands the external ID of an annotation, which survives the loss of the cluster, and gives the
/// same to another Namespace.
async fn use_external_id_of_annotation(teams: &Teams) {
    let external_id = "lockstep-team-d";
    let annotations = json!({ROLE: ROLE_D, "database.example.com/external-id": external_id});
    let policy = iam_policy(&["--account=333333333333"]);
    teams.rds.add_role(ROLE_D, external_id, Some(&policy));
    let apply = |object: &Value| {
        let applied = teams.env.kubectl_apply(object);
        applied.unwrap_or_else(|error| teams.env.fail(&error));
    };
    teams.namespace("team-d", &annotations).await;
    apply(&in_namespace("team-d", "orders", json!({})));
    teams.is("team-d", "orders", "Ready", "Available").await;
    teams.namespace("team-e", &annotations).await;
    apply(&in_namespace("team-e", "theft", json!({})));
    let message = teams
        .is("team-e", "theft", "Stalled", "ExternalIdInUse")
        .await;
    assert!(message.contains("'team-d'"), "{message}");
    let account = teams.rds.at("333333333333", Simulator::REGION);
    assert_eq!(account.instance_ids().len(), 1);
}

/// Creates objects in both Namespaces. It is recorded which of them had the external ID first.
async fn use_external_id_after_restart(teams: &Teams) {
    for namespace in ["team-d", "team-e"] {
        let later = in_namespace(namespace, "later", json!({}));
        let applied = teams.env.kubectl_apply(&later);
        applied.unwrap_or_else(|error| teams.env.fail(&error));
    }
    teams.is("team-d", "later", "Ready", "Available").await;
    teams
        .is("team-e", "later", "Stalled", "ExternalIdInUse")
        .await;
}

/// Deletes all objects of two Namespaces: each deletion takes place where the instance is.
fn are_deleted_where_they_are(teams: &Teams, expected: &[(&str, &str, usize)]) {
    for namespace in ["team-a", "team-b"] {
        teams
            .env
            .kubectl(&["delete", "-n", namespace, "cdb", "--all", "--timeout=60s"])
            .unwrap_or_else(|error| teams.env.fail(&error));
    }
    assert_eq!(teams.instances(), []);
    let deletions = teams.rds.calls("DeleteDBInstance");
    let places: BTreeSet<_> = deletions
        .iter()
        .map(|it| (it.account.as_str(), it.region.as_str()))
        .collect();
    let expected = expected
        .iter()
        .map(|(account, region, _)| (*account, *region));
    assert_eq!(places, expected.collect());
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_managed_in_the_regions_and_accounts_of_their_teams() {
    let mut teams = Teams::start().await;
    let apply = |teams: &Teams, object: &Value| teams.env.kubectl_apply(object);
    let fail = |teams: &Teams, error: String| -> String { teams.env.fail(&error) };
    let elsewhere = json!({ROLE: ROLE_B, REGION: "eu-west-1"});
    for object in [
        in_namespace("team-a", "orders", json!({})),
        in_namespace("team-b", "orders", json!({})),
        in_namespace("team-b", "billing", elsewhere),
    ] {
        apply(&teams, &object).unwrap_or_else(|error| fail(&teams, error));
    }
    for (namespace, name) in [
        ("team-a", "orders"),
        ("team-b", "orders"),
        ("team-b", "billing"),
    ] {
        teams.is(namespace, name, "Ready", "Available").await;
    }
    let expected = [
        (Simulator::ACCOUNT, "eu-central-1", 1),
        ("111111111111", "us-east-1", 1),
        ("222222222222", "eu-west-1", 1),
    ];
    assert_eq!(teams.instances(), expected);
    let stored = teams.api("team-a").get("orders").await.expect("an object");
    assert_eq!(stored.data["status"]["region"], "us-east-1");
    assert_eq!(stored.data["status"]["accountId"], "111111111111");

    // A tenant cannot use the role of another one, and nothing is left of the attempt.
    let foreign = in_namespace("team-b", "theft", json!({ROLE: ROLE_A}));
    let denied = apply(&teams, &foreign).expect_err("a denial");
    assert!(denied.contains("[role-not-allowed]"), "{denied}");
    let far = in_namespace("team-b", "far", json!({REGION: "sa-east-1"}));
    let denied = apply(&teams, &far).expect_err("a denial");
    assert!(denied.contains("[region-not-allowed]"), "{denied}");
    // Nor can another Namespace, even if an administrator lets it: the external ID is that of the first one.
    teams.namespace("team-c", &json!({ROLE: ROLE_A})).await;
    let deputy = in_namespace("team-c", "deputy", json!({}));
    apply(&teams, &deputy).unwrap_or_else(|error| fail(&teams, error));
    let message = teams
        .is("team-c", "deputy", "Stalled", "RoleNotAssumed")
        .await;
    assert!(message.contains("AccessDenied"), "{message}");
    teams
        .env
        .kubectl(&["delete", "-n", "team-c", "cdb/deputy", "--timeout=20s"])
        .unwrap_or_else(|error| fail(&teams, error));
    assert_eq!(teams.instances(), expected);

    // An instance is not moved.
    let orders = ["-n", "team-a", "cdb/orders"];
    let to_west = format!("{REGION}=eu-west-1");
    let denied = teams.annotate(&orders, &to_west).expect_err("a denial");
    assert!(denied.contains("[region-immutable]"), "{denied}");
    teams
        .annotate(&["namespace/team-a"], &to_west)
        .unwrap_or_else(|error| fail(&teams, error));
    teams
        .is("team-a", "orders", "Stalled", "RegionMismatch")
        .await;
    teams
        .annotate(&["namespace/team-b"], &format!("{ALLOWED}="))
        .unwrap_or_else(|error| fail(&teams, error));
    teams
        .is("team-b", "billing", "Stalled", "RoleNotAllowed")
        .await;
    assert_eq!(teams.instances(), expected);

    use_external_id_of_annotation(&teams).await;

    // The same after a restart, and when everything is as it was.
    teams.env.installation.controller().kill();
    teams
        .env
        .installation
        .start_controller()
        .expect("a controller");
    teams.rds.clear_journal();
    for (namespace, annotation) in [
        ("namespace/team-a", format!("{REGION}=us-east-1")),
        ("namespace/team-b", format!("{ALLOWED}={ROLE_B}")),
    ] {
        teams
            .annotate(&[namespace], &annotation)
            .unwrap_or_else(|error| fail(&teams, error));
    }
    for (namespace, name) in [
        ("team-a", "orders"),
        ("team-b", "orders"),
        ("team-b", "billing"),
    ] {
        teams.is(namespace, name, "Ready", "Available").await;
    }
    assert_eq!(teams.instances(), expected);
    assert_eq!(teams.rds.writes(), []);
    use_external_id_after_restart(&teams).await;
    are_deleted_where_they_are(&teams, &expected);
}
