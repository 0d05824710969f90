//! Minimal server as a baseline: it parses both objects, or only skips over them, and always returns the same response.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    webhook_bind_address: SocketAddr,
    #[arg(long)]
    cert_dir: PathBuf,
    /// Skip both objects: only their JSON syntax is checked.
    #[arg(long)]
    pass_over: bool,
}

#[derive(Deserialize)]
struct Review<'a, T> {
    #[serde(borrow)]
    request: Request<'a, T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a, T> {
    uid: &'a str,
    #[serde(rename = "object")]
    _object: Option<T>,
    #[serde(rename = "oldObject")]
    _old_object: Option<T>,
}

pub(crate) fn serve(args: &Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run(args))
}

async fn run(args: &Args) -> anyhow::Result<()> {
    let acceptor = acceptor(&args.cert_dir)?;
    let routes: Router = Router::new()
        .route(
            "/validate",
            if args.pass_over {
                post(response::<IgnoredAny>)
            } else {
                post(response::<Value>)
            },
        )
        .route("/readyz", get(|| async { "ok" }));
    let listener = TcpListener::bind(args.webhook_bind_address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let (acceptor, routes) = (acceptor.clone(), routes.clone());
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                routes.clone().oneshot(request.map(Body::new))
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            let _ = connection.await;
        });
    }
}

async fn response<T: DeserializeOwned>(body: Bytes) -> axum::response::Response {
    let Ok(review) = serde_json::from_slice::<Review<'_, T>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let uid = review.request.uid;
    let response = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{{"uid":"{uid}","allowed":true}}}}"#
    );
    ([("content-type", "application/json")], response).into_response()
}

fn acceptor(directory: &Path) -> anyhow::Result<TlsAcceptor> {
    let chain = CertificateDer::pem_file_iter(directory.join("tls.crt"))?
        .collect::<Result<Vec<_>, _>>()
        .context("tls.crt")?;
    let key = PrivateKeyDer::from_pem_file(directory.join("tls.key")).context("tls.key")?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
