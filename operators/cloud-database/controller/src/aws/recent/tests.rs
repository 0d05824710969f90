//! Questions about many instances, on the simulator of RDS.

use std::num::NonZeroU32;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_smithy_http_client::Builder;
use lockstep_controller::Leadership;
use rds_simulator::{Disturbance, JournalEntry, Simulator};
use serde_json::json;
use tokio::task::JoinSet;

use super::*;
use crate::aws::metrics::AwsRequests;
use crate::aws::rate_limits::RateLimits;
use crate::instance::modification::Modification;
use crate::settings::RetentionDays;

/// Longer than any test.
const AGE: Duration = Duration::from_hours(1);

pub(crate) async fn client(rds: &Simulator, limits: RateLimits) -> RdsClient {
    client_at(&rds.endpoint(), limits, AwsRequests::default()).await
}

/// Creates a client without retries, whose requests are counted.
pub(crate) async fn client_at(
    endpoint: &str,
    limits: RateLimits,
    requests: AwsRequests,
) -> RdsClient {
    let config = config_at(endpoint).await;
    RdsClient::of(config, None, Leadership::always(), limits, None, requests)
}

/// Returns the configuration of a client without retries.
pub(crate) async fn config_at(endpoint: &str) -> SdkConfig {
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(Builder::new().build_http())
        .region(Region::new(Simulator::REGION))
        .credentials_provider(Credentials::new("testing", "testing", None, None, "tests"))
        .endpoint_url(endpoint)
        .retry_config(RetryConfig::disabled())
        .load()
        .await
}

pub(crate) fn id(number: usize) -> String {
    format!("cdb-{number:05}")
}

/// Creates an instance with the tags of an object in the namespace `shop`, or with the tag of another client.
fn create(rds: &Simulator, id: &str, is_ours: bool) {
    let uid = id.trim_start_matches("cdb-");
    let object = format!("shop/{uid}");
    let tags = if is_ours {
        json!([
            {"Key": tags::OWNER_TAG, "Value": uid},
            {"Key": "database.example.com/object", "Value": object},
        ])
    } else {
        json!([{"Key": "team", "Value": "shop"}])
    };
    rds.create_instance(json!({
        "DBInstanceIdentifier": id, "Engine": "postgres", "EngineVersion": "16.4",
        "DBInstanceClass": "db.t4g.micro", "AllocatedStorage": 20, "StorageType": "gp3",
        "MasterUsername": "app", "MasterUserPassword": "correct-horse", "Tags": tags,
    }));
}

/// Starts a simulator with a number of instances that are available, and a client.
pub(crate) async fn start(count: usize) -> (Simulator, RdsClient) {
    let rds = Simulator::start().await.expect("a simulator");
    rds.set_speed(0.0);
    rds.set_quotas(|quotas| {
        quotas.instances = count + 10;
        quotas.storage = i64::MAX;
    });
    for number in 0..count {
        create(&rds, &id(number), true);
    }
    rds.advance(Duration::from_secs(1));
    let client = client(&rds, RateLimits::unlimited()).await;
    (rds, client)
}

/// Asks about all instances at the same time, and returns the answers in any order.
async fn ask_all(client: &RdsClient, count: usize) -> Vec<Result<Description, CallError>> {
    let mut questions = JoinSet::new();
    for number in 0..count {
        let client = client.clone();
        questions.spawn(async move { client.recent(&id(number), AGE).await });
    }
    questions.join_all().await
}

/// Returns the numbers of single calls and of pages, and clears the journal.
pub(crate) fn calls(rds: &Simulator) -> (usize, usize) {
    let calls = rds.calls("DescribeDBInstances");
    rds.clear_journal();
    let is_single = |it: &&JournalEntry| it.parameters["DBInstanceIdentifier"].is_string();
    let single = calls.iter().filter(is_single).count();
    (single, calls.len() - single)
}

fn shown(description: &Description) -> Option<&DbInstance> {
    match description {
        Description::Swept(instance) => Some(instance),
        Description::Single(instance) => instance.as_deref(),
    }
}

#[tokio::test]
async fn few_questions_are_answered_by_single_calls() {
    let (rds, client) = start(20).await;
    for answer in ask_all(&client, 20).await {
        assert!(matches!(answer, Ok(Description::Single(Some(_)))));
    }
    assert_eq!(calls(&rds), (20, 0));
    assert_eq!(client.descriptions.len(), 0);
}

#[tokio::test]
async fn a_thousand_questions_need_a_page_for_a_hundred_instances_after_the_first_ones() {
    let (rds, client) = start(1_000).await;
    create(&rds, "another-client", false);
    for answer in ask_all(&client, 1_000).await {
        assert!(shown(&answer.expect("an answer")).is_some());
    }
    assert_eq!(calls(&rds), (99, 11));
    assert_eq!(client.descriptions.len(), 1_000);
    for answer in ask_all(&client, 1_000).await {
        assert!(matches!(answer, Ok(Description::Swept(_))));
    }
    assert_eq!(calls(&rds), (0, 0));
}

#[tokio::test]
async fn an_answer_after_a_write_is_never_older_than_the_write() {
    let (rds, client) = start(150).await;
    ask_all(&client, 150).await;
    calls(&rds);
    let change = Modification::with::<RetentionDays>(9);
    client
        .modify(
            &id(5),
            &change,
            lockstep_cloud_database_api::ApplyChanges::Immediately,
        )
        .await
        .expect("accepted");
    let arn = rds.instance(&id(6)).expect("an instance")["DBInstanceArn"].clone();
    let arn = arn.as_str().expect("an ARN");
    let team = std::collections::BTreeMap::from([("team".to_owned(), "shop".to_owned())]);
    client.tag(arn, &team).await.expect("tagged");
    client.delete(&id(7), None, None).await.expect("accepted");
    rds.advance(Duration::from_secs(1));
    let changed = client.recent(&id(5), AGE).await.expect("an answer");
    let retention = shown(&changed).and_then(DbInstance::backup_retention_period);
    assert_eq!(retention, Some(9));
    let tagged = client.recent(&id(6), AGE).await.expect("an answer");
    let tag = tags::tag("team", "shop");
    assert!(shown(&tagged).expect("it").tag_list().contains(&tag));
    let deleted = client.recent(&id(7), AGE).await.expect("an answer");
    assert!(shown(&deleted).is_none(), "{deleted:?}");
    let other = client.recent(&id(8), AGE).await.expect("an answer");
    assert!(matches!(other, Description::Swept(_)));
    assert_eq!(calls(&rds), (3, 0));
}

#[tokio::test]
async fn an_instance_that_a_sweep_does_not_list_is_searched_by_a_single_call() {
    let (rds, client) = start(150).await;
    // The last one does not exist. Its question waits for a sweep, or is one of those before.
    let answers = ask_all(&client, 151).await.into_iter();
    let answers = answers.map(|answer| answer.expect("an answer"));
    let absent: Vec<_> = answers.filter(|it| shown(it).is_none()).collect();
    assert!(matches!(absent[..], [Description::Single(None)]));
    let (single, pages) = calls(&rds);
    assert!((99..=100).contains(&single), "{single}");
    assert_eq!(pages, 2);
    create(&rds, "cdb-new", true);
    let created = client.recent("cdb-new", AGE).await.expect("an answer");
    assert!(shown(&created).is_some());
    let absent = client.recent("cdb-absent", AGE).await.expect("an answer");
    assert!(matches!(absent, Description::Single(None)));
    assert_eq!(calls(&rds), (2, 0));
}

#[tokio::test]
async fn an_instance_without_tags_is_kept_once_a_question_was_about_it() {
    let (rds, client) = start(150).await;
    create(&rds, "observed", false);
    client.recent("observed", AGE).await.expect("an answer");
    for answer in ask_all(&client, 150).await {
        assert!(shown(&answer.expect("an answer")).is_some());
    }
    calls(&rds);
    let observed = client.recent("observed", AGE).await.expect("an answer");
    assert!(matches!(observed, Description::Swept(_)));
    assert_eq!(calls(&rds), (0, 0));
    client.descriptions.forget("observed");
    assert!(!client.descriptions.is_asked("observed"));
}

/// Lets the second page of the next sweep fail with an error, after the single calls before it.
async fn with_second_page(
    rds: &Simulator,
    client: &RdsClient,
    error: Disturbance,
) -> Vec<Result<Description, CallError>> {
    // The questions that precede the sweep are asked first, so that its pages are the next calls.
    for number in 0..99 {
        client.recent(&id(number), AGE).await.expect("an answer");
    }
    calls(rds);
    rds.inject("DescribeDBInstances", Disturbance::Delay(Duration::ZERO), 1);
    rds.inject("DescribeDBInstances", error, 1);
    ask_all(client, 250).await
}

#[tokio::test]
async fn a_throttled_page_fails_its_questions_and_the_next_question_continues_there() {
    let (rds, client) = start(250).await;
    let answers = with_second_page(&rds, &client, Disturbance::throttling()).await;
    let (answered, failed): (Vec<_>, Vec<_>) = answers.iter().partition(|it| it.is_ok());
    assert_eq!((answered.len(), failed.len()), (100, 150));
    let is_throttled = |it: &Result<_, CallError>| it.as_ref().is_err_and(|it| it.is("Throttling"));
    assert!(failed.into_iter().all(is_throttled));
    assert_eq!(calls(&rds), (0, 2));
    for answer in ask_all(&client, 250).await {
        assert!(matches!(answer, Ok(Description::Swept(_))));
    }
    assert_eq!(calls(&rds), (0, 2), "the second page and the third");
}

#[tokio::test]
async fn a_sweep_whose_marker_has_expired_begins_anew() {
    let (rds, client) = start(250).await;
    let expired = Disturbance::Error("InvalidParameterValue".to_owned(), "Marker".to_owned());
    for answer in with_second_page(&rds, &client, expired).await {
        assert!(matches!(answer, Ok(Description::Swept(_))));
    }
    assert_eq!(calls(&rds), (0, 5));
}

#[tokio::test]
async fn every_page_takes_a_token() {
    let (rds, _) = start(1).await;
    let one = NonZeroU32::MIN;
    let client = client(&rds, RateLimits::new(one, one)).await;
    client.page(None).await.expect("a page");
    let second = tokio::time::timeout(Duration::from_millis(100), client.page(None));
    assert!(second.await.is_err(), "no token is left");
    assert_eq!(calls(&rds), (0, 1));
}
