//! Identity that the components of a tenant use.
//!
//! A component without its own credentials uses those of the agent. Whether this gives access to a cloud provider is
//! the decision of the administrator. But the credentials must not be sent to any other server.

use lockstep_shared_validation::{Diagnostics, FieldError, RuleContext};
use serde_json::Value;

use crate::tenancy::components::each;
use crate::types::pipeline::Pipeline;

/// Credentials that the author of a pipeline can provide; all other kinds are identities of the agent.
const OWN_OF_AZURE: [&str; 2] = ["client_certificate_credential", "client_secret_credential"];

pub(crate) fn validate<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    each(context, |component, path, _| {
        let kind = component.kind().unwrap_or_default();
        let has = |option: &str| component.option(option).is_some();
        let is_anonymous = component.option("skip_authentication") == Some(&Value::Bool(true));
        let has_own = has("api_key") || has("credentials_path") || is_anonymous;
        if kind.starts_with("gcp_") && has("endpoint") && !has_own {
            let detail = "Vector would send the agent's own credentials to this endpoint; set `api_key`, or remove `endpoint`";
            let error = FieldError::invalid_hidden(path.child("endpoint"), detail);
            diagnostics.push(error);
        }
        let option = "azure_credential_kind";
        let credentials = component
            .option("auth")
            .and_then(|auth| auth[option].as_str());
        if let Some(kind) = credentials.filter(|kind| !OWN_OF_AZURE.contains(kind)) {
            let own = OWN_OF_AZURE.join("`, `");
            let detail = format!("is an identity of the agent; a tenant may use only `{own}`");
            let path = path.child("auth").child(option);
            diagnostics.push(FieldError::invalid(path, kind, detail));
        }
    });
}
