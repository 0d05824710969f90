//! `DescribeDBEngineVersions`, `DescribeOrderableDBInstanceOptions`, `DescribeCertificates`, `DescribeEvents` and
//! `DescribePendingMaintenanceActions`.

use aws_sdk_rds::types::SourceType;

use crate::client::{available, outcome, start};

#[tokio::test]
async fn the_catalogue_lists_versions_classes_and_certificates() {
    let (simulator, client) = start().await;
    simulator.add_engine_version("postgres", "16.11");
    let versions = client.describe_db_engine_versions().engine("postgres");
    let versions = versions
        .engine_version("16")
        .send()
        .await
        .expect("versions");
    let last = versions.db_engine_versions().last().expect("a version");
    assert_eq!(last.engine_version(), Some("16.11"));
    assert_eq!(last.db_parameter_group_family(), Some("postgres16"));
    let targets = last.valid_upgrade_target();
    let mut majors = targets.iter().map(|it| it.is_major_version_upgrade());
    assert!(majors.all(|is_major| is_major == Some(true)), "{targets:?}");
    let default = client
        .describe_db_engine_versions()
        .engine("mysql")
        .default_only(true);
    let default = default
        .engine_version("8.0")
        .send()
        .await
        .expect("versions");
    assert_eq!(default.db_engine_versions().len(), 1);

    let orderable = |class: &str| {
        let options = client.describe_orderable_db_instance_options();
        let options = options.engine("postgres").engine_version("16.4");
        options.db_instance_class(class).send()
    };
    let options = orderable("db.t4g.micro").await.expect("options");
    let options = options.orderable_db_instance_options();
    assert_eq!(options.len(), 4);
    let io1 = options.iter().find(|it| it.storage_type() == Some("io1"));
    assert_eq!(io1.and_then(|it| it.min_storage_size()), Some(100));
    let options = orderable("db.t2.micro").await.expect("options");
    assert!(options.orderable_db_instance_options().is_empty());

    simulator.deprecate_engine_version("postgres", "16.4");
    let options = orderable("db.t4g.micro").await.expect("options");
    assert!(options.orderable_db_instance_options().is_empty());
    let listed = |include_all: bool| {
        let versions = client.describe_db_engine_versions().engine("postgres");
        let versions = versions.engine_version("16.4").include_all(include_all);
        versions.send()
    };
    let known = listed(false).await.expect("versions");
    assert!(known.db_engine_versions().is_empty());
    let known = listed(true).await.expect("versions");
    assert_eq!(known.db_engine_versions()[0].status(), Some("deprecated"));

    let certificates = client
        .describe_certificates()
        .send()
        .await
        .expect("certificates");
    assert_eq!(certificates.certificates().len(), 3);
    let unknown = client
        .describe_certificates()
        .certificate_identifier("none");
    assert_eq!(outcome(unknown.send().await), "CertificateNotFound");
}

#[tokio::test]
async fn the_history_of_an_instance_is_listed() {
    let (simulator, client) = start().await;
    let instance = available(&simulator, &client, "orders").await;
    let events = client.describe_events().source_identifier("orders");
    let events = events.source_type(SourceType::DbInstance).send().await;
    let events = events.expect("events");
    let messages = events.events().iter().filter_map(|it| it.message());
    let messages: Vec<_> = messages.collect();
    assert_eq!(
        messages,
        ["DB instance created", "Finished DB Instance backup"]
    );
    let arn = instance.db_instance_arn().expect("an ARN");
    let actions = || client.describe_pending_maintenance_actions();
    let found = actions().send().await.expect("actions");
    assert!(found.pending_maintenance_actions().is_empty());
    simulator.add_maintenance_action(
        "orders",
        "system-update",
        "New Operating System update is available",
    );
    let found = actions()
        .resource_identifier(arn)
        .send()
        .await
        .expect("actions");
    let found = &found.pending_maintenance_actions()[0];
    assert_eq!(found.resource_identifier(), Some(arn));
    let details = found.pending_maintenance_action_details();
    assert_eq!(details[0].action(), Some("system-update"));
    let none = "arn:aws:rds:eu-central-1:123456789012:db:none";
    let unknown = actions().resource_identifier(none).send().await;
    assert_eq!(outcome(unknown), "ResourceNotFoundFault");
}
