//! Proxy between a simulated process and the HTTP server of the external system.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::BoxError;

use crate::chaos::external_system::HttpBackend;
use crate::chaos::fault_plan::Side;
use crate::chaos::process_state::{CallRecord, InjectedAnswer, ProcessState};

/// Proxy between a simulated process and the HTTP server of the external system. It ends when it is dropped.
pub(crate) struct ExternalProxy {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl ExternalProxy {
    /// Starts a proxy for one process.
    pub(crate) async fn start(backend: HttpBackend, process: &Arc<ProcessState>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let process = Arc::clone(process);
        let serving = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (backend, process) = (backend.clone(), Arc::clone(&process));
                let service =
                    service_fn(move |request| pass(backend.clone(), Arc::clone(&process), request));
                let connection = TokioIo::new(connection);
                tokio::spawn(http1::Builder::new().serve_connection(connection, service));
            }
        });
        Self { address, serving }
    }

    /// Returns the URL of the proxy.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for ExternalProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Passes a request on. An error closes the connection without an answer.
async fn pass(
    backend: HttpBackend,
    process: Arc<ProcessState>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, BoxError> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let path = parts.uri.path_and_query();
    let path = path.map_or_else(String::new, ToString::to_string);
    let record = CallRecord {
        side: Side::External,
        text: format!("{} {path} {}", parts.method, String::from_utf8_lossy(&body)),
        key: format!("{} external", parts.method),
        object: None,
        is_write: process.trial.system.is_write(&parts.method, &path),
    };
    let execute = backend.respond(Request::from_parts(parts, Full::new(body)));
    match process.call(record, execute).await {
        Ok(answer) => Ok(answer?.map(Full::new)),
        Err(InjectedAnswer::ConnectionLost) => {
            Err(BoxError::from("connection lost (fault injected by chaos)"))
        }
        Err(InjectedAnswer::Status(code)) => {
            let text = Bytes::from_static(b"fault injected by chaos");
            let mut response = Response::new(Full::new(text));
            *response.status_mut() = StatusCode::from_u16(code)?;
            Ok(response)
        }
    }
}
