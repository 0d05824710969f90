//! External system of an operator, as its author simulates it.

use std::any::Any;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tower::{BoxError, Service, ServiceExt};

/// Simulator of the external system that an operator manages. Every trial of chaos has one of its own.
///
/// [`resources`](Self::resources) and [`set`](Self::set) are called on threads that may block, so that the simulator may be
/// slow, or run in another process. They can wait for futures with `tokio::runtime::Handle::block_on`.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::{Mutex, PoisonError};
///
/// use lockstep_test::chaos::ExternalSystem;
/// use serde_json::Value;
///
/// /// Queues by name. The operator calls it through a Rust trait.
/// #[derive(Default)]
/// struct Queues(Mutex<BTreeMap<String, Value>>);
///
/// impl ExternalSystem for Queues {
///     fn resources(&self) -> BTreeMap<String, Value> {
///         self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
///     }
///
///     fn set(&self, id: &str, resource: Option<Value>) {
///         let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
///         match resource {
///             Some(resource) => queues.insert(id.to_owned(), resource),
///             None => queues.remove(id),
///         };
///     }
/// }
/// ```
pub trait ExternalSystem: Any + Send + Sync {
    /// Returns the HTTP server of the system, before which chaos puts its proxy. None if the operator calls the system in
    /// another way.
    fn http(&self) -> Option<HttpBackend> {
        None
    }

    /// Returns all resources that exist in the system, by an id.
    fn resources(&self) -> BTreeMap<String, Value>;

    /// Creates, replaces or removes a resource, as another client of the system does. When it returns, the system has a resource
    /// with the content, possibly under another id and with further fields.
    fn set(&self, id: &str, resource: Option<Value>);

    /// Returns a resource that another client has changed by mistake, such as one without its labels. None: chaos only
    /// removes resources and restores earlier contents.
    fn drifted(&self, _resource: &Value, _random: &mut fastrand::Rng) -> Option<Value> {
        None
    }

    /// Returns secret values that the system has got, such as passwords. They belong to no status, Event or owned object other
    /// than a Secret.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns true if a call by HTTP can change the system.
    fn is_write(&self, method: &Method, _path: &str) -> bool {
        ![Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
    }
}

/// External system of operators that have none.
pub(crate) struct NoExternalSystem;

impl ExternalSystem for NoExternalSystem {
    fn resources(&self) -> BTreeMap<String, Value> {
        BTreeMap::new()
    }

    fn set(&self, _: &str, _: Option<Value>) {}
}

type Respond = dyn Fn(Request<Full<Bytes>>) -> BoxFuture<'static, Result<Response<Bytes>, BoxError>>
    + Send
    + Sync;

/// HTTP server of an external system: a service in this process, such as an `axum::Router`, or an address.
///
/// ```
/// use lockstep_test::chaos::HttpBackend;
///
/// let simulator = HttpBackend::address("127.0.0.1:4566".parse().expect("an address"));
/// ```
#[derive(Clone)]
pub struct HttpBackend(Arc<Respond>);

impl HttpBackend {
    /// Returns a server in this process.
    pub fn service<S, B>(service: S) -> Self
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        Self(Arc::new(move |request| {
            let service = service.clone();
            let respond = async move {
                let response = service.oneshot(request).await.map_err(Into::into)?;
                collected(response).await
            };
            respond.boxed()
        }))
    }

    /// Returns a server that listens at an address.
    pub fn address(address: SocketAddr) -> Self {
        let client: Client<HttpConnector, Full<Bytes>> =
            Client::builder(TokioExecutor::new()).build_http();
        Self(Arc::new(move |mut request| {
            let client = client.clone();
            let path = request.uri().path_and_query();
            let path = path.map_or_else(String::new, ToString::to_string);
            let respond = async move {
                *request.uri_mut() = format!("http://{address}{path}").parse()?;
                collected(client.request(request).await?).await
            };
            respond.boxed()
        }))
    }

    /// Passes a request to the server.
    pub(crate) fn respond(
        &self,
        request: Request<Full<Bytes>>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, BoxError>> {
        (self.0)(request)
    }
}

async fn collected<B>(response: Response<B>) -> Result<Response<Bytes>, BoxError>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(Into::into)?.to_bytes();
    Ok(Response::from_parts(parts, body))
}
