//! Automated backups: those of instances that exist, and those that are retained when an instance is deleted.

use std::time::Duration;

use aws_sdk_rds::Client;
use aws_sdk_rds::operation::describe_db_instance_automated_backups::builders::DescribeDBInstanceAutomatedBackupsFluentBuilder as Description;
use aws_sdk_rds::primitives::DateTime;
use aws_sdk_rds::types::{DbInstanceAutomatedBackup, Filter, Tag, TagSpecification};
use rds_simulator::Simulator;

use crate::client::{available, code, creation, describe, outcome, settle, start, status};

const NOT_FOUND: &str = "DBInstanceAutomatedBackupNotFound";

async fn backups(call: Description) -> Result<Vec<DbInstanceAutomatedBackup>, String> {
    let page = call.send().await.map_err(|error| code(&error))?;
    Ok(page.db_instance_automated_backups.unwrap_or_default())
}

/// Returns the automated backups with a resource ID.
async fn of_resource(client: &Client, id: &str) -> DbInstanceAutomatedBackup {
    let call = client.describe_db_instance_automated_backups();
    let found = backups(call.dbi_resource_id(id)).await;
    let [found] = found.expect("automated backups").try_into().expect("one");
    found
}

/// Deletes an instance.
async fn delete(simulator: &Simulator, client: &Client, id: &str, with_backups: Option<bool>) {
    let call = client.delete_db_instance().db_instance_identifier(id);
    let call = call
        .skip_final_snapshot(true)
        .set_delete_automated_backups(with_backups);
    assert_eq!(outcome(call.send().await), "");
    settle(simulator);
    assert_eq!(status(client, id).await, "DBInstanceNotFound");
}

/// Creates an instance, deletes it an hour later, and returns its resource ID.
async fn deleted(simulator: &Simulator, client: &Client, id: &str) -> String {
    let instance = available(simulator, client, id).await;
    simulator.advance(Duration::from_hours(1));
    delete(simulator, client, id, Some(false)).await;
    instance.dbi_resource_id.expect("a resource ID")
}

#[tokio::test]
async fn automated_backups_outlive_their_instance_only_if_the_deletion_retains_them() {
    let (simulator, client) = start().await;
    for (id, with_backups, is_retained) in [
        ("default", None, false),
        ("removed", Some(true), false),
        ("kept", Some(false), true),
    ] {
        let instance = available(&simulator, &client, id).await;
        let resource_id = instance.dbi_resource_id().expect("a resource ID");
        let existing = of_resource(&client, resource_id).await;
        assert_eq!(existing.status(), Some("active"), "{id}");
        simulator.advance(Duration::from_hours(1));
        delete(&simulator, &client, id, with_backups).await;
        let call = client.describe_db_instance_automated_backups();
        let found = backups(call.dbi_resource_id(resource_id)).await;
        assert_eq!(found.is_ok(), is_retained, "{id}: {found:?}");
        if let Err(code) = found {
            assert_eq!(code, NOT_FOUND, "{id}");
        }
        let snapshots = simulator.snapshots();
        let of_instance = |it: &serde_json::Value| it["DbiResourceId"] == resource_id;
        assert_eq!(snapshots.iter().any(of_instance), is_retained, "{id}");
    }
    // Without automated backups, there is nothing to retain.
    let unsaved = creation(&client, "unsaved").backup_retention_period(0);
    unsaved.send().await.expect("an instance");
    settle(&simulator);
    let unsaved = describe(&client, "unsaved").await.expect("the instance");
    delete(&simulator, &client, "unsaved", Some(false)).await;
    let call = client.describe_db_instance_automated_backups();
    let found = backups(call.dbi_resource_id(unsaved.dbi_resource_id().expect("an ID"))).await;
    assert_eq!(found.expect_err("nothing is retained"), NOT_FOUND);
}

#[tokio::test]
async fn retained_backups_have_the_settings_and_the_window_of_the_deleted_instance() {
    let (simulator, client) = start().await;
    let instance = available(&simulator, &client, "orders").await;
    let resource_id = instance.dbi_resource_id().expect("a resource ID");
    let begun = of_resource(&client, resource_id).await.restore_window;
    simulator.advance(Duration::from_hours(1));
    delete(&simulator, &client, "orders", Some(false)).await;
    simulator.advance(Duration::from_hours(2));
    let retained = of_resource(&client, resource_id).await;
    assert_eq!(retained.status(), Some("retained"));
    assert_eq!(retained.db_instance_identifier(), Some("orders"));
    assert_eq!(retained.dbi_resource_id(), Some(resource_id));
    assert_eq!(retained.engine(), Some("postgres"));
    assert_eq!(retained.engine_version(), instance.engine_version());
    assert_eq!(retained.allocated_storage(), Some(100));
    assert_eq!(retained.storage_type(), Some("gp3"));
    assert_eq!(retained.master_username(), Some("app"));
    assert_eq!(retained.backup_retention_period(), Some(1));
    let time = retained.instance_create_time();
    assert_eq!(time, instance.instance_create_time());
    let window = retained.restore_window().expect("a window");
    let earliest = begun.expect("a window").earliest_time;
    assert_eq!(window.earliest_time(), earliest.as_ref());
    let latest = window.latest_time().expect("the end").secs();
    let since = simulator.now().as_second() - latest;
    // The instance was deleted two hours ago.
    assert!((7_200..7_210).contains(&since), "{since}");
}

#[tokio::test]
async fn retained_backups_expire() {
    let (simulator, client) = start().await;
    let id = deleted(&simulator, &client, "orders").await;
    simulator.advance(Duration::from_hours(23));
    of_resource(&client, &id).await;
    simulator.advance(Duration::from_hours(2));
    let call = client.describe_db_instance_automated_backups();
    let found = backups(call.dbi_resource_id(&id)).await;
    assert_eq!(found.expect_err("they have expired"), NOT_FOUND);
    assert!(simulator.snapshots().is_empty());
}

#[tokio::test]
async fn a_deleted_instance_is_restored_from_its_retained_backups() {
    let (simulator, client) = start().await;
    let id = deleted(&simulator, &client, "orders").await;
    simulator.advance(Duration::from_hours(2));
    let restore = |target: &str, id: &str| {
        let call = client.restore_db_instance_to_point_in_time();
        call.target_db_instance_identifier(target)
            .source_dbi_resource_id(id)
    };
    let latest = |target, id| restore(target, id).use_latest_restorable_time(true);
    assert_eq!(outcome(latest("restored", &id).send().await), "");
    let before_deletion = DateTime::from_secs(simulator.now().as_second() - 9_000);
    let earlier = restore("earlier", &id).restore_time(before_deletion);
    assert_eq!(outcome(earlier.send().await), "");
    settle(&simulator);
    let restored = describe(&client, "restored").await.expect("the instance");
    assert_eq!(restored.db_instance_status(), Some("available"));
    assert_eq!(restored.allocated_storage(), Some(100));
    assert_ne!(restored.dbi_resource_id(), Some(id.as_str()));
    let password = simulator.password("restored");
    assert_eq!(password.as_deref(), Some("correct-horse"));

    let after_deletion = DateTime::from_secs(simulator.now().as_second() - 3_600);
    for (expected, call) in [
        (
            "InvalidParameterValue",
            restore("a", &id).restore_time(after_deletion),
        ),
        (NOT_FOUND, latest("a", "db-NONE")),
        // The identifier is that of an instance that exists.
        (
            "DBInstanceNotFound",
            latest("a", &id)
                .set_source_dbi_resource_id(None)
                .source_db_instance_identifier("orders"),
        ),
    ] {
        assert_eq!(outcome(call.send().await), expected);
    }
}

#[tokio::test]
async fn filters_and_parameters_select_automated_backups() {
    let (simulator, client) = start().await;
    let deleted_id = deleted(&simulator, &client, "orders").await;
    let existing = available(&simulator, &client, "orders").await;
    let existing_id = existing.dbi_resource_id().expect("a resource ID");
    let fresh = creation(&client, "fresh").send().await;
    fresh.expect("an instance");
    let found = async |change: &dyn Fn(Description) -> Description| {
        let call = change(client.describe_db_instance_automated_backups());
        let mut ids: Vec<_> = match backups(call).await {
            Ok(found) => found.into_iter().filter_map(|it| it.status).collect(),
            Err(code) => vec![code],
        };
        ids.sort();
        ids
    };
    let filter = |name: &str, value: &str| Filter::builder().name(name).values(value).build();
    let all = found(&|it| it).await;
    assert_eq!(all, ["active", "creating", "retained"]);
    for (name, value, expected) in [
        ("status", "retained", ["retained"].as_slice()),
        ("status", "active", &["active"]),
        ("db-instance-id", "ORDERS", &["active", "retained"]),
        ("dbi-resource-id", &deleted_id, &["retained"]),
        ("dbi-resource-id", existing_id, &["active"]),
        ("dbi-resource-id", "db-NONE", &[]),
        ("engine", "postgres", &["InvalidParameterValue"]),
    ] {
        let selected = found(&|it| it.filters(filter(name, value))).await;
        assert_eq!(selected, expected, "{name}={value}");
    }
    let small = deleted_id.to_lowercase();
    assert_eq!(found(&|it| it.dbi_resource_id(&small)).await, ["retained"]);
    let named = found(&|it| it.db_instance_identifier("orders")).await;
    assert_eq!(named, ["active"]);
    let none = found(&|it| it.db_instance_identifier("none")).await;
    assert_eq!(none, [NOT_FOUND]);
    let retained = of_resource(&client, &deleted_id).await;
    let arn = retained.db_instance_automated_backups_arn();
    let arn = arn.expect("an ARN");
    let by_arn = found(&|it| it.db_instance_automated_backups_arn(arn)).await;
    assert_eq!(by_arn, ["retained"]);
    let small_page = found(&|it| it.max_records(1)).await;
    assert_eq!(small_page, ["InvalidParameterValue"]);
}

#[tokio::test]
async fn automated_backups_have_tags_of_their_own() {
    let (simulator, client) = start().await;
    let tag = |value: &str| Tag::builder().key("team").value(value).build();
    let of_backups = |type_: &str| {
        let specification = TagSpecification::builder().resource_type(type_);
        specification.tags(tag("backups")).build()
    };
    let request = creation(&client, "orders").tags(tag("instance"));
    let invalid = request.clone().tag_specifications(of_backups("db"));
    assert_eq!(outcome(invalid.send().await), "InvalidParameterValue");
    let request = request.tag_specifications(of_backups("auto-backup"));
    request.send().await.expect("an instance");
    settle(&simulator);
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.tag_list(), [tag("instance")]);
    let id = instance.dbi_resource_id().expect("a resource ID");
    delete(&simulator, &client, "orders", Some(false)).await;
    let retained = of_resource(&client, id).await;
    assert_eq!(retained.tag_list(), [tag("backups")]);
    let arn = retained.db_instance_automated_backups_arn();
    let arn = arn.expect("an ARN");
    let change = client.add_tags_to_resource().resource_name(arn);
    let change = change.tags(tag("shop")).send().await;
    assert_eq!(outcome(change), "");
    assert_eq!(of_resource(&client, id).await.tag_list(), [tag("shop")]);
    let none = format!("{arn}X");
    let unknown = client.list_tags_for_resource().resource_name(none);
    assert_eq!(outcome(unknown.send().await), "InvalidParameterValue");
}
