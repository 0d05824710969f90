//! Faults that a test injects.

use std::time::{Duration, Instant};

use aws_sdk_rds::Client;
use aws_sdk_rds::error::{ProvideErrorMetadata, SdkError};
use rds_simulator::{Disturbance, Model, Outcome, Simulator};
use serde_json::json;

use crate::client::{code, config, creation, outcome, start, status};

#[tokio::test]
async fn the_next_calls_fail_with_the_error_that_a_test_injects() {
    let (simulator, client) = start().await;
    for (disturbance, expected, http) in [
        (Disturbance::throttling(), "Throttling", 400),
        (Disturbance::internal_failure(), "InternalFailure", 500),
        (Disturbance::unavailable(), "ServiceUnavailable", 503),
        (
            Disturbance::access_denied("DescribeDBInstances"),
            "AccessDenied",
            403,
        ),
    ] {
        simulator.inject("DescribeDBInstances", disturbance, 2);
        for _ in 0..2 {
            let error = client.describe_db_instances().send().await;
            let error = error.expect_err("an error");
            let status = error.raw_response().map(|it| it.status().as_u16());
            assert_eq!(status, Some(http));
            assert_eq!(code(&error), expected);
        }
        let list = client.describe_db_instances().send().await;
        assert_eq!(outcome(list), "");
    }
    simulator.inject("DescribeDBInstances", Disturbance::throttling(), 1);
    simulator.clear_injections();
    assert_eq!(outcome(client.describe_db_instances().send().await), "");
}

#[tokio::test]
async fn every_documented_error_reaches_the_client_with_its_status() {
    let (simulator, client) = start().await;
    let model = Model::rds();
    for operation in [
        "CreateDBInstance",
        "ModifyDBInstance",
        "DeleteDBInstance",
        "DescribeDBInstances",
    ] {
        for expected in &model.operations[operation].errors {
            let error = Disturbance::Error(expected.clone(), "by a test".to_owned());
            simulator.inject(operation, error, 1);
            let (code, status) = match operation {
                "CreateDBInstance" => failure(creation(&client, "orders").send().await),
                "ModifyDBInstance" => {
                    let call = client.modify_db_instance().db_instance_identifier("orders");
                    failure(call.send().await)
                }
                "DeleteDBInstance" => {
                    let call = client.delete_db_instance().db_instance_identifier("orders");
                    failure(call.send().await)
                }
                _ => failure(client.describe_db_instances().send().await),
            };
            assert_eq!(code, *expected, "{operation}");
            assert_eq!(status, model.errors[expected], "{operation}: {code}");
        }
    }
}

/// Returns the code and the HTTP status of an error.
fn failure<T, E: ProvideErrorMetadata>(result: Result<T, SdkError<E>>) -> (String, u16) {
    let Err(error) = result else {
        panic!("an error is expected");
    };
    let status = error.raw_response().map(|it| it.status().as_u16());
    (code(&error), status.expect("an answer"))
}

#[tokio::test]
async fn a_call_with_a_lost_answer_was_carried_out_and_one_that_was_lost_itself_was_not() {
    let (simulator, client) = start().await;
    simulator.inject("CreateDBInstance", Disturbance::LostRequest, 1);
    let lost = creation(&client, "orders").send().await;
    assert_eq!(outcome(lost), "no answer");
    assert_eq!(simulator.instance_ids(), [""; 0]);
    simulator.inject("CreateDBInstance", Disturbance::LostAnswer, 1);
    let lost = creation(&client, "orders").send().await;
    assert_eq!(outcome(lost), "no answer");
    assert_eq!(simulator.instance_ids(), ["orders"]);
    let again = creation(&client, "orders").send().await;
    assert_eq!(outcome(again), "DBInstanceAlreadyExists");
    let creation = |outcome| ("CreateDBInstance".to_owned(), outcome);
    let lost_success = Outcome::AnswerLost(Box::new(Outcome::Succeeded));
    let exists = Outcome::Failed("DBInstanceAlreadyExists".to_owned());
    assert_eq!(
        simulator.writes(),
        [
            creation(Outcome::RequestLost),
            creation(lost_success),
            creation(exists)
        ]
    );
}

#[tokio::test]
async fn a_client_that_retries_finds_the_instance_of_its_own_lost_creation() {
    let (simulator, _) = start().await;
    let config = config(&simulator.endpoint(), Simulator::REGION, "testing").await;
    simulator.inject("CreateDBInstance", Disturbance::LostAnswer, 1);
    let result = creation(&Client::new(&config), "orders").send().await;
    assert_eq!(outcome(result), "DBInstanceAlreadyExists");
    assert_eq!(simulator.calls("CreateDBInstance").len(), 2);
}

#[tokio::test]
async fn an_answer_can_be_late() {
    let (simulator, client) = start().await;
    let delay = Duration::from_millis(200);
    simulator.inject("DescribeDBInstances", Disturbance::Delay(delay), 1);
    let before = Instant::now();
    assert_eq!(outcome(client.describe_db_instances().send().await), "");
    assert!(before.elapsed() >= delay);
}

#[tokio::test]
async fn a_parameter_can_be_refused() {
    let (simulator, client) = start().await;
    crate::client::available(&simulator, &client, "orders").await;
    let message = "The parameter is refused by a test.";
    simulator.refuse(
        "ModifyDBInstance",
        "MultiAZ",
        "InvalidParameterCombination",
        message,
    );
    let modification = || client.modify_db_instance().db_instance_identifier("orders");
    let error = modification().multi_az(true).send().await;
    let error = error.expect_err("an error").into_service_error();
    assert_eq!(error.meta().message(), Some(message));
    let other = modification().deletion_protection(true).send().await;
    assert_eq!(outcome(other), "");
    assert_eq!(status(&client, "orders").await, "available");
}

#[tokio::test]
#[should_panic(expected = "DescribeDBInstances documents no error DBSnapshotNotFound")]
async fn an_error_that_rds_cannot_answer_is_not_injected() {
    let (simulator, _) = start().await;
    let error = Disturbance::Error("DBSnapshotNotFound".to_owned(), String::new());
    simulator.inject("DescribeDBInstances", error, 1);
}

#[tokio::test]
#[should_panic(expected = "the model has no member Colour")]
async fn an_answer_that_rds_cannot_give_fails_the_test() {
    let (simulator, client) = start().await;
    crate::client::available(&simulator, &client, "orders").await;
    simulator.report("orders", json!({"Colour": "red"}));
    let answer = client.describe_db_instances().send().await;
    assert_eq!(outcome(answer), "InternalFailure");
}
