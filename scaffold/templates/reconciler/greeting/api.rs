//! Client of the HTTP API.

use std::fmt::Display;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use lockstep_sdk::anyhow::bail;
use lockstep_sdk::controller::ReconcileError;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

/// Longest time that a call takes.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

/// Greeting as the API stores it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StoredGreeting {
    /// Text.
    pub text: String,
    /// Language of the text.
    pub language: String,
}

/// Client of the API.
#[derive(Clone)]
pub struct GreetingApi {
    url: String,
    http: Client<HttpConnector, Full<Bytes>>,
}

impl GreetingApi {
    /// Returns a client of the API at a URL.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            http: Client::builder(TokioExecutor::new()).build_http(),
        }
    }

    /// Returns what is stored with an id. A call that fails says nothing about it: an object that is ready stays ready.
    pub async fn get(&self, id: &str) -> Result<Option<StoredGreeting>, ReconcileError> {
        let body = self.call(Method::GET, id, Bytes::new()).await;
        let body = body.map_err(ReconcileError::inconclusive)?;
        let stored = body.map(|body| serde_json::from_slice(&body));
        stored.transpose().map_err(|error| failed(error).inconclusive())
    }

    /// Creates or replaces what is stored with an id. The client chooses the id, so that a repeated call creates nothing
    /// else.
    pub async fn put(&self, id: &str, desired: &StoredGreeting) -> Result<(), ReconcileError> {
        let body = serde_json::to_vec(desired).map_err(failed)?;
        let stored = self.call(Method::PUT, id, body.into()).await?;
        stored.map(drop).ok_or_else(|| failed("status 404"))
    }

    /// Deletes what is stored with an id. What does not exist is deleted already.
    pub async fn delete(&self, id: &str) -> Result<(), ReconcileError> {
        self.call(Method::DELETE, id, Bytes::new()).await.map(drop)
    }

    /// Returns the body of the response, or none if the API has found nothing.
    async fn call(
        &self,
        method: Method,
        id: &str,
        body: Bytes,
    ) -> Result<Option<Bytes>, ReconcileError> {
        let call = async {
            let request = Request::builder()
                .method(method)
                .uri(format!("{}/greetings/{id}", self.url))
                .header("content-type", "application/json")
                .body(Full::new(body))?;
            let response = self.http.request(request).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            match status {
                StatusCode::NOT_FOUND => Ok(None),
                _ if status.is_success() => Ok(Some(body)),
                _ => bail!("status {status}"),
            }
        };
        timeout(TIMEOUT, call).await.map_err(failed)?.map_err(failed)
    }
}

fn failed(error: impl Display) -> ReconcileError {
    let message = format!("the API of greetings does not respond as expected: {error}");
    ReconcileError::transient("ApiFailed", message)
}
