mod sent_parameters;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_config::retry::RetryConfig;
use aws_config::{BehaviorVersion, Region};
use aws_credential_types::Credentials;
use aws_credential_types::credential_fn::provide_credentials_fn;
use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use lockstep_cloud_database_api::PointInTime;
use lockstep_shared_validation::ValidatedResource;

use super::*;

/// RDS with two pages of instances, each with one that was created for an object of this name.
#[derive(Clone, Debug, Default)]
struct TwoPages(Arc<AtomicUsize>);

impl HttpConnector for TwoPages {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.0.fetch_add(1, Ordering::SeqCst);
        let body = request.body().bytes().unwrap_or_default();
        let is_second = String::from_utf8_lossy(body).contains("Marker=more");
        let (id, marker) = if is_second {
            ("cdb-2", "")
        } else {
            ("cdb-1", "<Marker>more</Marker>")
        };
        let response = format!(
            "<DescribeDBInstancesResponse><DescribeDBInstancesResult>{marker}<DBInstances><DBInstance>\
             <DBInstanceIdentifier>{id}</DBInstanceIdentifier><TagList><Tag>\
             <Key>database.example.com/object</Key><Value>shop/orders</Value></Tag></TagList>\
             </DBInstance></DBInstances></DescribeDBInstancesResult></DescribeDBInstancesResponse>"
        );
        let response = http::Response::new(response.into());
        HttpConnectorFuture::ready(Ok(HttpResponse::try_from(response).expect("an answer")))
    }
}

#[tokio::test]
async fn instances_of_objects_are_searched_on_every_page() {
    let pages = TwoPages::default();
    let connector = pages.clone();
    let config = aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new("eu-central-1"))
        .credentials_provider(Credentials::new("AKIA", "secret", None, None, "tests"))
        .http_client(http_client_fn(move |_, _| {
            SharedHttpConnector::new(connector.clone())
        }))
        .load()
        .await;
    let instances = instances_of(config);
    let found = instances.instances_of_objects().await.expect("two pages");
    let found: Vec<_> = found.iter().map(|left| left.instance.as_str()).collect();
    assert_eq!(found, ["cdb-1", "cdb-2"]);
    assert_eq!(pages.0.load(Ordering::SeqCst), 2);
}

/// Answer to an attempt of a call: a status with a code, or none, after which the connection ends.
type Answer = Option<(u16, &'static str)>;

/// RDS with these answers to the attempts of a call.
#[derive(Clone, Debug)]
struct Answers(Arc<std::sync::Mutex<Vec<Answer>>>);

impl HttpConnector for Answers {
    fn call(&self, _: HttpRequest) -> HttpConnectorFuture {
        let Some((status, code)) = self.0.lock().expect("a lock").remove(0) else {
            let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
            return HttpConnectorFuture::ready(Err(ConnectorError::io(error.into())));
        };
        let body = format!(
            "<ErrorResponse><Error><Code>{code}</Code><Message>by a test</Message></Error></ErrorResponse>"
        );
        let response = http::Response::builder().status(status).body(body.into());
        let response = HttpResponse::try_from(response.expect("an answer"));
        HttpConnectorFuture::ready(Ok(response.expect("an answer")))
    }
}

impl Answers {
    fn new(answers: Vec<Answer>) -> Self {
        Self(Arc::new(std::sync::Mutex::new(answers)))
    }

    /// Returns a client that repeats calls and gets these answers.
    async fn client(&self) -> RdsClient {
        let connector = self.clone();
        let retries = RetryConfig::standard().with_initial_backoff(Duration::from_millis(1));
        let config = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::new("eu-central-1"))
            .credentials_provider(Credentials::new("AKIA", "secret", None, None, "tests"))
            .retry_config(retries)
            .http_client(http_client_fn(move |_, _| {
                SharedHttpConnector::new(connector.clone())
            }))
            .load()
            .await;
        instances_of(config)
    }

    fn is_empty(&self) -> bool {
        self.0.lock().expect("a lock").is_empty()
    }
}

/// Calls that change or create an instance.
const CALLS: [&str; 5] = [
    "modify",
    "create",
    "restore a snapshot",
    "restore a point in time",
    "replicate",
];

/// Makes a call that fails.
async fn failed_call(client: &RdsClient, call: &str) -> CallError {
    let mut object = CloudDatabase::example();
    object["metadata"] = serde_json::json!({"name": "orders", "namespace": "shop", "uid": "1"});
    let object: CloudDatabase = serde_json::from_value(object).expect("a database");
    let latest = serde_json::json!({"sourceInstance": "source", "latest": true});
    let latest: PointInTime = serde_json::from_value(latest).expect("a source");
    let user = MasterUser {
        name: "app".to_owned(),
        password: MasterPassword::Managed { kms_key: None },
    };
    let result = match call {
        "modify" => {
            let change = Modification::default();
            let modified = client.modify("cdb-1", &change, ApplyChanges::Immediately);
            Box::pin(modified).await
        }
        "create" => Box::pin(client.create("cdb-1", &object, &user)).await,
        "restore a snapshot" => {
            Box::pin(client.restore_snapshot("cdb-1", &object, "snapshot")).await
        }
        "restore a point in time" => {
            Box::pin(client.restore_point_in_time("cdb-1", &object, &latest)).await
        }
        _ => Box::pin(client.create_replica("cdb-1", &object, "source")).await,
    };
    result.expect_err("an error")
}

#[tokio::test]
async fn a_call_may_be_done_unless_each_attempt_says_that_it_is_not() {
    let throttled = Some((400, "Throttling"));
    let busy = Some((400, "InvalidDBInstanceState"));
    let rejected = Some((400, "InvalidParameterValue"));
    let beyond_quota = Some((400, "StorageQuotaExceeded"));
    let failed = Some((500, "InternalFailure"));
    for (answers, may_be_done) in [
        (vec![rejected], false),
        (vec![beyond_quota], false),
        (vec![throttled, throttled, throttled], false),
        (vec![throttled, rejected], false),
        (vec![failed, failed, failed], true),
        // The refusal can be the effect of the attempt before it.
        (vec![failed, beyond_quota], true),
        (vec![None, beyond_quota], true),
        (vec![None, throttled, rejected], true),
        (vec![None, None, None], true),
    ] {
        for call in CALLS {
            let left = Answers::new(answers.clone());
            let error = failed_call(&left.client().await, call).await;
            let about = format!("{call}, {answers:?}: {}", error.text());
            assert_eq!(error.may_be_done(), may_be_done, "{about}");
            assert!(left.is_empty(), "{about}");
        }
    }
    for (answers, may_be_done) in [
        (vec![busy], false),
        (vec![failed, busy], true),
        (vec![None, busy], true),
    ] {
        let left = Answers::new(answers);
        let error = failed_call(&left.client().await, "modify").await;
        assert_eq!(error.may_be_done(), may_be_done, "{}", error.text());
    }
}

#[tokio::test]
async fn a_call_without_credentials_is_not_done() {
    let config = aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new("eu-central-1"))
        .credentials_provider(provide_credentials_fn(|| async {
            Err::<Credentials, _>(CredentialsError::not_loaded("by a test"))
        }))
        .load()
        .await;
    let client = instances_of(config);
    for call in CALLS {
        assert!(!failed_call(&client, call).await.may_be_done(), "{call}");
    }
}

/// Returns a client with a configuration.
fn instances_of(config: SdkConfig) -> RdsClient {
    RdsClient::of(
        config,
        None,
        Leadership::always(),
        RateLimits::unlimited(),
        None,
        AwsRequests::default(),
    )
}

#[tokio::test]
async fn rds_is_not_called_if_the_region_is_unknown() {
    let config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .build();
    let error = instances_of(config)
        .location()
        .await
        .expect_err("no region");
    let is_so =
        matches!(&error, ReconcileError::Permanent { reason, .. } if *reason == "RegionUnknown");
    assert!(is_so, "{error:?}");
}

#[tokio::test]
async fn a_write_that_could_be_executed_after_the_lease_has_expired_is_not_sent() {
    // Without a region, a call that is sent fails with another error.
    let config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .build();
    let instances = |leadership| {
        RdsClient::of(
            config.clone(),
            None,
            leadership,
            RateLimits::unlimited(),
            None,
            AwsRequests::default(),
        )
    };
    let message = |response: Result<(), CallError>| response.expect_err("no server exists").message;
    let late = instances(Leadership::pending());
    let change = Modification::default();
    for message in [
        message(late.delete("cdb-1", None, None).await),
        message(
            late.modify("cdb-1", &change, ApplyChanges::Immediately)
                .await
                .map(drop),
        ),
        message(late.tag("arn", &BTreeMap::new()).await),
    ] {
        assert_eq!(
            message,
            "not sent: the lease may expire before the response"
        );
    }
    let leading = instances(Leadership::always());
    let message = message(leading.delete("cdb-1", None, None).await);
    assert!(!message.contains("not sent"), "{message}");
    let error = ReconcileError::from(CallError::without_response(&message));
    assert!(matches!(error, ReconcileError::Transient { .. }), "{error}");
}
