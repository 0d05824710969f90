//! Clients of a simulator.

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_rds::Client;
use aws_sdk_rds::config::Credentials;
use aws_sdk_rds::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_rds::operation::create_db_instance::builders::CreateDBInstanceFluentBuilder;
use aws_sdk_rds::types::DbInstance;
use aws_smithy_http_client::Builder;
use rds_simulator::Simulator;

/// Returns the configuration of a client in a region, with an access key.
pub async fn config(endpoint: &str, region: &str, access_key: &str) -> SdkConfig {
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(Builder::new().build_http())
        .region(Region::new(region.to_owned()))
        .credentials_provider(Credentials::new(access_key, "testing", None, None, "tests"))
        .endpoint_url(endpoint)
        .load()
        .await
}

/// Starts a simulator whose time moves only when a test advances it, with a client that does not retry.
pub async fn start() -> (Simulator, Client) {
    let simulator = Simulator::start().await.expect("a simulator");
    simulator.set_speed(0.0);
    let client = client(&simulator).await;
    (simulator, client)
}

/// Returns a client of the default account and region that does not retry.
pub async fn client(simulator: &Simulator) -> Client {
    let endpoint = simulator.endpoint();
    let config = config(&endpoint, Simulator::REGION, Simulator::ACCESS_KEY).await;
    let config = config.into_builder().retry_config(RetryConfig::disabled());
    Client::new(&config.build())
}

/// Returns a valid request for a new instance.
pub fn creation(client: &Client, id: &str) -> CreateDBInstanceFluentBuilder {
    client
        .create_db_instance()
        .db_instance_identifier(id)
        .engine("postgres")
        .engine_version("16.4")
        .db_instance_class("db.t4g.micro")
        .allocated_storage(100)
        .storage_type("gp3")
        .master_username("app")
        .master_user_password("correct-horse")
}

/// Creates an instance, and advances the time until it is available.
pub async fn available(simulator: &Simulator, client: &Client, id: &str) -> DbInstance {
    creation(client, id).send().await.expect("a new instance");
    settle(simulator);
    describe(client, id).await.expect("the instance")
}

/// Advances the time until no state is in progress.
pub fn settle(simulator: &Simulator) {
    simulator.advance(Duration::from_secs(1));
}

/// Returns an instance, or the code of the error.
pub async fn describe(client: &Client, id: &str) -> Result<DbInstance, String> {
    let call = client.describe_db_instances().db_instance_identifier(id);
    let page = call.send().await.map_err(|error| code(&error))?;
    Ok(page.db_instances().first().expect("an instance").clone())
}

/// Returns the status of an instance, or the code of the error.
pub async fn status(client: &Client, id: &str) -> String {
    let instance = describe(client, id).await;
    instance.map_or_else(
        |code| code,
        |it| it.db_instance_status().unwrap_or_default().to_owned(),
    )
}

/// Returns the code of an error.
pub fn code<E: ProvideErrorMetadata>(error: &SdkError<E>) -> String {
    let code = error.code();
    code.unwrap_or("no answer").to_owned()
}

/// Returns the code of the error of a call, or an empty text if it succeeded.
pub fn outcome<T, E: ProvideErrorMetadata>(result: Result<T, SdkError<E>>) -> String {
    result.map_or_else(|error| code(&error), |_| String::new())
}
