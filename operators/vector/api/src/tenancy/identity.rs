//! Identity that the components of a tenant use.
//!
//! A component without its own credentials uses those of the agent: its role at AWS, its service account at Google. All tenants
//! share them, so that the policy has to permit it. And the credentials must not be sent to any other server.

use lockstep_shared_validation::{Diagnostics, FieldError, RuleContext};
use lockstep_vector_config::{Component, ComponentKind};
use serde_json::Value;

use crate::tenancy::components::each;
use crate::tenancy::policy;
use crate::types::pipeline::Pipeline;

/// Credentials that the author of a pipeline can provide; all other kinds are identities of the agent.
const OWN_OF_AZURE: [&str; 2] = ["client_certificate_credential", "client_secret_credential"];

/// Options with the credentials of AWS that the author of a pipeline can provide: each of these lists is enough.
const OWN_OF_AWS: [&[&str]; 2] = [
    &["access_key_id", "secret_access_key"],
    &["credentials_file"],
];

/// Rule that a component has its own credentials, unless the policy permits those of the agent.
pub(crate) fn own_credentials<K: Pipeline>(
    context: &RuleContext<'_, K>,
    diagnostics: &mut Diagnostics,
) {
    let namespace = context.object.namespace().unwrap_or_default();
    if policy::may_use_agent_identity(context.settings, namespace) {
        return;
    }
    each(context, |component, path, policy| {
        let kind = component.kind().unwrap_or_default();
        let connects = component.family != ComponentKind::Transform;
        if !connects || policy.agent_identity.contains(kind) {
            return;
        }
        let Some((option, own)) = agent_credentials(component, kind) else {
            return;
        };
        let detail = format!(
            "a tenant's component must have its own credentials ({own}): it would use the identity of the agent, which is that of all tenants; an administrator can permit it to the namespace or for this type in the policy"
        );
        diagnostics.push(FieldError::required(path.child(option), detail));
    });
}

/// Returns the option in which a component lacks credentials of its own, and those that it can have.
fn agent_credentials(
    component: &Component<'_>,
    kind: &str,
) -> Option<(&'static str, &'static str)> {
    let auth = component.option("auth").unwrap_or(&Value::Null);
    let is_of_aws = kind.starts_with("aws_") || auth["strategy"] == "aws";
    if is_of_aws {
        // Some components have them one level deeper.
        let has_own = [auth, &auth["auth"]].into_iter().any(|auth| {
            let mut lists = OWN_OF_AWS.iter();
            lists.any(|names| names.iter().all(|name| auth[*name].is_string()))
        });
        let own = "`access_key_id` and `secret_access_key`, or `credentials_file`";
        return (!has_own).then_some(("auth", own));
    }
    let has = |option: &str| component.option(option).is_some();
    if kind.starts_with("gcp_") {
        let is_anonymous = component.option("skip_authentication") == Some(&Value::Bool(true));
        let has_own = has("api_key") || has("credentials_path") || is_anonymous;
        return (!has_own).then_some(("credentials_path", "`api_key` or `credentials_path`"));
    }
    if kind == "azure_blob" && component.family == ComponentKind::Sink {
        let has_own = has("connection_string") || has("auth");
        return (!has_own).then_some(("auth", "`connection_string` or `auth`"));
    }
    None
}

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn components_of_clouds_have_their_own_credentials() {
        let keys = json!({"access_key_id": "a", "secret_access_key": "SECRET[s.k]"});
        for (kind, options, is_own) in [
            ("aws_s3", json!({}), false),
            ("aws_s3", json!({"auth": keys}), true),
            ("aws_s3", json!({"auth": {"access_key_id": "a"}}), false),
            ("aws_s3", json!({"auth": {"assume_role": "r"}}), false),
            ("aws_s3", json!({"auth": {"credentials_file": "/f"}}), true),
            ("elasticsearch", json!({"auth": {"strategy": "aws"}}), false),
            (
                "elasticsearch",
                json!({"auth": {"strategy": "basic"}}),
                true,
            ),
            (
                "http",
                json!({"auth": {"strategy": "aws", "auth": {"assume_role": "r"}}}),
                false,
            ),
            (
                "http",
                json!({"auth": {"strategy": "aws", "auth": keys}}),
                true,
            ),
            ("http", json!({}), true),
            ("gcp_cloud_storage", json!({}), false),
            ("gcp_cloud_storage", json!({"credentials_path": "/f"}), true),
            ("gcp_pubsub", json!({"skip_authentication": true}), true),
            ("azure_blob", json!({"account_name": "a"}), false),
            ("azure_blob", json!({"connection_string": "c"}), true),
        ] {
            let component = Component {
                block: ComponentKind::Sink.block(),
                family: ComponentKind::Sink,
                id: "out",
                value: &options,
            };
            let found = agent_credentials(&component, kind);
            assert_eq!(found.is_none(), is_own, "{kind} {options}");
        }
    }
}
