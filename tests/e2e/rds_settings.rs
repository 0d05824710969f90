//! Settings of an instance that the spec can leave open, on a simulator of RDS: they are set at creation, changed with
//! the spec, and then kept; and what a change does to clients is known before, and reported in the same words.

use std::process::Command;
use std::time::Duration;

use lockstep_envtest::{eventually, stays};
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::env::{TestEnv, check, database, database_without_warning};
use crate::metrics_page;

/// Long enough for the test's controller, which polls RDS every 300 ms, to make a forbidden call.
const WHILE: Duration = Duration::from_secs(2);

const ROLE: &str = "arn:aws:iam::123456789012:role/rds-monitoring";

async fn start() -> (TestEnv, Simulator) {
    let (env, rds) = TestEnv::start_on_simulator().await;
    rds.set_timing(|timing| timing.storage_cooldown = Duration::ZERO);
    rds.add_parameter_group("tuned", "postgres16");
    rds.add_parameter_group("tuned-17", "postgres17");
    rds.add_option_group("audited");
    rds.add_dual_stack_subnet_group("both");
    (env, rds)
}

/// Waits until the instance has these members.
async fn has(env: &TestEnv, rds: &Simulator, id: &str, members: Value) {
    let what = format!("an instance with {members}");
    let found = eventually(&what, async || {
        let instance = rds.instance(id)?;
        let mut members = members.as_object().expect("members").iter();
        members
            .all(|(name, value)| instance[name] == *value)
            .then_some(())
    });
    let result = found.await;
    result.unwrap_or_else(|error| env.fail(&format!("{error}\n{:?}", rds.instance(id))));
}

fn patch(env: &TestEnv, spec: &Value) -> String {
    let patch = json!({"spec": spec}).to_string();
    env.kubectl(&["patch", "cdb/orders", "--type=merge", "--patch", &patch])
        .unwrap_or_else(|error| env.fail(&error))
}

async fn status(env: &TestEnv) -> Value {
    let object = env.databases().get("orders").await;
    object.expect("the object").data["status"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_set_at_creation_changed_with_the_spec_and_kept() {
    let (env, rds) = start().await;
    let id = are_set_at_creation(&env, &rds).await;
    are_changed_with_the_spec(&env, &rds, &id).await;
    are_kept(&env, &rds, &id).await;
    wait_for_a_restart(&env, &rds, &id).await;
    a_certificate_that_is_not_renewed_is_reported(&env, &rds, &id).await;
    automated_backups_are_retained(&env, &rds).await;
}

/// Settings that RDS reports for the object of [`are_set_at_creation`].
fn created() -> Value {
    json!({
        "CACertificateIdentifier": "rds-ca-rsa4096-g1",
        "IAMDatabaseAuthenticationEnabled": true,
        "AutoMinorVersionUpgrade": false,
        "EngineLifecycleSupport": "open-source-rds-extended-support-disabled",
        "DedicatedLogVolume": true,
        "AvailabilityZone": "eu-central-1b",
        "NetworkType": "DUAL",
        "CustomerOwnedIpEnabled": true,
        "MonitoringInterval": 60,
        "MonitoringRoleArn": ROLE,
        "PerformanceInsightsEnabled": true,
        "PerformanceInsightsRetentionPeriod": 465,
        "DatabaseInsightsMode": "advanced",
        "EnabledCloudwatchLogsExports": ["postgresql", "upgrade"],
    })
}

/// Creates the object, and returns the identifier of its instance.
async fn are_set_at_creation(env: &TestEnv, rds: &Simulator) -> String {
    let mut object = database("orders");
    let settings = json!({
        "parameterGroup": "tuned",
        "optionGroup": "audited",
        "caCertificate": "rds-ca-rsa4096-g1",
        "iamAuthentication": true,
        "autoMinorVersionUpgrade": false,
        "engineLifecycleSupport": "open-source-rds-extended-support-disabled",
        "dedicatedLogVolume": true,
        "storage": {"sizeGib": 100, "type": "io2", "iops": 1000},
        "network": {"subnetGroup": "both", "availabilityZone": "eu-central-1b", "networkType": "DUAL", "customerOwnedIp": true},
        "monitoring": {
            "enhanced": {"intervalSeconds": 60, "roleArn": ROLE},
            "performanceInsights": {"enabled": true, "retentionDays": 465},
            "databaseInsights": "Advanced",
            "logExports": ["postgresql", "upgrade"],
        },
        "retainAutomatedBackups": true,
        "deletionPolicy": "Delete",
    });
    for (name, value) in settings.as_object().expect("fields") {
        object["spec"][name] = value.clone();
    }
    env.kubectl_apply(&object)
        .unwrap_or_else(|error| env.fail(&error));
    env.condition("orders", "Ready", "True").await;
    env.condition("orders", "Synced", "True").await;
    env.condition("orders", "CertificateValid", "True").await;
    let stored = env.databases().get("orders").await.expect("the object");
    let id = format!("cdb-{}", stored.metadata.uid.expect("a UID"));
    has(env, rds, &id, created()).await;
    let instance = rds.instance(&id).expect("the instance");
    assert_eq!(
        instance["DBParameterGroups"][0]["DBParameterGroupName"],
        "tuned"
    );
    assert_eq!(
        instance["OptionGroupMemberships"][0]["OptionGroupName"],
        "audited"
    );
    let certificate = &status(env).await["certificate"];
    assert_eq!(certificate["caIdentifier"], "rds-ca-rsa4096-g1");
    assert!(certificate["validTill"].is_string(), "{certificate}");
    let metrics = env.metrics(&env.installation.controller_health_url()).await;
    let expiration = r#"lockstep_rds_certificate_expiration_timestamp_seconds{namespace=""#;
    assert!(metrics.contains(expiration), "{metrics}");
    metrics_page::compare("controller", &metrics);
    let is_modified = async || !rds.calls("ModifyDBInstance").is_empty();
    stays(WHILE, "whether it was modified", is_modified).await;

    id
}

async fn are_changed_with_the_spec(env: &TestEnv, rds: &Simulator, id: &str) {
    patch(
        env,
        &json!({
            "caCertificate": "rds-ca-rsa2048-g1",
            "iamAuthentication": false,
            "autoMinorVersionUpgrade": true,
            "engineVersion": "17",
            "allowMajorVersionUpgrade": "17",
            "parameterGroup": "tuned-17",
            "engineLifecycleSupport": "open-source-rds-extended-support",
            "network": {"networkType": "IPV4", "customerOwnedIp": false},
            "monitoring": {
                "enhanced": {"intervalSeconds": 0, "roleArn": null},
                "performanceInsights": {"enabled": false, "retentionDays": null},
                "databaseInsights": "Standard",
                "logExports": ["iam-db-auth-error"],
            },
        }),
    );
    let changed = json!({
        "CACertificateIdentifier": "rds-ca-rsa2048-g1",
        "IAMDatabaseAuthenticationEnabled": false,
        "AutoMinorVersionUpgrade": true,
        "EngineVersion": "17.6",
        "EngineLifecycleSupport": "open-source-rds-extended-support",
        "NetworkType": "IPV4",
        "CustomerOwnedIpEnabled": false,
        "MonitoringInterval": 0,
        "PerformanceInsightsEnabled": false,
        "DatabaseInsightsMode": "standard",
        "EnabledCloudwatchLogsExports": ["iam-db-auth-error"],
    });
    has(env, rds, id, changed).await;
    env.condition("orders", "Synced", "True").await;
    for words in [
        "engineVersion now, with a restart of the database",
        "caCertificate now, with a possible outage",
        "parameterGroup now, with a restart of the database (that of the new version or class)",
        "monitoring.logExports now, without an outage",
    ] {
        env.has_event("reason=ModificationRequested", words).await;
    }
}

/// Changes by others are corrected while the spec names the field, and kept while it does not.
async fn are_kept(env: &TestEnv, rds: &Simulator, id: &str) {
    let is_modified = async || !rds.calls("ModifyDBInstance").is_empty();
    rds.clear_journal();
    rds.change(id, json!({"EnableIAMDatabaseAuthentication": true}));
    has(
        env,
        rds,
        id,
        json!({"IAMDatabaseAuthenticationEnabled": false}),
    )
    .await;
    patch(env, &json!({"iamAuthentication": null, "monitoring": null}));
    env.condition("orders", "Synced", "True").await;
    rds.clear_journal();
    rds.change(
        id,
        json!({"EnableIAMDatabaseAuthentication": true, "EnableCloudwatchLogsExports": ["upgrade"]}),
    );
    stays(WHILE, "whether it was undone", is_modified).await;
}

/// The log volume waits for a restart, and the controller requests it once.
async fn wait_for_a_restart(env: &TestEnv, rds: &Simulator, id: &str) {
    let is_modified = async || !rds.calls("ModifyDBInstance").is_empty();
    patch(env, &json!({"dedicatedLogVolume": false}));
    let waits = env
        .condition_because("orders", "Synced", "RestartPending")
        .await;
    assert!(
        waits.message.contains("dedicatedLogVolume"),
        "{}",
        waits.message
    );
    rds.clear_journal();
    stays(WHILE, "whether it was requested again", is_modified).await;
    let client = &env.rds;
    let reboot = client.reboot_db_instance().db_instance_identifier(id);
    reboot.send().await.expect("accepted");
    env.condition("orders", "Synced", "True").await;
}

async fn a_certificate_that_is_not_renewed_is_reported(env: &TestEnv, rds: &Simulator, id: &str) {
    let soon = json!({"CertificateDetails": {"CAIdentifier": "rds-ca-rsa2048-g1", "ValidTill": "2020-01-01T00:00:00Z"}});
    rds.report(id, soon);
    env.condition_because("orders", "CertificateValid", "CertificateExpired")
        .await;
    env.warned("orders", "spec.caCertificate").await;
    assert!(env.condition("orders", "Ready", "True").await.reason == "Available");
}

async fn automated_backups_are_retained(env: &TestEnv, rds: &Simulator) {
    env.kubectl(&["delete", "cdb", "orders", "--wait=false"])
        .unwrap_or_else(|error| env.fail(&error));
    let deletion = eventually("the deletion", async || {
        rds.calls("DeleteDBInstance").into_iter().next()
    });
    let deletion = deletion
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert_eq!(deletion.parameters["DeleteAutomatedBackups"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_effect_of_a_change_is_known_before_it_and_reported_in_the_same_words() {
    let (env, rds) = start().await;
    let mut object = database_without_warning("orders");
    object["spec"]["instanceClass"] = json!("db.m7g.large");
    env.kubectl_apply(&object)
        .unwrap_or_else(|error| env.fail(&error));
    env.condition("orders", "Synced", "True").await;

    // Offline, with the old file, and against the cluster.
    let words = "RDS applies this change now, with a restart of the database";
    let folder = tempfile::tempdir().expect("a directory");
    let write = |name: &str, object: &Value| {
        let path = folder.path().join(name);
        std::fs::write(&path, object.to_string()).expect("a file");
        path
    };
    let old = write("old.json", &object);
    object["spec"]["instanceClass"] = json!("db.m7g.xlarge");
    let new = write("new.json", &object);
    let result = check(&["--old-object", &old.to_string_lossy()], &new);
    let warning = &result["warnings"][0];
    assert_eq!(warning["field"], "spec.instanceClass", "{result}");
    assert!(warning["message"].to_string().contains(words), "{result}");
    let kubeconfig = env.cluster.kubeconfig();
    let output = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["check", "--against-cluster"])
        .arg(&new)
        .env("KUBECONFIG", kubeconfig)
        .output()
        .expect("`lockstep check` runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains(words), "{printed}");

    // At admission, and in the Event.
    let patch = json!({"spec": {"instanceClass": "db.m7g.xlarge"}}).to_string();
    let output = env
        .cluster
        .kubectl()
        .args(["patch", "cdb/orders", "--type=merge", "--patch", &patch])
        .output()
        .expect("kubectl runs");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains(words), "{printed}");
    // Right after the edit, the condition is still that of the previous generation.
    env.kubectl(&[
        "wait",
        "cdb/orders",
        "--for=condition=Synced",
        "--timeout=60s",
    ])
    .unwrap_or_else(|error| env.fail(&error));
    let id = rds.instance_ids().remove(0);
    let instance = rds.instance(&id).expect("the instance");
    assert_eq!(instance["DBInstanceClass"], "db.m7g.xlarge");
    env.has_event(
        "reason=ModificationRequested",
        "as the spec says: instanceClass now, with a restart of the database",
    )
    .await;
}
