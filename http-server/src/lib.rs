//! HTTP(S) server of the admission webhook and of the health port. The concepts, in reading order:
//!
//! # Server
//!
//! A [`Server`] accepts connections and serves the routes of a [`Router`](axum::Router) on them, over TLS
//! ([`Server::new`]) or without it ([`Server::http`]). When it receives the signal to stop, it shuts down gracefully:
//! it closes connections and finishes the requests in flight.
//!
//! # Limits
//!
//! [`Limits`] keep one client from blocking the server for other clients: time-outs of a TLS handshake, of a header
//! and of an idle connection, and a maximum number of open connections. A new connection over the maximum evicts
//! another one: the one that has been idle for longest, or else the one with the oldest incomplete request.
//!
//! The server does not read the body of a request, so it cannot see when the request is complete. The handler reports
//! that by [`ActiveRequest::mark_request_received`]; each request has an `Arc<ActiveRequest>` among its extensions. A
//! connection with a complete request is not evicted before the response is sent.
//!
//! # Certificates
//!
//! A [`CertWatcher`] reads the serving certificate and its private key from files, and reloads them when they change.
//! [`ServerTls`] is the TLS configuration with that certificate. It can require client certificates; the file of
//! their CA is reloaded, too. An invalid file is reported, and the last valid one remains in use.
//!
//! # Metrics
//!
//! [`Metrics`] are the Prometheus metrics: certificates, and the connections and requests that exceeded a limit.

mod cert_watcher;
mod limits;
mod metrics;
mod pem_file;
mod server;
mod tls;

pub use crate::cert_watcher::CertWatcher;
pub use crate::limits::Limits;
pub use crate::metrics::Metrics;
pub use crate::pem_file::CertError;
pub use crate::server::Server;
pub use crate::server::connection_limit::ActiveRequest;
pub use crate::tls::ServerTls;
