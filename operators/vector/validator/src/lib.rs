//! Warm validation: a process that keeps running beside an image's Vector, and answers what this Vector says about a
//! configuration.
//!
//! ```text
//! controller ── Configuration ─► Client ══ HTTPS ══► server ─► private directory ─► `vector validate` ─► Answer
//! ```
//!
//! [`Configuration`] and [`Answer`] are what both sides exchange. [`Outcome`] is the meaning of an exit code, which checks in
//! Pods of their own share. [`Client`] trusts exactly one certificate. [`Server`] runs only for clients with the token.

mod client;
#[cfg(unix)]
mod command;
#[cfg(unix)]
mod log_tail;
mod outcome;
mod protocol;
#[cfg(unix)]
mod server;

pub use crate::client::{Client, ClientError, Connection};
pub use crate::outcome::Outcome;
pub use crate::protocol::{
    Answer, CERTIFICATE, Configuration, HEALTH, KEY, MAX_BODY_BYTES, PORT, READY, SERVER_NAME,
    TOKEN,
};
#[cfg(unix)]
pub use crate::server::{Server, ServerError};
