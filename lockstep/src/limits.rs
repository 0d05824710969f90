//! The bounds of the gate, as options.

use std::time::Duration;

use webhook::Limits;

use crate::serving;

/// What the gate takes at most. Each bound that bites is counted in `lockstep_gate_limited_total`.
#[derive(clap::Args)]
#[command(next_help_heading = "Bounds")]
pub(crate) struct LimitArgs {
    /// How long a client may take to agree on TLS.
    #[arg(long, default_value = "10s", value_parser = serving::duration)]
    handshake_timeout: Duration,
    /// How long a header may take to arrive once it has begun.
    #[arg(long, default_value = "10s", value_parser = serving::duration)]
    read_header_timeout: Duration,
    /// How long a connection may stand idle; API servers keep theirs for 90 s, and closing first would
    /// race with their next request.
    #[arg(long, default_value = "2m", value_parser = serving::duration)]
    idle_timeout: Duration,
    /// How long a body may take to arrive.
    #[arg(long, default_value = "10s", value_parser = serving::duration)]
    body_timeout: Duration,
    /// How long a whole request may take; what the API server names counts if it is less.
    #[arg(long, default_value = "30s", value_parser = serving::duration)]
    request_timeout: Duration,
    /// How many connections stand at once; beyond, the one that has been idle for longest makes room, or
    /// else the one whose request has been arriving for longest.
    #[arg(long, default_value_t = Limits::default().max_connections)]
    max_connections: usize,
    /// How many reviews are judged at once; what comes beyond is answered with 429, and the API server
    /// tries it again.
    #[arg(long, default_value_t = Limits::default().max_requests_inflight)]
    max_requests_inflight: usize,
    /// The largest review taken, in bytes.
    #[arg(long, default_value_t = Limits::default().max_request_bytes)]
    max_request_bytes: usize,
    /// The largest list of objects taken to be converted, in bytes.
    #[arg(long, default_value_t = Limits::default().max_conversion_bytes)]
    max_conversion_bytes: usize,
    /// How much all reviews may take that are held at once, in bytes; beyond, 429.
    #[arg(long, default_value_t = Limits::default().max_inflight_bytes)]
    max_inflight_bytes: usize,
}

/// How many files the process needs beside its connections.
const OTHER_FILES: usize = 64;

impl LimitArgs {
    /// The bounds, of which the number of connections is what the system allows at most: a process that
    /// has no file left for a new connection would serve nobody.
    pub(crate) fn limits(&self) -> Limits {
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
                "the system allows fewer open files than there may be connections; raise `ulimit -n`"
            );
        }
        Limits {
            handshake_timeout: self.handshake_timeout,
            read_header_timeout: self.read_header_timeout,
            idle_timeout: self.idle_timeout,
            body_timeout: self.body_timeout,
            request_timeout: self.request_timeout,
            max_connections: connections,
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
    fn the_options_say_what_the_gate_does_without_them() {
        let said = Options::parse_from(["webhook"]).limits.limits();
        let connections = said.max_connections;
        let unsaid = Limits {
            // What the system allows may be less.
            max_connections: connections,
            ..Limits::default()
        };
        assert_eq!(said, unsaid);
        assert!(connections <= Limits::default().max_connections);
    }
}
