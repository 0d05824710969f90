//! Client of the HTTP API of a DNS provider.

use std::time::Duration;

use http::header::{CONTENT_TYPE, IF_MATCH};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

/// Longest time that a call takes.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Content of a record, which the operator manages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct RecordContent {
    pub(crate) name: String,
    pub(crate) r#type: String,
    pub(crate) ttl: u32,
    pub(crate) values: Vec<String>,
    /// UID of the object that the record belongs to; empty if it belongs to none.
    pub(crate) owner: String,
    /// Label of all records of this operator.
    pub(crate) label: String,
}

/// Record as the provider stores it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct StoredRecord {
    /// Id, which the provider chooses. Two creations give two records.
    pub(crate) id: String,
    /// Version, which every change increments.
    pub(crate) version: u64,
    #[serde(flatten)]
    pub(crate) content: RecordContent,
}

/// Client of the HTTP API.
pub(crate) struct DnsApi {
    url: String,
    http: Client<HttpConnector, Full<Bytes>>,
}

/// Reason why a call has not succeeded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DnsError {
    #[error(transparent)]
    Request(#[from] http::Error),
    #[error(transparent)]
    Connection(#[from] hyper_util::client::legacy::Error),
    #[error(transparent)]
    Body(#[from] hyper::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("no answer: {0}")]
    Timeout(#[from] tokio::time::error::Elapsed),
    #[error("{0}")]
    Status(StatusCode),
}

impl DnsApi {
    pub(crate) fn new(url: String) -> Self {
        let http = Client::builder(TokioExecutor::new()).build_http();
        Self { url, http }
    }

    /// Returns the records with a name.
    pub(crate) async fn with_name(&self, name: &str) -> Result<Vec<StoredRecord>, DnsError> {
        let path = format!("/records?name={name}");
        read(&self.call(Method::GET, &path, None, None).await?)
    }

    /// Returns the records that belong to an object.
    pub(crate) async fn of_owner(&self, uid: &str) -> Result<Vec<StoredRecord>, DnsError> {
        let path = format!("/records?owner={uid}");
        read(&self.call(Method::GET, &path, None, None).await?)
    }

    /// Creates a record.
    pub(crate) async fn create(&self, content: &RecordContent) -> Result<StoredRecord, DnsError> {
        let answer = self.call(Method::POST, "/records", Some(content), None);
        read(&answer.await?)
    }

    /// Replaces the content of a record, unless another client has changed it since it was read.
    pub(crate) async fn update(
        &self,
        record: &StoredRecord,
        content: &RecordContent,
    ) -> Result<StoredRecord, DnsError> {
        let path = format!("/records/{}", record.id);
        let answer = self.call(Method::PUT, &path, Some(content), Some(record.version));
        read(&answer.await?)
    }

    /// Deletes a record. One that does not exist is deleted already.
    pub(crate) async fn delete(&self, id: &str) -> Result<(), DnsError> {
        let path = format!("/records/{id}");
        match self.call(Method::DELETE, &path, None, None).await {
            Ok(_) | Err(DnsError::Status(StatusCode::NOT_FOUND)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        content: Option<&RecordContent>,
        version: Option<u64>,
    ) -> Result<Bytes, DnsError> {
        let body = content.map(serde_json::to_vec).transpose()?;
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header(CONTENT_TYPE, "application/json");
        if let Some(version) = version {
            request = request.header(IF_MATCH, version);
        }
        let request = request.body(Full::new(body.unwrap_or_default().into()))?;
        let answer = async {
            let response = self.http.request(request).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            if status.is_success() {
                Ok(body)
            } else {
                Err(DnsError::Status(status))
            }
        };
        timeout(TIMEOUT, answer).await?
    }
}

fn read<'a, T: Deserialize<'a>>(body: &'a Bytes) -> Result<T, DnsError> {
    Ok(serde_json::from_slice(body)?)
}
