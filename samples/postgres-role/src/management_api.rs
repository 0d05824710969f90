//! Client of the HTTP API that manages a Postgres server.

use std::time::Duration;

use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use lockstep_controller::ReconcileError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;

/// Role, without its password, which the API never returns.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// Name.
    pub name: String,
    /// UID of the object that the role belongs to.
    pub owner: String,
    /// If true, the role can log in.
    pub login: bool,
    /// Maximum number of connections.
    pub connection_limit: u32,
    /// UID of the Secret with the password; empty if another client has set it.
    #[serde(default)]
    pub password_id: String,
}

/// Role as the API returns it.
#[derive(Clone, Debug, Deserialize)]
pub struct StoredRole {
    /// Version, which every change increments.
    pub version: u64,
    /// The role.
    #[serde(flatten)]
    pub role: Role,
}

/// Client of the HTTP API.
pub struct ManagementApi {
    url: String,
    http: Client<HttpConnector, Full<Bytes>>,
    timeout: Duration,
}

/// Returns the error of a call. Its message contains nothing of the request.
fn failed(why: &dyn ToString) -> ReconcileError {
    let message = format!(
        "the management API does not answer as expected: {}",
        why.to_string()
    );
    ReconcileError::transient("ManagementApiFailed", message)
}

impl ManagementApi {
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

    /// Returns a role, if it exists.
    pub async fn get(&self, name: &str) -> Result<Option<StoredRole>, ReconcileError> {
        let request = self.request(Method::GET, name);
        let body = self.send(request, None).await?;
        body.map(|body| serde_json::from_slice(&body).map_err(|error| failed(&error)))
            .transpose()
    }

    /// Creates a role, or replaces the version that was read. Fails if another client was faster.
    pub async fn put(
        &self,
        role: &Role,
        password: &str,
        before: Option<&StoredRole>,
    ) -> Result<(), ReconcileError> {
        let request = self.request(Method::PUT, &role.name);
        let request = match before {
            Some(before) => request.header(header::IF_MATCH, before.version),
            None => request.header(header::IF_NONE_MATCH, HeaderValue::from_static("*")),
        };
        let mut body = json!(role);
        body["password"] = password.into();
        self.send(request, Some(body)).await.map(drop)
    }

    /// Deletes the version of a role that was read.
    pub async fn delete(&self, role: &StoredRole) -> Result<(), ReconcileError> {
        let request = self.request(Method::DELETE, &role.role.name);
        self.send(request.header(header::IF_MATCH, role.version), None)
            .await
            .map(drop)
    }

    fn request(&self, method: Method, name: &str) -> http::request::Builder {
        Request::builder()
            .method(method)
            .uri(format!("{}/roles/{name}", self.url))
    }

    /// Sends a call. Returns none if the role does not exist.
    async fn send(
        &self,
        request: http::request::Builder,
        body: Option<Value>,
    ) -> Result<Option<Bytes>, ReconcileError> {
        let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
        let request = request
            .header(header::CONTENT_TYPE, "application/json")
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
