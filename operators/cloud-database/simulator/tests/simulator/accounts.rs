//! Accounts and regions have their own instances.

use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_rds::Client;
use rds_simulator::Simulator;

use crate::client::{code, config, creation};

#[tokio::test]
async fn each_account_and_region_has_its_own_instances() {
    let simulator = Simulator::start().await.expect("a simulator");
    simulator.add_access_key("other", "210987654321");
    let endpoint = simulator.endpoint();
    for (key, account) in [("testing", "123456789012"), ("other", "210987654321")] {
        for region in ["eu-central-1", "us-east-1"] {
            let config = config(&endpoint, region, key).await;
            let identity = aws_sdk_sts::Client::new(&config).get_caller_identity();
            let identity = identity.send().await.expect("an identity");
            assert_eq!(identity.account(), Some(account));
            let client = Client::new(&config);
            let instance = creation(&client, "orders").send().await;
            let instance = instance.expect("an instance of this account and region");
            let arn = format!("arn:aws:rds:{region}:{account}:db:orders");
            let instance = instance.db_instance().expect("an instance");
            assert_eq!(instance.db_instance_arn(), Some(arn.as_str()));
            let found = client.describe_db_instances().send().await;
            assert_eq!(found.expect("a list").db_instances().len(), 1);
            assert_eq!(simulator.at(account, region).instance_ids(), ["orders"]);
        }
    }
    let places: Vec<_> = simulator
        .calls("CreateDBInstance")
        .into_iter()
        .map(|it| (it.access_key, it.region))
        .collect();
    assert_eq!(places.len(), 4);
    assert_eq!(places[1], ("testing".to_owned(), "us-east-1".to_owned()));
}

#[tokio::test]
async fn an_unknown_access_key_is_rejected() {
    let simulator = Simulator::start().await.expect("a simulator");
    let config = config(&simulator.endpoint(), "eu-central-1", "unknown").await;
    let client = Client::new(&config);
    let error = client.describe_db_instances().send().await;
    let error = error.expect_err("a rejection");
    assert_eq!(code(&error), "InvalidClientTokenId");
    let status = error.raw_response().map(|it| it.status().as_u16());
    assert_eq!(status, Some(403));
    simulator.add_access_key("unknown", "210987654321");
    let found = client.describe_db_instances().send().await;
    assert_eq!(found.expect("a list").db_instances(), []);
    simulator.remove_access_key("unknown");
    let error = client.describe_db_instances().send().await;
    assert!(error.is_err(), "{error:?}");
}

#[tokio::test]
async fn calls_of_the_console_are_distinguished_from_those_of_the_tested_program() {
    let simulator = Simulator::start().await.expect("a simulator");
    let endpoint = simulator.endpoint();
    let key = Simulator::CONSOLE_ACCESS_KEY;
    let console = Client::new(&config(&endpoint, Simulator::REGION, key).await);
    creation(&console, "orders")
        .send()
        .await
        .expect("an instance");
    assert_eq!(simulator.instance_ids(), ["orders"]);
    assert_eq!(simulator.writes(), []);
    assert!(simulator.calls("CreateDBInstance").is_empty());
    assert_eq!(simulator.journal()[0].access_key, key);
    simulator.clear_journal();
    assert!(simulator.journal().is_empty());
}

#[tokio::test]
async fn a_role_of_another_account_is_assumed_with_its_external_id() {
    let simulator = Simulator::start().await.expect("a simulator");
    let config = config(&simulator.endpoint(), "eu-central-1", "testing").await;
    let role = "arn:aws:iam::210987654321:role/databases";
    let assume = async |external_id: &str| {
        let provider = aws_config::sts::AssumeRoleProvider::builder(role)
            .configure(&config)
            .external_id(external_id)
            .session_name("tests");
        let provider = SharedCredentialsProvider::new(provider.build().await);
        let config = config.clone().into_builder();
        let client = Client::new(&config.credentials_provider(provider).build());
        creation(&client, "orders").send().await.is_ok()
    };
    assert!(!assume("u1").await, "there is no role");
    simulator.add_role(role, "u1", None);
    assert!(!assume("u2").await, "another external ID");
    assert!(assume("u1").await);
    assert_eq!(simulator.instance_ids(), Vec::<String>::new());
    let other = simulator.at("210987654321", "eu-central-1");
    assert_eq!(other.instance_ids(), ["orders"]);
}
