//! Client of the webhook that connects as the API server does: HTTPS, the name of the Service, and the CA of the
//! `caBundle`.

use axum::body::Bytes;
use futures::{StreamExt, stream};
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::{BodyExt, Collected, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource};
use kube::client::Body;
use kube::{Client, Config};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::env::{TestEnv, resource_of};

/// DNS name in the serving certificate.
const SERVER_NAME: &str = "lockstep-webhook.lockstep-system.svc";

pub struct WebhookClient {
    client: Client,
    port: u16,
    authority: CertificateDer<'static>,
}

impl WebhookClient {
    pub async fn of(env: &TestEnv) -> Self {
        Self::new(env, env.installation.webhook_port(), true).await
    }

    /// Client of another port with the same serving certificate. It does not repeat requests.
    pub async fn at_port(env: &TestEnv, port: u16) -> Self {
        Self::new(env, port, false).await
    }

    async fn new(env: &TestEnv, port: u16, retries: bool) -> Self {
        let secrets: Api<Secret> = Api::namespaced(env.cluster.client(), "lockstep-system");
        let secret = secrets
            .get("lockstep-webhook-tls")
            .await
            .expect("the Secret of the webhook");
        let authority = secret.data.expect("data")["ca.crt"].0.clone();
        let url = format!("https://127.0.0.1:{port}");
        let mut config = Config::new(url.parse().expect("a URL"));
        let der = CertificateDer::from_pem_slice(&authority).expect("a PEM certificate");
        config.root_cert = Some(vec![der.to_vec()]);
        config.default_retry = retries;
        config.tls_server_name = Some(SERVER_NAME.to_owned());
        Self {
            client: Client::try_from(config).expect("a client"),
            port,
            authority: der.into_owned(),
        }
    }

    pub async fn send(&self, request: Request<Vec<u8>>) -> Response<Vec<u8>> {
        let (parts, body) = request.into_parts();
        let response = self
            .client
            .send(Request::from_parts(parts, Body::from(body)))
            .await
            .expect("a response");
        let (parts, body) = response.into_parts();
        let body = body
            .collect()
            .await
            .map(Collected::to_bytes)
            .expect("a complete response");
        Response::from_parts(parts, body.to_vec())
    }

    pub async fn post(&self, path: &str, review: &Value) -> Response<Vec<u8>> {
        let request = Request::post(path)
            .header("content-type", "application/json")
            .body(review.to_string().into_bytes());
        self.send(request.expect("a request")).await
    }

    /// Sends the first half of a review and waits until it is on its way. The second half follows when the returned
    /// sender is used.
    pub async fn begin(
        &self,
        path: &str,
        review: &Value,
    ) -> (JoinHandle<Response<Incoming>>, oneshot::Sender<()>) {
        let whole = review.to_string().into_bytes();
        let (first, second) = whole.split_at(whole.len() / 2);
        let (first, second) = (first.to_vec(), second.to_vec());
        let ((go_on, resumed), (started, has_started)) = (oneshot::channel(), oneshot::channel());
        let halves =
            stream::once(async move { Ok::<_, std::io::Error>(Frame::data(Bytes::from(first))) })
                .chain(stream::once(async move {
                    // Polled only after the first half was handed to the connection.
                    let _ = started.send(());
                    let _ = resumed.await;
                    Ok(Frame::data(Bytes::from(second)))
                }));
        let request = Request::post(path)
            .header("content-type", "application/json")
            .header("host", SERVER_NAME)
            .body(StreamBody::new(Box::pin(halves)))
            .expect("a request");
        let mut connection = self.connect().await;
        let response =
            tokio::spawn(
                async move { connection.send_request(request).await.expect("a response") },
            );
        has_started.await.expect("the request has begun");
        (response, go_on)
    }

    /// Opens a connection of its own, as an API server does.
    async fn connect<B>(&self) -> SendRequest<B>
    where
        B: hyper::body::Body + Send + Unpin + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone()).expect("a CA");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring supports the default TLS versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(("127.0.0.1", self.port))
            .await
            .expect("the webhook accepts connections");
        let name = ServerName::try_from(SERVER_NAME).expect("a name");
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .expect("TLS");
        let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        sender
    }

    /// Sends a well-formed review and returns the response in the answer.
    pub async fn review(&self, path: &str, object: &Value, old: Option<&Value>) -> Value {
        let response = self.post(path, &review(object, old)).await;
        assert_eq!(
            response.status(),
            200,
            "{}",
            String::from_utf8_lossy(response.body())
        );
        let review: Value = serde_json::from_slice(response.body()).expect("JSON");
        assert_eq!(
            review["response"]["uid"],
            "0c9a4d1e-1b7b-4c62-8a58-6a4a7c3b2f10"
        );
        review["response"].clone()
    }
}

/// `AdmissionReview` as the API server sends it.
pub fn review(object: &Value, old: Option<&Value>) -> Value {
    let ApiResource {
        group,
        version,
        kind,
        plural,
        ..
    } = resource_of(object);
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "0c9a4d1e-1b7b-4c62-8a58-6a4a7c3b2f10",
            "kind": {"group": group, "version": version, "kind": kind},
            "requestKind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": plural},
            "name": object["metadata"]["name"],
            "namespace": crate::env::NAMESPACE,
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "userInfo": {"username": "kubernetes-admin"},
            "object": object,
            "oldObject": old,
            "dryRun": false,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        },
    })
}
