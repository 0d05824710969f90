//! OpenTelemetry traces of admission reviews. They are exported only with the feature `otlp`.

#[cfg(not(feature = "otlp"))]
mod disabled;
#[cfg(feature = "otlp")]
mod otlp;

#[cfg(not(feature = "otlp"))]
pub(crate) use disabled::{TraceArgs, Traces};
#[cfg(feature = "otlp")]
pub(crate) use otlp::{TraceArgs, Traces};

/// Target prefix of the spans that are exported: those of the webhook.
pub(crate) const SPAN_TARGET: &str = "lockstep_webhook";
