//! `DescribeDBInstances`: pages, filters, and instances that are not listed yet.

use std::time::Duration;

use aws_sdk_rds::types::Filter;

use crate::client::{available, creation, outcome, start, status};

#[tokio::test]
async fn instances_are_listed_in_pages() {
    let (simulator, client) = start().await;
    for number in 0..25 {
        let id = format!("orders-{number:02}");
        creation(&client, &id).send().await.expect("an instance");
    }
    let mut ids = Vec::new();
    let mut sizes = Vec::new();
    let mut marker = None;
    // One page more than there are, so that a marker that leads back to the first page is noticed.
    for _ in 0..3 {
        let page = client.describe_db_instances().max_records(20);
        let page = page.set_marker(marker).send().await.expect("a page");
        let instances = page.db_instances().iter();
        let page_ids = instances.filter_map(|it| it.db_instance_identifier());
        ids.extend(page_ids.map(String::from));
        sizes.push(page.db_instances().len());
        marker = page.marker;
        if marker.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [20, 5]);
    let mut created = simulator.instance_ids();
    created.sort();
    assert_eq!(ids, created);
    for size in [19, 101] {
        let page = client
            .describe_db_instances()
            .max_records(size)
            .send()
            .await;
        assert_eq!(outcome(page), "InvalidParameterValue", "{size}");
    }
    let page = client.describe_db_instances().marker("none").send().await;
    assert_eq!(outcome(page), "InvalidParameterValue");
}

#[tokio::test]
async fn filters_select_instances() {
    let (simulator, client) = start().await;
    let orders = available(&simulator, &client, "orders").await;
    let mysql = creation(&client, "billing")
        .engine("mysql")
        .engine_version("8.4");
    mysql.send().await.expect("an instance");
    let found = async |name: &str, values: &[&str]| {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let filter = Filter::builder().name(name).set_values(Some(values));
        let page = client.describe_db_instances().filters(filter.build());
        let page = page.send().await;
        page.map_or_else(
            |error| vec![crate::client::code(&error)],
            |page| {
                let instances = page.db_instances.unwrap_or_default().into_iter();
                instances
                    .filter_map(|it| it.db_instance_identifier)
                    .collect()
            },
        )
    };
    assert_eq!(found("db-instance-id", &["ORDERS"]).await, ["orders"]);
    let both = ["orders", "billing", "none"];
    assert_eq!(found("db-instance-id", &both).await, ["billing", "orders"]);
    let arn = orders.db_instance_arn().expect("an ARN");
    assert_eq!(found("db-instance-id", &[arn]).await, ["orders"]);
    let id = orders.dbi_resource_id().expect("a resource ID");
    assert_eq!(found("dbi-resource-id", &[id]).await, ["orders"]);
    assert_eq!(found("engine", &["mysql"]).await, ["billing"]);
    assert_eq!(found("dbi-resource-id", &["db-NONE"]).await, [""; 0]);
    assert_eq!(found("colour", &["red"]).await, ["InvalidParameterValue"]);
    assert_eq!(status(&client, arn).await, "available");
    assert_eq!(status(&client, "none").await, "DBInstanceNotFound");
}

#[tokio::test]
async fn a_new_instance_can_be_listed_late() {
    let (simulator, client) = start().await;
    simulator.set_timing(|timing| timing.listing_delay = Duration::from_mins(1));
    creation(&client, "orders")
        .send()
        .await
        .expect("an instance");
    assert_eq!(status(&client, "orders").await, "DBInstanceNotFound");
    let again = creation(&client, "orders").send().await;
    assert_eq!(outcome(again), "DBInstanceAlreadyExists");
    simulator.advance(Duration::from_mins(1));
    assert_eq!(status(&client, "orders").await, "available");
}
