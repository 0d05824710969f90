//! Each setting is sent by each call that creates or modifies an instance, if the service model of AWS says that the call
//! takes it.

use std::collections::BTreeSet;
use std::sync::Mutex;

use lockstep_cloud_database_api::effects;
use rds_simulator::Model;
use serde_json::{Value, json};

use super::*;
use crate::instance::drift::example;
use crate::settings::{SETTINGS, TagChange, Tags};

/// Calls, with the settings that they take and do not get.
const CALLS: [(&str, &[&str]); 5] = [
    ("ModifyDBInstance", &[]),
    ("CreateDBInstance", &[]),
    // It does not take the maximum size.
    ("RestoreDBInstanceFromDBSnapshot", OF_SOURCE.split_at(1).1),
    ("RestoreDBInstanceToPointInTime", &OF_SOURCE),
    ("CreateDBInstanceReadReplica", &OF_PRIMARY),
];

/// Settings that a restored instance has from its source until it is modified.
const OF_SOURCE: [&str; 6] = [
    "storage.maxSizeGib",
    "storage.type",
    "storage.sizeGib",
    "storage.iops",
    "storage.throughputMibps",
    "the password of the master user",
];

/// Settings that a replica has from its source until it is modified.
const OF_PRIMARY: [&str; 7] = [
    "storage.maxSizeGib",
    "storage.type",
    "storage.sizeGib",
    "storage.iops",
    "storage.throughputMibps",
    "parameterGroup",
    "optionGroup",
];

/// RDS that answers nothing useful.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl HttpConnector for Recorder {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let body = request.body().bytes().unwrap_or_default();
        let body = String::from_utf8_lossy(body).into_owned();
        self.0.lock().expect("a lock").push(body);
        let response = http::Response::builder().status(400).body("".into());
        let response = HttpResponse::try_from(response.expect("an answer"));
        HttpConnectorFuture::ready(Ok(response.expect("an answer")))
    }
}

impl Recorder {
    async fn client(&self) -> RdsClient {
        let connector = self.clone();
        let config = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::new("eu-central-1"))
            .credentials_provider(Credentials::new("AKIA", "secret", None, None, "tests"))
            .retry_config(RetryConfig::disabled())
            .http_client(http_client_fn(move |_, _| {
                SharedHttpConnector::new(connector.clone())
            }))
            .load()
            .await;
        instances_of(config)
    }

    /// Returns the name and the parameters of the last call.
    fn last(&self) -> (String, BTreeSet<String>) {
        let calls = self.0.lock().expect("a lock");
        let body = calls.last().expect("a call");
        let parts = body.split('&').filter_map(|part| part.split_once('='));
        let action = parts.clone().find(|(name, _)| *name == "Action");
        let names = parts.map(|(name, _)| name.split('.').next().unwrap_or_default());
        let (_, action) = action.expect("an action");
        (action.to_owned(), names.map(String::from).collect())
    }
}

/// Returns an object with this spec.
fn object(spec: &Value) -> CloudDatabase {
    let object = json!({
        "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabase",
        "metadata": {"name": "orders", "namespace": "shop", "uid": "1"},
        "spec": spec,
    });
    serde_json::from_value(object).expect("a database")
}

/// Returns a modification that sets everything.
fn change(password: PasswordChange) -> Modification {
    let mut change = example::changes(&example::everything(), true);
    change.set::<Password>(Some(password));
    change.set::<Tags>(Some(TagChange::default()));
    change
}

/// Makes each call, and returns its name and parameters.
async fn sent(spec: &Value) -> Vec<(String, BTreeSet<String>)> {
    let recorder = Recorder::default();
    let client = recorder.client().await;
    let object = object(spec);
    let id = "cdb-1";
    let password = PasswordChange::Manage {
        kms_key: Some("alias/passwords".to_owned()),
    };
    let change = change(password);
    let latest = json!({"sourceInstance": "source", "latest": true});
    let latest: PointInTime = serde_json::from_value(latest).expect("a source");
    let user = MasterUser {
        name: "app".to_owned(),
        password: MasterPassword::Managed {
            kms_key: Some("alias/passwords".to_owned()),
        },
    };
    let mut sent = Vec::new();
    let modified = client.modify(id, &change, ApplyChanges::Immediately).await;
    modified.expect_err("an error");
    sent.push(recorder.last());
    client
        .create(id, &object, &user)
        .await
        .expect_err("an error");
    sent.push(recorder.last());
    let restored = client.restore_snapshot(id, &object, "snapshot").await;
    restored.expect_err("an error");
    sent.push(recorder.last());
    let restored = client.restore_point_in_time(id, &object, &latest).await;
    restored.expect_err("an error");
    sent.push(recorder.last());
    let replicated = client.create_replica(id, &object, "source").await;
    replicated.expect_err("an error");
    sent.push(recorder.last());
    sent
}

/// Returns the parameters that a setting can be.
fn parameters(field: &str) -> Vec<&'static str> {
    match field {
        "the password of the master user" => vec!["ManageMasterUserPassword"],
        "port" => vec!["DBPortNumber", "Port"],
        "monitoring.logExports" => vec![
            "CloudwatchLogsExportConfiguration",
            "EnableCloudwatchLogsExports",
        ],
        "monitoring.enhanced" => vec!["MonitoringInterval", "MonitoringRoleArn"],
        "monitoring.performanceInsights.enabled" => vec![
            "EnablePerformanceInsights",
            "PerformanceInsightsRetentionPeriod",
            "PerformanceInsightsKMSKeyId",
        ],
        field => {
            let mut settings = effects::SETTINGS.iter();
            let setting = settings.find(|setting| setting.field == field);
            vec![setting.expect("a row of effects").parameter]
        }
    }
}

#[tokio::test]
async fn each_setting_is_sent_by_each_call_that_takes_it() {
    let model = Model::rds();
    let sent = sent(&example::everything()).await;
    assert_eq!(sent.len(), CALLS.len());
    for ((call, parameters_sent), (expected_call, left_out)) in sent.into_iter().zip(CALLS) {
        assert_eq!(call, expected_call);
        let taken = &model.shape(&model.operations[&call].input).members;
        for row in SETTINGS {
            let field = row.field();
            let is_left_out = left_out.contains(&field);
            for parameter in parameters(field) {
                let is_taken = taken.contains_key(parameter);
                assert_eq!(
                    parameters_sent.contains(parameter),
                    is_taken && !is_left_out,
                    "{parameter} of {call}"
                );
            }
            let can_be_sent = parameters(field)
                .iter()
                .any(|name| taken.contains_key(*name));
            assert!(!is_left_out || can_be_sent, "{call} does not take {field}");
        }
    }
}

#[tokio::test]
async fn a_backup_of_another_major_version_is_restored_without_what_that_may_not_accept() {
    let mut spec = example::everything();
    spec["allowMajorVersionUpgrade"] = json!("17");
    let of_version = [
        "DBParameterGroupName",
        "DedicatedLogVolume",
        "EnableCloudwatchLogsExports",
        "OptionGroupName",
    ];
    for (call, parameters_sent) in sent(&spec).await {
        let count = of_version
            .iter()
            .filter(|name| parameters_sent.contains(**name));
        let expected = if call == "CreateDBInstance" { 4 } else { 0 };
        if call != "ModifyDBInstance" {
            assert_eq!(count.count(), expected, "{call}: {parameters_sent:?}");
        }
    }
}
