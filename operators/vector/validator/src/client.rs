//! Client of a validator.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::protocol::{
    Answer, Configuration, MAX_BODY_BYTES, MAX_SCHEMA_BYTES, MAX_VERSION_BYTES, SCHEMA,
    SERVER_NAME, VALIDATE, VERSION,
};

/// Time-out of a connection: a validator is in the same cluster.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time-out of a request. It is longer than that of `vector validate`, and than the wait for one validation before.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(25);

/// Maximum size of an answer, in bytes: the log is limited by the server, and JSON may escape each of its characters.
const MAX_ANSWER_BYTES: usize = 128 << 10;

/// Error of a validator, or of the way to it. It says nothing about the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The certificate or the token cannot be used.
    #[error("its certificate or its token cannot be used")]
    Credentials,
    /// There is no connection.
    #[error("cannot connect to it: {0}")]
    Connection(String),
    /// The configuration is larger than a request may be.
    #[error("the configuration has more than {MAX_BODY_BYTES} bytes")]
    TooLarge,
    /// The request has failed.
    #[error("it does not answer: {0}")]
    Request(String),
    /// The validator has refused the request.
    #[error("it has refused the request: {0}")]
    Refused(StatusCode),
    /// The answer cannot be read.
    #[error("its answer cannot be read")]
    Answer,
}

/// Client that trusts exactly one certificate.
pub struct Client {
    connector: TlsConnector,
    authorization: HeaderValue,
}

impl Client {
    /// Creates a client that trusts a PEM certificate and sends a token.
    ///
    /// # Errors
    ///
    /// One of them cannot be used.
    pub fn new(certificate: &[u8], token: &str) -> Result<Self, ClientError> {
        let invalid = || ClientError::Credentials;
        let certificate = CertificateDer::from_pem_slice(certificate).map_err(|_| invalid())?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate).map_err(|_| invalid())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(|_| invalid())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut authorization =
            HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| invalid())?;
        authorization.set_sensitive(true);
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            authorization,
        })
    }

    /// Connects to a validator.
    ///
    /// # Errors
    ///
    /// There is no validator with the certificate at this address.
    pub async fn connect(&self, address: SocketAddr) -> Result<Connection, ClientError> {
        let failed = |error: &dyn std::fmt::Display| ClientError::Connection(error.to_string());
        let name = ServerName::try_from(SERVER_NAME).map_err(|error| failed(&error))?;
        let connected = async {
            let stream = TcpStream::connect(address).await;
            let stream = stream.map_err(|error| failed(&error))?;
            let _ = stream.set_nodelay(true);
            let stream = self.connector.connect(name, stream).await;
            let stream = TokioIo::new(stream.map_err(|error| failed(&error))?);
            http1::handshake(stream)
                .await
                .map_err(|error| failed(&error))
        };
        let connected = timeout(CONNECT_TIMEOUT, connected).await;
        let (sender, connection) = connected.unwrap_or_else(|_| {
            let seconds = CONNECT_TIMEOUT.as_secs();
            Err(failed(&format!("no response within {seconds} s")))
        })?;
        let task = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection to a validator ended");
            }
        });
        Ok(Connection {
            sender,
            task,
            authorization: self.authorization.clone(),
        })
    }
}

/// Connection to a validator.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    task: JoinHandle<()>,
    authorization: HeaderValue,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The server ends a validation whose connection is closed.
        self.task.abort();
    }
}

impl Connection {
    /// Returns what Vector says about a configuration.
    ///
    /// # Errors
    ///
    /// The validator does not say it.
    pub async fn validate(&mut self, configuration: &Configuration) -> Result<Answer, ClientError> {
        let body = serde_json::to_vec(configuration).map_err(|_| ClientError::TooLarge)?;
        if body.len() > MAX_BODY_BYTES {
            return Err(ClientError::TooLarge);
        }
        let answer = self.request(Method::POST, VALIDATE, body, MAX_ANSWER_BYTES);
        serde_json::from_slice(&answer.await?).map_err(|_| ClientError::Answer)
    }

    /// Returns the schema that Vector generates, as JSON.
    ///
    /// # Errors
    ///
    /// The validator does not return it.
    pub async fn schema(&mut self) -> Result<Bytes, ClientError> {
        self.request(Method::GET, SCHEMA, Vec::new(), MAX_SCHEMA_BYTES)
            .await
    }

    /// Returns the version that Vector prints.
    ///
    /// # Errors
    ///
    /// The validator does not return it.
    pub async fn version(&mut self) -> Result<String, ClientError> {
        let version = self.request(Method::GET, VERSION, Vec::new(), MAX_VERSION_BYTES);
        let version = String::from_utf8(version.await?.to_vec());
        version.map_err(|_| ClientError::Answer)
    }

    async fn request(
        &mut self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        max_bytes: usize,
    ) -> Result<Bytes, ClientError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, SERVER_NAME)
            .header(AUTHORIZATION, self.authorization.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(body))
            .map_err(|error| ClientError::Request(error.to_string()))?;
        let answered = async {
            let response = self.sender.send_request(request).await;
            let response = response.map_err(|error| ClientError::Request(error.to_string()))?;
            let (head, body) = response.into_parts();
            if head.status != StatusCode::OK {
                return Err(ClientError::Refused(head.status));
            }
            let body = Limited::new(body, max_bytes).collect().await;
            body.map(|it| it.to_bytes())
                .map_err(|_| ClientError::Answer)
        };
        let answered = timeout(REQUEST_TIMEOUT, answered).await;
        answered.unwrap_or_else(|_| {
            let seconds = REQUEST_TIMEOUT.as_secs();
            Err(ClientError::Request(format!(
                "no response within {seconds} s"
            )))
        })
    }
}
