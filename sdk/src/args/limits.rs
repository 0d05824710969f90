//! Options for the limits of the webhook and of its server.

use std::time::Duration;

use crate::server::runtime;

/// Limits of the webhook. Each request or connection that exceeds one is counted in
/// `lockstep_webhook_rejected_requests_total`.
#[derive(clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Maximum duration of a TLS handshake.
    #[arg(long, default_value = "10s", value_parser = runtime::duration)]
    handshake_timeout: Duration,
    /// Maximum time from the first byte of a request header to its end.
    #[arg(long, default_value = "10s", value_parser = runtime::duration)]
    read_header_timeout: Duration,
    /// Maximum time that a connection may be idle. API servers keep idle connections for 90 s; a shorter timeout
    /// here would race with their next request.
    #[arg(long, default_value = "2m", value_parser = runtime::duration)]
    idle_timeout: Duration,
    /// Maximum time in which a client must read a response that it does not read at once.
    #[arg(long, default_value = "10s", value_parser = runtime::duration)]
    write_timeout: Duration,
    /// Maximum time to receive a request body.
    #[arg(long, default_value = "10s", value_parser = runtime::duration)]
    body_timeout: Duration,
    /// Maximum duration of a request. A shorter timeout that the API server sends takes precedence.
    #[arg(long, default_value = "30s", value_parser = runtime::duration)]
    request_timeout: Duration,
    /// Maximum number of open connections. When exceeded, the longest-idle connection is closed, or else the one
    /// with the oldest incomplete request.
    #[arg(long, default_value_t = lockstep_http_server::Limits::default().max_connections)]
    max_connections: usize,
    /// Maximum number of reviews that are validated concurrently. Further reviews get status 429, and the API
    /// server retries them.
    #[arg(long, default_value_t = lockstep_webhook::Limits::default().max_requests_inflight)]
    max_requests_inflight: usize,
    /// Maximum size of an admission review, in bytes.
    #[arg(long, default_value_t = lockstep_webhook::Limits::default().max_request_bytes)]
    max_request_bytes: usize,
    /// Maximum size of a conversion review with its list of objects, in bytes.
    #[arg(long, default_value_t = lockstep_webhook::Limits::default().max_conversion_bytes)]
    max_conversion_bytes: usize,
    /// Maximum total size of all reviews and responses in memory, in bytes. When exceeded, further reviews get status 429.
    #[arg(long, default_value_t = lockstep_webhook::Limits::default().max_inflight_bytes)]
    max_inflight_bytes: usize,
}

/// Number of open files that the process needs in addition to its connections.
const OTHER_FILES: usize = 64;

impl LimitArgs {
    /// Returns the limits of connections. Their number is reduced to what the system's limit of open files allows:
    /// without a free file descriptor, the process could not accept any new connection.
    pub(crate) fn server(&self) -> lockstep_http_server::Limits {
        let wanted = self.max_connections.saturating_add(OTHER_FILES);
        let allowed = rlimit::increase_nofile_limit(wanted as u64).map_or(usize::MAX, |files| {
            usize::try_from(files).unwrap_or(usize::MAX)
        });
        let connections = self
            .max_connections
            .min(allowed.saturating_sub(OTHER_FILES));
        if connections < self.max_connections {
            tracing::warn!(
                connections,
                wanted = self.max_connections,
                "the system's limit of open files is too low for `--max-connections`; raise `ulimit -n`"
            );
        }
        lockstep_http_server::Limits {
            handshake_timeout: self.handshake_timeout,
            read_header_timeout: self.read_header_timeout,
            idle_timeout: self.idle_timeout,
            write_timeout: self.write_timeout,
            max_connections: connections,
        }
    }

    /// Returns the limits of requests.
    pub(crate) fn webhook(&self) -> lockstep_webhook::Limits {
        lockstep_webhook::Limits {
            body_timeout: self.body_timeout,
            request_timeout: self.request_timeout,
            max_requests_inflight: self.max_requests_inflight,
            max_request_bytes: self.max_request_bytes,
            max_conversion_bytes: self.max_conversion_bytes,
            max_inflight_bytes: self.max_inflight_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        limits: LimitArgs,
    }

    #[test]
    fn option_defaults_equal_the_default_limits() {
        let options = Options::parse_from(["webhook"]).limits;
        assert_eq!(options.webhook(), lockstep_webhook::Limits::default());
        let server = options.server();
        let connections = server.max_connections;
        let default = lockstep_http_server::Limits {
            // The system's limit of open files may reduce it.
            max_connections: connections,
            ..lockstep_http_server::Limits::default()
        };
        assert_eq!(server, default);
        assert!(connections <= lockstep_http_server::Limits::default().max_connections);
    }
}
