//! Logging: one structured line per event, to standard error.

use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::tracing_export;
use crate::tracing_export::Traces;

/// Default filter. Callers log failed requests together with their purpose; the client's own lines name neither
/// the caller nor the purpose.
const DEFAULT: &str = "info,kube_client::client::builder=off";

/// Limits of every filter: at the level `trace`, these modules log requests with passwords in them.
const LIMITS: &[&str] = &["aws_smithy_runtime::client::orchestrator=debug"];

/// Starts logging with the filter in `RUST_LOG`. The default level is `info`.
pub(crate) fn start(traces: Option<&Traces>) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let limits = LIMITS.iter().filter_map(|limit| limit.parse().ok());
    let filter = limits.fold(filter, EnvFilter::add_directive);
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        // The current span is already the last one in the list of spans.
        .with_current_span(false)
        .with_writer(std::io::stderr)
        // The webhook's spans exist only for tracing. The controller's spans name the reconciliation that a line
        // belongs to.
        .with_filter(filter.and(filter_fn(|metadata| {
            metadata.is_event() || !metadata.target().starts_with(tracing_export::SPAN_TARGET)
        })));
    tracing_subscriber::registry()
        .with(traces.map(Traces::layer))
        .with(lines)
        .init();
    // Only the location is logged: the message may quote the object.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "panicked");
    }));
}
