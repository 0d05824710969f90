//! Requests to the API server, with client-go's metric name.

use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::Body;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tower::{Layer, Service};

use crate::metrics::registration::registered;

/// Client layer that counts requests.
///
/// ```
/// use kube::client::ClientBuilder;
/// use kube::{Client, Config};
/// use lockstep_controller::ClientMetrics;
/// use prometheus_client::registry::Registry;
///
/// /// Returns a client whose requests are counted.
/// fn client(config: Config, registry: &mut Registry) -> kube::Result<Client> {
///     let calls = ClientMetrics::register(registry);
///     let host = config.cluster_url.authority().map(ToString::to_string);
///     let calls = calls.with_host(&host.unwrap_or_default());
///     Ok(ClientBuilder::try_from(config)?.with_layer(&calls).build())
/// }
/// ```
#[derive(Clone)]
pub struct ClientMetrics {
    calls: Family<Labels, Counter>,
    host: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    code: String,
    method: String,
    host: String,
}

impl ClientMetrics {
    /// Registers the metric.
    pub fn register(registry: &mut Registry) -> Self {
        let calls = registered(
            registry,
            "rest_client_requests",
            "Total number of requests to the API server by status code, method and host",
            Family::default(),
        );
        Self {
            calls,
            host: String::new(),
        }
    }
}

impl ClientMetrics {
    /// Returns a layer whose requests have this host. A layer does not see it: the client adds it to the URL of a
    /// request only after all layers.
    #[must_use]
    pub fn with_host(&self, host: &str) -> Self {
        Self {
            calls: self.calls.clone(),
            host: host.to_owned(),
        }
    }
}

impl<S> Layer<S> for ClientMetrics {
    type Service = CountedService<S>;

    fn layer(&self, inner: S) -> CountedService<S> {
        CountedService {
            inner,
            metrics: self.clone(),
        }
    }
}

/// Service whose requests are counted.
pub struct CountedService<S> {
    inner: S,
    metrics: ClientMetrics,
}

impl<S, B> Service<Request<Body>> for CountedService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = request.method().to_string();
        let host = self.metrics.host.clone();
        let calls = self.metrics.calls.clone();
        let response = self.inner.call(request);
        async move {
            let response = response.await;
            let code = match &response {
                Ok(response) => response.status().as_str().to_owned(),
                // The value that client-go uses if there is no response.
                Err(_) => "<error>".to_owned(),
            };
            let labels = Labels { code, method, host };
            calls.get_or_create(&labels).inc();
            response
        }
        .boxed()
    }
}
