//! HTTP server.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::AUTHORIZATION;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::control::service::Service;

/// State that the server and the test share.
pub(crate) type Shared = Arc<Mutex<Service>>;

/// Locks the state. A test that panics while it holds the lock does not prevent the others from being reported.
pub(crate) fn lock(shared: &Shared) -> MutexGuard<'_, Service> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens on a port of the loopback address, and returns the address and the future that serves it.
pub(crate) async fn listen(
    shared: Shared,
) -> io::Result<(SocketAddr, impl Future<Output = ()> + Send + 'static)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let serve = async move {
        // The connections end with the server.
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            while connections.try_join_next().is_some() {}
            connections.spawn(serve(stream, shared.clone()));
        }
    };
    Ok((address, serve))
}

/// Serves a connection. An error of the handler closes the connection without an answer.
async fn serve(stream: TcpStream, shared: Shared) {
    // Otherwise, answers wait for acknowledgements.
    let _ = stream.set_nodelay(true);
    let handler = service_fn(move |request| handle(request, shared.clone()));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), handler);
    // Faults and clients that leave are no errors of the server.
    let _ = connection.await;
}

async fn handle(
    request: Request<Incoming>,
    shared: Shared,
) -> Result<Response<Full<Bytes>>, io::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let authorization = parts.headers.get(AUTHORIZATION);
    let authorization = authorization.and_then(|value| value.to_str().ok());
    let answer = lock(&shared).answer(authorization, &body);
    tokio::time::sleep(answer.delay).await;
    if answer.is_lost {
        return Err(io::Error::other("a test has requested to lose the answer"));
    }
    let response = Response::builder()
        .status(answer.status)
        .header("content-type", "text/xml")
        .header("x-amzn-requestid", &answer.request_id)
        .body(Full::new(Bytes::from(answer.body)));
    response.map_err(io::Error::other)
}
