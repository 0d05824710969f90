//! One structured line an event, to standard error.

use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::traces::{self, Traces};

/// What fails is told by whoever asked for it, with what it was for; the client's own lines say neither.
const DEFAULT: &str = "info,kube_client::client::builder=off";

/// Starts logging as `RUST_LOG` says, from `info` up where it says nothing.
pub(crate) fn start(traces: Option<&Traces>) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        // It is the last of the list.
        .with_current_span(false)
        .with_writer(std::io::stderr)
        // The gate's spans are made for traces alone; those of the loop say whose round a line belongs to.
        .with_filter(filter.and(filter_fn(|metadata| {
            metadata.is_event() || !metadata.target().starts_with(traces::SPAN_TARGET)
        })));
    tracing_subscriber::registry()
        .with(traces.map(Traces::layer))
        .with(lines)
        .init();
    // Where, and not what: a message may quote the object.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "a panic");
    }));
}
