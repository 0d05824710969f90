//! Export by OTLP over HTTP.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{anyhow, ensure};
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{FutureExt as _, TracerProvider};
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{Bytes, HeaderExtractor, HttpClient, HttpError, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tokio::runtime::Handle;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::tracing_export::SPAN_TARGET;

/// Timeout of a request to the collector.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
#[command(next_help_heading = "Tracing")]
pub(crate) struct TraceArgs {
    /// Export traces by OTLP over HTTP to this collector, for example `http://localhost:4318`. Default: tracing is
    /// disabled.
    #[arg(long, value_name = "URL")]
    otlp_endpoint: Option<String>,
    /// Fraction of reviews to trace, from 0 to 1. It applies if the API server has not already decided whether to
    /// trace.
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    otlp_sampling_ratio: f64,
}

/// Provider and exporter of traces.
pub(crate) struct Traces(SdkTracerProvider);

impl TraceArgs {
    pub(crate) fn traces(&self, program: &str) -> anyhow::Result<Option<Traces>> {
        let Some(endpoint) = self.otlp_endpoint.as_deref().filter(|url| !url.is_empty()) else {
            return Ok(None);
        };
        ensure!(
            endpoint.starts_with("http://"),
            "`--otlp-endpoint` is `{endpoint}`: it must begin with http://; use a collector on the node or in the Pod"
        );
        ensure!(
            (0.0..=1.0).contains(&self.otlp_sampling_ratio),
            "`--otlp-sampling-ratio` is {}: it must be from 0 to 1",
            self.otlp_sampling_ratio
        );
        let client = TokioHttpClient {
            runtime: Handle::current(),
            client: Arc::new(HyperClient::with_default_connector(TIMEOUT, None)),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .with_timeout(TIMEOUT)
            .build()
            .map_err(|error| anyhow!("cannot export traces to `{endpoint}`: {error}"))?;
        let sampler = Sampler::TraceIdRatioBased(self.otlp_sampling_ratio);
        let provider = SdkTracerProvider::builder()
            .with_sampler(Sampler::ParentBased(Box::new(sampler)))
            .with_resource(
                Resource::builder()
                    .with_service_name(format!("{program}-webhook"))
                    .build(),
            )
            .with_batch_exporter(exporter)
            .build();
        Ok(Some(Traces(provider)))
    }
}

impl Traces {
    /// Returns the layer that collects the webhook's spans.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("lockstep"))
            .with_location(false)
            .with_threads(false)
            .with_filter(filter_fn(|metadata| {
                metadata.is_span() && metadata.target().starts_with(SPAN_TARGET)
            }))
    }

    /// Returns the same routes, which continue the trace that the header of a request names.
    pub(crate) fn continued(routes: Router) -> Router {
        routes.layer(from_fn(async |request: Request, next: Next| {
            let headers = HeaderExtractor(request.headers());
            let parent = TraceContextPropagator::new().extract(&headers);
            next.run(request).with_context(parent).await
        }))
    }

    /// Exports the remaining spans and shuts the exporter down.
    pub(crate) async fn end(self) {
        let ended = tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(TIMEOUT));
        if let Ok(Err(error)) = ended.await {
            tracing::warn!(%error, "cannot export the remaining traces");
        }
    }
}

/// HTTP client that sends on the async runtime, although the exporter calls it from a thread of its own.
#[derive(Debug)]
struct TokioHttpClient {
    runtime: Handle,
    client: Arc<HyperClient>,
}

#[async_trait::async_trait]
impl HttpClient for TokioHttpClient {
    async fn send_bytes(
        &self,
        request: opentelemetry_http::Request<Bytes>,
    ) -> Result<Response<Bytes>, HttpError> {
        let client = Arc::clone(&self.client);
        let sending = self
            .runtime
            .spawn(async move { client.send_bytes(request).await });
        sending.await?
    }
}
