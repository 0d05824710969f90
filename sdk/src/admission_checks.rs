//! Admission checks that need the cluster. The webhook has no cluster credentials: it asks the controller in its Pod.
//!
//! ```text
//! webhook ── object ─► client ══ Unix socket ══► server ─► check of the operator ─► errors and warnings
//! ```

mod client;
mod server;

use async_trait::async_trait;
use lockstep_shared_validation::Policy;
use lockstep_webhook::{AdmissionCheckRequest, AdmissionCheckResult};

pub(crate) use crate::admission_checks::client::SocketClient;
pub(crate) use crate::admission_checks::server::{CheckOfKind, serve};

/// Path to which an object is sent.
const CHECK: &str = "/check";

/// Maximum size of a message. That of an object in an admission review is smaller.
const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// Check of objects that the rules accept. It needs the cluster, and runs in the controller of the webhook's Pod, whether this
/// replica is the leader or not.
///
/// ```
/// use async_trait::async_trait;
/// use lockstep_sdk::{AdmissionCheck, AdmissionCheckRequest, AdmissionCheckResult, Finding};
///
/// /// Checks that the class of an object exists.
/// struct ClassExists {
///     classes: Vec<String>,
/// }
///
/// #[async_trait]
/// impl AdmissionCheck for ClassExists {
///     async fn check(&self, request: &AdmissionCheckRequest) -> Result<AdmissionCheckResult, String> {
///         let class = request.object["spec"]["class"].as_str().unwrap_or_default();
///         let mut result = AdmissionCheckResult::default();
///         if !self.classes.iter().any(|known| known == class) {
///             result.errors.push(Finding {
///                 rule: "class-exists".to_owned(),
///                 field: "spec.class".to_owned(),
///                 message: format!("the class `{class}` does not exist"),
///             });
///         }
///         Ok(result)
///     }
/// }
/// ```
#[async_trait]
pub trait AdmissionCheck: Send + Sync + 'static {
    /// Returns the errors and warnings for an object. The webhook waits for two seconds; then it drops this future, and the
    /// result of the rules counts.
    ///
    /// # Errors
    ///
    /// There is no result, for this reason. The user gets it in a warning.
    async fn check(&self, request: &AdmissionCheckRequest) -> Result<AdmissionCheckResult, String>;
}

/// Returns true if a policy demands the checks of a kind.
pub(crate) type IsWanted = fn(&str, &Policy) -> bool;

/// Kind that has checks.
#[derive(Clone, Copy)]
pub(crate) struct CheckedKind {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) is_wanted: IsWanted,
    /// Annotations that the checks are about; empty if they are about all objects.
    pub(crate) annotations: &'static [&'static str],
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lockstep_webhook::{Finding, RemoteChecks};
    use serde_json::{Value, json};

    use super::*;

    /// Rejects objects without a name, and comes to no result for others.
    struct Names;

    #[async_trait]
    impl AdmissionCheck for Names {
        async fn check(
            &self,
            request: &AdmissionCheckRequest,
        ) -> Result<AdmissionCheckResult, String> {
            match request.object["name"].as_str() {
                Some(name) => Err(format!("nothing is known of {name}")),
                None => Ok(AdmissionCheckResult {
                    errors: vec![Finding {
                        rule: "name".to_owned(),
                        field: "name".to_owned(),
                        message: format!("is missing in {}", request.kind),
                    }],
                    warnings: Vec::new(),
                }),
            }
        }
    }

    fn request(kind: &str, object: Value) -> AdmissionCheckRequest {
        AdmissionCheckRequest {
            group: "example.com".to_owned(),
            kind: kind.to_owned(),
            object,
            old_object: None,
        }
    }

    #[tokio::test]
    async fn a_check_is_done_by_the_process_that_listens() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("tls/checks.sock");
        let client = SocketClient::new(socket.clone(), Vec::new());
        let of = async |kind, object| client.check(&request(kind, object)).await;
        let error = of("Named", json!({})).await.expect_err("no listener");
        assert!(error.contains("cannot be asked"), "{error}");

        // A file that an ended process has left is replaced.
        std::fs::create_dir(folder.path().join("tls")).expect("a folder");
        drop(std::os::unix::net::UnixListener::bind(&socket).expect("a socket"));
        let checks = vec![CheckOfKind {
            group: "example.com",
            kind: "Named",
            check: Arc::new(Names) as Arc<dyn AdmissionCheck>,
        }];
        serve(&socket, checks).await.expect("it listens");
        let found = of("Named", json!({})).await.expect("a result");
        assert_eq!(found.errors[0].message, "is missing in Named");
        let error = of("Named", json!({"name": "a"})).await;
        assert_eq!(error, Err("nothing is known of a".to_owned()));
        let error = of("Other", json!({})).await.expect_err("no check");
        assert!(error.contains("no check of the kind Other"), "{error}");
        let large = json!({"name": "a".repeat(MAX_MESSAGE_BYTES)});
        assert!(of("Named", large).await.is_err());
    }
}
