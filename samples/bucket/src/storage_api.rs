//! Client of the HTTP API of an object storage.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use lockstep_controller::ReconcileError;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

/// Bucket as the API returns it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StoredBucket {
    /// UID of the object that the bucket belongs to.
    pub owner: String,
    /// If true, earlier versions of its content are kept.
    pub versioning: bool,
    /// Name of the bucket that its content is replicated to.
    pub replication: Option<String>,
}

/// Client of the HTTP API. Each property of a bucket has a call of its own.
pub struct StorageApi {
    url: String,
    http: Client<HttpConnector, Full<Bytes>>,
    timeout: Duration,
}

fn failed(why: &dyn ToString) -> ReconcileError {
    let message = format!(
        "the storage API does not answer as expected: {}",
        why.to_string()
    );
    ReconcileError::transient("StorageApiFailed", message)
}

impl StorageApi {
    /// Returns a client of the API at a URL. A call without an answer fails after `timeout`.
    pub fn new(url: &str, timeout: Duration) -> Self {
        Self {
            url: url.to_owned(),
            http: Client::builder(TokioExecutor::new()).build_http(),
            timeout,
        }
    }

    /// Returns the longest time that a call takes.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns a bucket, if it exists.
    pub async fn get(&self, name: &str) -> Result<Option<StoredBucket>, ReconcileError> {
        let body = self
            .call(Method::GET, &format!("/buckets/{name}"), &Value::Null)
            .await?;
        body.map(|body| serde_json::from_slice(&body).map_err(|error| failed(&error)))
            .transpose()
    }

    /// Creates an empty bucket. One that exists and has the same owner is left as it is.
    pub async fn create(&self, name: &str, owner: &str) -> Result<(), ReconcileError> {
        let body = json!({"owner": owner});
        self.call(Method::PUT, &format!("/buckets/{name}"), &body)
            .await
            .map(drop)
    }

    /// Sets one property of a bucket: `versioning` or `replication`.
    pub async fn set(
        &self,
        name: &str,
        property: &str,
        value: &Value,
    ) -> Result<(), ReconcileError> {
        let path = format!("/buckets/{name}/{property}");
        let found = self.call(Method::PUT, &path, value).await?;
        found
            .map(drop)
            .ok_or_else(|| failed(&"the bucket does not exist any more"))
    }

    /// Deletes a bucket, unless another one replicates to it.
    pub async fn delete(&self, name: &str) -> Result<(), ReconcileError> {
        self.call(Method::DELETE, &format!("/buckets/{name}"), &Value::Null)
            .await
            .map(drop)
    }

    /// Sends a call. Returns none if the bucket does not exist.
    async fn call(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Option<Bytes>, ReconcileError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        let request = request.header(CONTENT_TYPE, "application/json");
        let request = request.body(Full::new(Bytes::from(body.to_string())));
        let request = request.map_err(|error| failed(&error))?;
        let answer = async {
            let response = self
                .http
                .request(request)
                .await
                .map_err(|error| failed(&error))?;
            let (head, body) = response.into_parts();
            let body = body
                .collect()
                .await
                .map_err(|error| failed(&error))?
                .to_bytes();
            match head.status {
                status if status.is_success() => Ok(Some(body)),
                StatusCode::NOT_FOUND => Ok(None),
                status => Err(failed(&status)),
            }
        };
        timeout(self.timeout, answer)
            .await
            .unwrap_or_else(|late| Err(failed(&late)))
    }
}
