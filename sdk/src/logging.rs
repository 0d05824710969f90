//! Logging: one structured line per event, to standard error.

use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::tracing_export;
use crate::tracing_export::Traces;

/// Default filter. Callers log failed requests together with their purpose; the client's own lines name neither
/// the caller nor the purpose.
const DEFAULT: &str = "info,kube_client::client::builder=off";

/// Most detailed level at which a module logs, whatever `RUST_LOG` says.
struct Cap {
    module: &'static str,
    includes_submodules: bool,
    level: LevelFilter,
}

impl Cap {
    const fn new(module: &'static str, level: LevelFilter) -> Self {
        Self {
            module,
            includes_submodules: true,
            level,
        }
    }

    const fn without_submodules(self) -> Self {
        Self {
            includes_submodules: false,
            ..self
        }
    }

    fn covers(&self, target: &str) -> bool {
        let below = target.strip_prefix(self.module);
        below.is_some_and(|below| {
            below.is_empty() || self.includes_submodules && below.starts_with("::")
        })
    }
}

/// Modules whose more detailed lines contain secret values.
const CAPS: &[Cap] = &[
    // Requests with their bodies: master passwords.
    Cap::new(
        "aws_smithy_runtime::client::orchestrator",
        LevelFilter::DEBUG,
    ),
    // The same requests before they are signed. Their bodies are hidden only unless `LOG_SIGNABLE_BODY` is set.
    Cap::new("aws_sigv4", LevelFilter::DEBUG),
    // Values of AWS profiles: secret access keys.
    Cap::new("aws_runtime::env_config", LevelFilter::DEBUG),
    // Responses that cannot be read, as a whole: Secrets. Callers log the errors.
    Cap::new("kube_client::client", LevelFilter::ERROR).without_submodules(),
];

/// Starts logging with the filter in `RUST_LOG`. The default level is `info`.
pub(crate) fn start(traces: Option<&Traces>) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    tracing_subscriber::registry()
        .with(traces.map(Traces::layer))
        .with(lines(filter, std::io::stderr))
        .init();
    // Only the location is logged: the message may quote the object.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "panicked");
    }));
}

/// Returns the layer that writes the lines which a filter and all caps let through.
fn lines<S, W>(filter: EnvFilter, writer: W) -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: for<'writer> MakeWriter<'writer> + 'static,
{
    tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        // The current span is already the last one in the list of spans.
        .with_current_span(false)
        .with_writer(writer)
        .with_filter(filter.and(filter_fn(|metadata| {
            !is_span_of_webhook(metadata) && is_within_caps(metadata)
        })))
}

/// Returns true for the webhook's spans, which exist only for tracing. The controller's spans name the reconciliation that a
/// line belongs to.
fn is_span_of_webhook(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target().starts_with(tracing_export::SPAN_TARGET)
}

/// Returns true unless a cap is below the level of a line.
///
/// A cap is a filter of its own: a directive that is added to `RUST_LOG` would replace a lower level there.
fn is_within_caps(metadata: &Metadata<'_>) -> bool {
    let mut caps = CAPS.iter().filter(|cap| cap.covers(metadata.target()));
    caps.all(|cap| *metadata.level() <= cap.level)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex, PoisonError};

    use serde_json::Value;
    use tracing::subscriber::with_default;

    use super::*;

    /// Lines that were written.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            written.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Logs one line at each level under a target.
    macro_rules! log_at_each_level {
        ($target:literal) => {
            tracing::error!(target: $target, "line");
            tracing::warn!(target: $target, "line");
            tracing::info!(target: $target, "line");
            tracing::debug!(target: $target, "line");
            tracing::trace!(target: $target, "line");
        };
    }

    /// Returns the most detailed level that is written of each target.
    fn levels(directives: &str) -> Vec<(String, String)> {
        let written = Written::default();
        let writer = written.clone();
        let layer = lines(EnvFilter::new(directives), move || writer.clone());
        with_default(tracing_subscriber::registry().with(layer), || {
            log_at_each_level!("aws_smithy_runtime::client::orchestrator");
            log_at_each_level!("aws_smithy_runtime::client::orchestrator::http");
            log_at_each_level!("aws_sigv4::http_request::sign");
            log_at_each_level!("aws_runtime::env_config::property");
            // It only begins with the name of a capped module.
            log_at_each_level!("aws_sigv4a");
            log_at_each_level!("aws_smithy_runtime::client::retries");
            log_at_each_level!("kube_client::client");
            log_at_each_level!("kube_client::client::auth");
            log_at_each_level!("lockstep_controller");
        });
        let bytes = written.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&bytes);
        let mut levels: Vec<(String, String)> = Vec::new();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).expect("a line of JSON");
            let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
            let target = text("target");
            match levels.last_mut().filter(|last| last.0 == target) {
                Some(last) => last.1 = text("level"),
                None => levels.push((target, text("level"))),
            }
        }
        levels
    }

    #[track_caller]
    fn assert_levels(directives: &str, capped: Option<&str>, others: Option<&str>) {
        let targets = [
            ("aws_smithy_runtime::client::orchestrator", capped),
            ("aws_smithy_runtime::client::orchestrator::http", capped),
            ("aws_sigv4::http_request::sign", capped),
            ("aws_runtime::env_config::property", capped),
            ("aws_sigv4a", others),
            ("aws_smithy_runtime::client::retries", others),
            ("kube_client::client", others.map(|_| "ERROR")),
            ("kube_client::client::auth", others),
            ("lockstep_controller", others),
        ];
        let expected = targets
            .into_iter()
            .filter_map(|(target, level)| level.map(|level| (target.to_owned(), level.to_owned())));
        assert_eq!(
            levels(directives),
            expected.collect::<Vec<_>>(),
            "{directives}"
        );
    }

    #[test]
    fn modules_that_would_log_secrets_stay_at_debug() {
        assert_levels("trace", Some("DEBUG"), Some("TRACE"));
        assert_levels("debug", Some("DEBUG"), Some("DEBUG"));
        let named = "error,aws_smithy_runtime::client::orchestrator=trace,aws_sigv4::http_request=trace,\
                     aws_runtime::env_config=trace";
        assert_levels(named, Some("DEBUG"), Some("ERROR"));
    }

    #[test]
    fn a_cap_raises_no_level() {
        assert_levels(DEFAULT, Some("INFO"), Some("INFO"));
        assert_levels("warn", Some("WARN"), Some("WARN"));
        assert_levels("error", Some("ERROR"), Some("ERROR"));
        assert_levels("off", None, None);
        assert_levels("another_module=trace", None, None);
    }
}
