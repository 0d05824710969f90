//! Check of the annotations that choose a region and a role, at admission. Unlike the rules, it knows the Namespace.
//!
//! The controller checks the same before each reconciliation, so that nothing depends on the webhook.

use kube::Client;
use lockstep_cloud_database_api::{REGION, ROLE_ARN};
use serde_json::Value;

use crate::aws::access::{Access, AccessRules, AssumedRole, NamespaceAccess};
use crate::aws::namespaces;
use crate::aws::rds_clients::RdsClients;

/// Error of an annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessError {
    /// Id, as that of a rule.
    pub rule: &'static str,
    /// Message for people.
    pub message: String,
}

/// Check of the annotations of objects.
pub struct AccessCheck {
    client: Client,
    /// Region of the controller.
    region: Option<String>,
    rules: AccessRules,
    watches_namespaces: bool,
}

impl AccessCheck {
    /// Creates a check that reads Namespaces with `client`, unless the controller has permissions in some namespaces only.
    pub fn new(client: Client, clients: &RdsClients, watches_namespaces: bool) -> Self {
        Self {
            client,
            region: clients.region(),
            rules: clients.access_rules().clone(),
            watches_namespaces,
        }
    }

    /// Returns what an object that is created, or that replaces another one, must not choose.
    ///
    /// # Errors
    ///
    /// The Namespace cannot be read.
    pub async fn check(
        &self,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Option<AccessError>, String> {
        let namespace = if self.watches_namespaces {
            let name = object["metadata"]["namespace"].as_str().unwrap_or_default();
            namespaces::read(&self.client, name).await?
        } else {
            NamespaceAccess::default()
        };
        Ok(error(
            object,
            old,
            &namespace,
            self.region.as_deref(),
            &self.rules,
        ))
    }
}

/// Returns the error of an object, if it has one that its update introduces.
fn error(
    object: &Value,
    old: Option<&Value>,
    namespace: &NamespaceAccess,
    own_region: Option<&str>,
    rules: &AccessRules,
) -> Option<AccessError> {
    let annotations = |object: &Value| {
        [REGION, ROLE_ARN].map(|name| object["metadata"]["annotations"][name].clone())
    };
    if old.is_some_and(|old| annotations(old) == annotations(object)) {
        return None;
    }
    match namespace.for_object(object, rules) {
        Err(error) => Some(AccessError {
            rule: match error.reason() {
                "RegionNotAllowed" => "region-not-allowed",
                "RoleNotAllowed" => "role-not-allowed",
                "ExternalIdNotAllowed" => "external-id-not-allowed",
                _ => "invalid-annotation",
            },
            message: error.to_string(),
        }),
        Ok(access) => elsewhere(object, &access, own_region),
    }
}

/// Returns the error of an object whose instance is in another region or account.
fn elsewhere(object: &Value, access: &Access, own_region: Option<&str>) -> Option<AccessError> {
    let recorded = |field: &str| object["status"][field].as_str();
    let region = access.region.as_deref().or(own_region);
    if let (Some(recorded), Some(region)) = (recorded("region"), region)
        && recorded != region
    {
        return Some(AccessError {
            rule: "region-immutable",
            message: format!(
                "the instance is in the region {recorded}, and cannot be moved to {region}; keep the annotation {REGION}={recorded}"
            ),
        });
    }
    let account = access.role.as_ref().and_then(AssumedRole::account_id);
    if let (Some(recorded), Some(account)) = (recorded("accountId"), account)
        && recorded != account
    {
        return Some(AccessError {
            rule: "account-immutable",
            message: format!(
                "the instance is in the account {recorded}, and cannot be moved to {account}; choose a role of {recorded} in the annotation {ROLE_ARN}"
            ),
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use lockstep_cloud_database_api::{ALLOWED_REGIONS, ALLOWED_ROLE_ARNS};

    use super::*;

    const TEAM: &str = "arn:aws:iam::111111111111:role/team";
    const OTHER: &str = "arn:aws:iam::222222222222:role/other";

    fn rule(annotations: Value, old: Option<Value>, status: &Value) -> Option<&'static str> {
        let allowed = format!("{TEAM},{OTHER}");
        let namespace = json!({"metadata": {"name": "shop", "uid": "u1", "annotations": {
            ALLOWED_ROLE_ARNS: allowed, REGION: "us-east-1", ALLOWED_REGIONS: "eu-west-1",
        }}});
        let object =
            |annotations| json!({"metadata": {"annotations": annotations}, "status": status});
        let old = old.map(object);
        let namespace = NamespaceAccess::of(&namespace);
        let error = error(
            &object(annotations),
            old.as_ref(),
            &namespace,
            Some("eu-central-1"),
            &AccessRules::default(),
        );
        error.map(|error| error.rule)
    }

    #[test]
    fn annotations_are_checked_with_those_of_the_namespace() {
        let new = |annotations| rule(annotations, None, &json!(null));
        assert_eq!(new(json!({})), None);
        assert_eq!(new(json!({REGION: "eu-west-1", ROLE_ARN: TEAM})), None);
        assert_eq!(new(json!({REGION: "moon"})), Some("invalid-annotation"));
        assert_eq!(
            new(json!({REGION: "eu-west-2"})),
            Some("region-not-allowed")
        );
        let unknown = "arn:aws:iam::333333333333:role/unknown";
        assert_eq!(new(json!({ROLE_ARN: unknown})), Some("role-not-allowed"));
        // What was stored before does not deny other changes.
        let same = json!({ROLE_ARN: unknown});
        assert_eq!(rule(same.clone(), Some(same), &json!(null)), None);
    }

    #[test]
    fn an_instance_is_not_moved() {
        let status = || json!({"region": "us-east-1", "accountId": "111111111111"});
        let from = |old: Value, new: Value| rule(new, Some(old), &status());
        let region = |region: &str| json!({REGION: region});
        assert_eq!(
            from(region("us-east-1"), region("eu-west-1")),
            Some("region-immutable")
        );
        // The Namespace has the same region.
        assert_eq!(from(region("us-east-1"), json!({})), None);
        assert_eq!(from(json!({}), region("us-east-1")), None);
        let role = |role: &str| json!({ROLE_ARN: role});
        assert_eq!(from(json!({}), role(TEAM)), None);
        assert_eq!(from(json!({}), role(OTHER)), Some("account-immutable"));
    }
}
