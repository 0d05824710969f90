//! The same interface without export, so that a program without the feature `otlp` has none of its dependencies.

use axum::Router;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Identity;

/// Options of traces: none.
#[derive(clap::Args)]
pub(crate) struct TraceArgs {}

/// Traces, which no program without the feature has.
pub(crate) enum Traces {}

impl TraceArgs {
    #[expect(
        clippy::unnecessary_wraps,
        clippy::unused_self,
        reason = "with the feature `otlp`, the options may be invalid"
    )]
    pub(crate) fn traces(&self, _: &str) -> anyhow::Result<Option<Traces>> {
        Ok(None)
    }
}

impl Traces {
    pub(crate) fn layer<S: tracing::Subscriber>(&self) -> impl Layer<S> + use<S> {
        match *self {}
        #[expect(unreachable_code, reason = "the type of the layer")]
        Identity::new()
    }

    pub(crate) fn continued(routes: Router) -> Router {
        routes
    }

    #[expect(
        clippy::unused_async,
        reason = "with the feature `otlp`, spans are sent"
    )]
    pub(crate) async fn end(self) {
        match self {}
    }
}
