//! The simulator and moto answer the same script in the same way, as far as moto has the behaviour of RDS.

use std::time::Duration;

use aws_sdk_rds::Client;
use aws_sdk_rds::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_rds::types::{DbInstance, Tag};
use lockstep_envtest::Moto;
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::client::{client, code, config, creation};

/// Service that answers the script.
enum Service<'a> {
    Moto,
    /// The time of the simulator is advanced after each step: moto completes everything at once.
    Simulator(&'a Simulator),
}

/// Answers to the script, by step.
struct Answers<'a> {
    service: Service<'a>,
    answers: Vec<(&'static str, Value)>,
}

impl Answers<'_> {
    /// Records the answer to a step: the code of an error, or a part of the result.
    fn record<T, E: ProvideErrorMetadata>(
        &mut self,
        step: &'static str,
        result: Result<T, SdkError<E>>,
        part: impl FnOnce(T) -> Value,
    ) {
        let answer = match result {
            Ok(result) => part(result),
            Err(error) => {
                let status = error.raw_response().map(|it| it.status().as_u16());
                json!({"code": code(&error), "status": status})
            }
        };
        self.answers.push((step, answer));
        if let Service::Simulator(simulator) = &self.service {
            simulator.advance(Duration::from_mins(1));
        }
    }

    /// Records only that a step succeeded, or its error.
    fn record_success<T, E: ProvideErrorMetadata>(
        &mut self,
        step: &'static str,
        result: Result<T, SdkError<E>>,
    ) {
        self.record(step, result, |_| json!("success"));
    }
}

/// Fields that both services report.
fn reported(instance: &DbInstance) -> Value {
    let mut tags: Vec<_> = instance
        .tag_list()
        .iter()
        .map(|it| (it.key(), it.value()))
        .collect();
    tags.sort_unstable();
    json!({
        "id": instance.db_instance_identifier(),
        "arn": instance.db_instance_arn(),
        "class": instance.db_instance_class(),
        "engine": instance.engine(),
        "version": instance.engine_version(),
        "size": instance.allocated_storage(),
        "storage": instance.storage_type(),
        "user": instance.master_username(),
        "database": instance.db_name(),
        "multi": instance.multi_az(),
        "public": instance.publicly_accessible(),
        "encrypted": instance.storage_encrypted(),
        "copies": instance.copy_tags_to_snapshot(),
        "minor": instance.auto_minor_version_upgrade(),
        "protection": instance.deletion_protection(),
        "retention": instance.backup_retention_period(),
        "backup": instance.preferred_backup_window(),
        "maintenance": instance.preferred_maintenance_window(),
        "port": instance.endpoint().and_then(|it| it.port()),
        "tags": tags,
    })
}

async fn script(client: &Client, service: Service<'_>) -> Vec<(&'static str, Value)> {
    let mut answers = Answers {
        service,
        answers: Vec::new(),
    };
    let describe = async |id: &str| {
        let call = client.describe_db_instances().db_instance_identifier(id);
        call.send().await
    };
    let first = |page: aws_sdk_rds::operation::describe_db_instances::DescribeDbInstancesOutput| {
        reported(&page.db_instances()[0])
    };
    answers.record_success("describe a missing instance", describe("orders").await);
    let tag = Tag::builder().key("team").value("orders").build();
    let create = || {
        creation(client, "orders")
            .db_name("orders")
            .storage_type("gp2")
            .multi_az(true)
            .publicly_accessible(false)
            .storage_encrypted(true)
            .copy_tags_to_snapshot(true)
            .auto_minor_version_upgrade(false)
            .backup_retention_period(7)
            .preferred_backup_window("03:00-03:30")
            .preferred_maintenance_window("sun:05:00-sun:05:30")
            .port(5_433)
            .tags(tag.clone())
    };
    answers.record_success("create", create().send().await);
    answers.record("describe", describe("orders").await, first);
    answers.record_success("create again", create().send().await);
    let modify = || client.modify_db_instance().db_instance_identifier("orders");
    let change = modify().apply_immediately(true).allocated_storage(200);
    let change = change.db_instance_class("db.m6g.large").multi_az(false);
    answers.record_success("modify", change.send().await);
    answers.record("describe the modified", describe("orders").await, first);
    let missing = modify().db_instance_identifier("none");
    answers.record_success("modify a missing instance", missing.send().await);

    let arn = "arn:aws:rds:eu-central-1:123456789012:db:orders";
    let tag = Tag::builder().key("stage").value("test").build();
    let add = client.add_tags_to_resource().resource_name(arn).tags(tag);
    answers.record_success("add a tag", add.send().await);
    let remove = client
        .remove_tags_from_resource()
        .resource_name(arn)
        .tag_keys("team");
    answers.record_success("remove a tag", remove.send().await);
    let list = client.list_tags_for_resource().resource_name(arn);
    answers.record("list the tags", list.send().await, |tags| {
        let tags = tags.tag_list().iter().map(|it| (it.key(), it.value()));
        json!(tags.collect::<Vec<_>>())
    });

    life_cycle(client, &mut answers).await;
    answers.answers
}

/// Steps that stop, save and delete the instance.
async fn life_cycle(client: &Client, answers: &mut Answers<'_>) {
    let stop = || client.stop_db_instance().db_instance_identifier("orders");
    let start = || client.start_db_instance().db_instance_identifier("orders");
    answers.record_success("start a running instance", start().send().await);
    answers.record_success("stop", stop().send().await);
    answers.record_success("stop a stopped instance", stop().send().await);
    answers.record_success("start", start().send().await);
    let snapshot = || client.create_db_snapshot().db_instance_identifier("orders");
    let snapshot = || snapshot().db_snapshot_identifier("before").send();
    answers.record_success("take a snapshot", snapshot().await);
    answers.record_success("take it again", snapshot().await);
    let list = client
        .describe_db_snapshots()
        .db_snapshot_identifier("none");
    answers.record_success("describe a missing snapshot", list.send().await);
    let restore = client.restore_db_instance_from_db_snapshot();
    let restore = restore
        .db_instance_identifier("restored")
        .db_snapshot_identifier("none");
    answers.record_success("restore a missing snapshot", restore.send().await);

    let modify = || client.modify_db_instance().db_instance_identifier("orders");
    let protect = modify().deletion_protection(true).apply_immediately(true);
    answers.record_success("protect", protect.send().await);
    let delete = || client.delete_db_instance().db_instance_identifier("orders");
    let skip = delete().skip_final_snapshot(true).send().await;
    answers.record_success("delete the protected instance", skip);
    let release = modify().deletion_protection(false).apply_immediately(true);
    answers.record_success("end the protection", release.send().await);
    let taken = delete().final_db_snapshot_identifier("before").send().await;
    answers.record_success("delete with a snapshot that exists", taken);
    let deleted = delete()
        .final_db_snapshot_identifier("orders-final")
        .send()
        .await;
    answers.record("delete", deleted, |answer| {
        json!(answer.db_instance().and_then(|it| it.db_instance_status()))
    });
    let describe = client
        .describe_db_instances()
        .db_instance_identifier("orders");
    answers.record_success("describe the deleted instance", describe.send().await);
    let list = client
        .describe_db_snapshots()
        .db_snapshot_identifier("orders-final");
    answers.record("describe the final snapshot", list.send().await, |page| {
        let snapshot = &page.db_snapshots()[0];
        json!({
            "status": snapshot.status(),
            "instance": snapshot.db_instance_identifier(),
            "size": snapshot.allocated_storage(),
            "encrypted": snapshot.encrypted(),
        })
    });
}

#[tokio::test]
async fn the_simulator_answers_as_moto_does() {
    let simulator = Simulator::start().await.expect("a simulator");
    simulator.set_speed(0.0);
    let simulated = client(&simulator).await;
    let simulated = script(&simulated, Service::Simulator(&simulator)).await;
    let moto = Moto::start().await.expect("moto");
    let config = config(&moto.endpoint(), Simulator::REGION, Simulator::ACCESS_KEY).await;
    let of_moto = script(&Client::new(&config), Service::Moto).await;
    for (simulated, of_moto) in simulated.iter().zip(&of_moto) {
        assert_eq!(simulated, of_moto);
    }
    assert_eq!(simulated.len(), of_moto.len());
}
