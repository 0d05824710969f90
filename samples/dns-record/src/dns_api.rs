//! Client of the HTTP API of a DNS provider.

use std::time::Duration;

use http::header::{CONTENT_TYPE, IF_MATCH};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use lockstep_controller::ReconcileError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout;

/// Content of a record, which the operator manages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RecordContent {
    /// Fully qualified name.
    pub name: String,
    /// Type, such as `A`.
    pub r#type: String,
    /// Time to live in seconds.
    pub ttl: u32,
    /// Values.
    pub values: Vec<String>,
    /// UID of the object that the record belongs to; empty if it belongs to none.
    pub owner: String,
    /// Label of all records of this operator.
    pub label: String,
}

/// Record as the provider stores it.
#[derive(Clone, Debug, Deserialize)]
pub struct StoredRecord {
    /// Id, which the provider chooses. Two creations give two records.
    pub id: String,
    /// Version, which every change increments.
    pub version: u64,
    /// Content.
    #[serde(flatten)]
    pub content: RecordContent,
}

/// Client of the HTTP API.
pub struct DnsApi {
    url: String,
    http: Client<HttpConnector, Full<Bytes>>,
    timeout: Duration,
}

/// Reason why a call has not succeeded.
#[derive(Debug, PartialEq, Eq)]
pub enum DnsError {
    /// The record does not exist.
    NotFound,
    /// Anything else: there was no answer, or the provider has refused the call. It may have been executed.
    Failed(String),
}

impl From<DnsError> for ReconcileError {
    fn from(error: DnsError) -> Self {
        let message = match error {
            DnsError::NotFound => "the DNS record was deleted during the reconciliation".to_owned(),
            DnsError::Failed(why) => format!("the DNS API does not answer as expected: {why}"),
        };
        Self::transient("DnsApiFailed", message)
    }
}

impl DnsApi {
    /// Returns a client of the API at a URL. A call without an answer fails after `timeout`.
    pub fn new(url: &str, timeout: Duration) -> Self {
        Self {
            url: url.to_owned(),
            http: Client::builder(TokioExecutor::new()).build_http(),
            timeout,
        }
    }

    /// Returns the URL of the API.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the longest time that a call takes.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the records with a name.
    pub async fn with_name(&self, name: &str) -> Result<Vec<StoredRecord>, DnsError> {
        let path = format!("/records?name={name}");
        read(&self.call(Method::GET, &path, None, None).await?)
    }

    /// Returns the records that belong to an object.
    pub async fn of_owner(&self, uid: &str) -> Result<Vec<StoredRecord>, DnsError> {
        let path = format!("/records?owner={uid}");
        read(&self.call(Method::GET, &path, None, None).await?)
    }

    /// Creates a record.
    pub async fn create(&self, content: &RecordContent) -> Result<StoredRecord, DnsError> {
        let body = serde_json::to_value(content).ok();
        read(&self.call(Method::POST, "/records", body, None).await?)
    }

    /// Replaces the content of a record, unless another client has changed it since it was read.
    pub async fn update(
        &self,
        record: &StoredRecord,
        content: &RecordContent,
    ) -> Result<StoredRecord, DnsError> {
        let (path, body) = (
            format!("/records/{}", record.id),
            serde_json::to_value(content),
        );
        let version = Some(record.version);
        read(&self.call(Method::PUT, &path, body.ok(), version).await?)
    }

    /// Deletes a record. One that does not exist is deleted already.
    pub async fn delete(&self, id: &str) -> Result<(), DnsError> {
        let path = format!("/records/{id}");
        match self.call(Method::DELETE, &path, None, None).await {
            Ok(_) | Err(DnsError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sends a call and returns the body of the answer.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        version: Option<u64>,
    ) -> Result<Bytes, DnsError> {
        let failed = |error: &dyn ToString| DnsError::Failed(error.to_string());
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        if let Some(version) = version {
            request = request.header(IF_MATCH, version);
        }
        let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body));
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
                status if status.is_success() => Ok(body),
                StatusCode::NOT_FOUND => Err(DnsError::NotFound),
                status => Err(failed(&status)),
            }
        };
        timeout(self.timeout, answer)
            .await
            .unwrap_or_else(|late| Err(failed(&late)))
    }
}

fn read<'a, T: Deserialize<'a>>(body: &'a Bytes) -> Result<T, DnsError> {
    serde_json::from_slice(body).map_err(|error| DnsError::Failed(error.to_string()))
}
