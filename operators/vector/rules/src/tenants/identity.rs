//! As whom a tenant's components present themselves.
//!
//! A component without credentials of its own uses those of the agent. With a cloud, that is the administrator's to
//! allow; but nobody else may be sent them.

use serde_json::Value;
use shared_validation::{Diagnostics, FieldError, RuleContext};

use super::each;
use crate::pipeline::Pipeline;

/// Credentials that an author of a pipeline has; all other kinds are the agent's.
const OWN_OF_AZURE: [&str; 2] = ["client_certificate_credential", "client_secret_credential"];

pub(super) fn validate<K: Pipeline>(subject: &RuleContext<'_, K>, findings: &mut Diagnostics) {
    each(subject, |component, path, _| {
        let kind = component.kind().unwrap_or_default();
        let has = |option: &str| component.option(option).is_some();
        let is_anonymous = component.option("skip_authentication") == Some(&Value::Bool(true));
        let has_own = has("api_key") || has("credentials_path") || is_anonymous;
        if kind.starts_with("gcp_") && has("endpoint") && !has_own {
            let detail = "Vector would send the agent's own credentials there; name an `api_key`, or leave it out";
            let error = FieldError::invalid_hidden(path.child("endpoint"), detail);
            findings.push(error);
        }
        let option = "azure_credential_kind";
        let credentials = component
            .option("auth")
            .and_then(|auth| auth[option].as_str());
        if let Some(kind) = credentials.filter(|kind| !OWN_OF_AZURE.contains(kind)) {
            let own = OWN_OF_AZURE.join("`, `");
            let detail = format!("is an identity of the agent's; a tenant has `{own}`");
            let path = path.child("auth").child(option);
            findings.push(FieldError::invalid(path, kind, detail));
        }
    });
}
