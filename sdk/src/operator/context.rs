//! Context of an operator's controllers.

use controller::Leadership;
use kube::Client;
use kube::api::ApiResource;

/// The parts of the running program that an operator can use.
///
/// # Guarantees
///
/// The context is the same for all kinds of all operators, and for every leadership term of this replica.
#[derive(Clone)]
#[non_exhaustive]
pub struct OperatorContext {
    /// Client of the API server. Its calls are limited by `--kube-api-qps`.
    pub client: Client,
    /// Time until which this replica is certain to be the only leader. Check it before each write to another system.
    pub leadership: Leadership,
    /// The watched namespaces; empty for all.
    pub namespaces: Vec<String>,
    /// The installed kinds of all operators.
    pub installed_kinds: Vec<ApiResource>,
}
