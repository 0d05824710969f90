//! Client of the controller in the Pod of the webhook.

use std::path::PathBuf;

use async_trait::async_trait;
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use lockstep_shared_validation::Policy;
use lockstep_webhook::{AdmissionCheckRequest, AdmissionCheckResult, RemoteChecks};
use tokio::net::UnixStream;

use crate::admission_checks::{CHECK, CheckedKind, MAX_MESSAGE_BYTES};

/// Checks that are asked for over a Unix socket.
pub(crate) struct SocketClient {
    path: PathBuf,
    kinds: Vec<CheckedKind>,
}

impl SocketClient {
    pub(crate) fn new(path: PathBuf, kinds: Vec<CheckedKind>) -> Self {
        Self { path, kinds }
    }

    fn kind(&self, group: &str, kind: &str) -> Option<&CheckedKind> {
        let mut kinds = self.kinds.iter();
        kinds.find(|it| (it.group, it.kind) == (group, kind))
    }

    /// Sends a message, and returns the status and the body of the response.
    async fn send(&self, message: Vec<u8>) -> anyhow::Result<(StatusCode, Bytes)> {
        let stream = UnixStream::connect(&self.path).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let request = Request::post(CHECK)
            .header(HOST, "localhost")
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(message)))?;
        let response = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_MESSAGE_BYTES);
            let body = body.collect().await.map_err(anyhow::Error::from_boxed)?;
            anyhow::Ok((status, body.to_bytes()))
        };
        // If the caller gives up, the connection is closed, and so the check ends.
        tokio::select! {
            response = response => response,
            ended = connection => Err(match ended {
                Ok(()) => anyhow::anyhow!("the connection was closed"),
                Err(error) => error.into(),
            }),
        }
    }
}

#[async_trait]
impl RemoteChecks for SocketClient {
    fn are_wanted(&self, group: &str, kind: &str, policy: &Policy) -> bool {
        let found = self.kind(group, kind);
        found.is_some_and(|found| (found.is_wanted)(kind, policy))
    }

    fn annotations(&self, group: &str, kind: &str) -> &[&str] {
        self.kind(group, kind)
            .map_or(&[], |found| found.annotations)
    }

    async fn check(&self, request: &AdmissionCheckRequest) -> Result<AdmissionCheckResult, String> {
        let not_asked = |error: anyhow::Error| {
            format!("the controller in the Pod of the webhook cannot be asked: {error:#}")
        };
        let message = serde_json::to_vec(request).map_err(|error| not_asked(error.into()))?;
        let (status, body) = self.send(message).await.map_err(not_asked)?;
        if status == StatusCode::OK {
            serde_json::from_slice(&body).map_err(|error| not_asked(error.into()))
        } else {
            Err(String::from_utf8_lossy(&body).into_owned())
        }
    }
}
