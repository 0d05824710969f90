//! Region and IAM role with which the instance of an object is managed, as annotations of the object and its Namespace choose
//! them.
//!
//! A user who may write objects and no Namespaces can choose a role only if the Namespace lists it: otherwise each user of
//! the cluster could use the roles of all others. The external ID, which the trust policy of a role demands, is the UID of
//! the Namespace, or one that [no other Namespace](crate::aws::external_ids) has, so that a Namespace cannot even use a role that was
//! not made for it. Regions, in which objects use the
//! credentials of the controller, have to be allowed likewise.

use std::sync::Arc;

use lockstep_cloud_database_api::{
    ALLOWED_REGIONS, ALLOWED_ROLE_ARNS, EXTERNAL_ID, EXTERNAL_ID_PREFIX, REGION, ROLE_ARN,
    is_external_id, is_region, is_role_arn,
};
use lockstep_controller::ReconcileError;
use serde_json::Value;

/// Maximum length of the name of a session.
const MAX_SESSION_NAME: usize = 64;

/// Region and role. The default has those of the controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    pub(crate) region: Option<String>,
    pub(crate) role: Option<AssumedRole>,
}

/// Role that the controller assumes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AssumedRole {
    pub(crate) arn: String,
    pub(crate) external_id: String,
    /// Name of the session, by which CloudTrail shows the Namespace.
    pub(crate) session_name: String,
}

impl AssumedRole {
    /// Returns the ID of the account of the role.
    pub(crate) fn account_id(&self) -> Option<&str> {
        self.arn.split(':').nth(4)
    }
}

/// Permissions that the controller gives to the Namespaces of all objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessRules {
    /// Regions that objects may choose.
    regions: Arc<[String]>,
    /// If true, an annotation of a Namespace sets the external ID of its roles.
    pub(crate) allows_external_ids: bool,
}

impl AccessRules {
    /// Returns rules with regions that objects may choose.
    pub(crate) fn with_regions(self, regions: Vec<String>) -> Self {
        Self {
            regions: regions.into(),
            ..self
        }
    }
}

/// Annotations of a Namespace about the access of its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamespaceAccess {
    name: String,
    uid: String,
    region: Option<String>,
    /// Regions that objects may choose.
    allowed_regions: Vec<String>,
    role: Option<String>,
    /// Roles that objects may choose.
    allowed_roles: Vec<String>,
    /// External ID of the roles, instead of the UID.
    external_id: Option<String>,
}

impl NamespaceAccess {
    /// Reads the metadata of a Namespace.
    pub(crate) fn of(namespace: &Value) -> Self {
        let text = |field: &str| namespace["metadata"][field].as_str().unwrap_or_default();
        Self {
            name: text("name").to_owned(),
            uid: text("uid").to_owned(),
            region: annotation(namespace, REGION),
            role: annotation(namespace, ROLE_ARN),
            allowed_regions: list(namespace, ALLOWED_REGIONS),
            allowed_roles: list(namespace, ALLOWED_ROLE_ARNS),
            external_id: annotation(namespace, EXTERNAL_ID),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn uid(&self) -> &str {
        &self.uid
    }

    /// Returns the external ID that an annotation sets.
    pub(crate) fn own_external_id(&self) -> Option<&str> {
        self.external_id.as_deref()
    }

    /// Returns the access of an object in the Namespace.
    ///
    /// # Errors
    ///
    /// An annotation is invalid, or the region or the role is not allowed.
    pub(crate) fn for_object(
        &self,
        object: &Value,
        rules: &AccessRules,
    ) -> Result<Access, ReconcileError> {
        let own_region = annotation(object, REGION);
        let region = own_region.as_ref().or(self.region.as_ref()).cloned();
        if let Some(region) = region.as_deref().filter(|it| !is_region(it)) {
            return Err(invalid(REGION, region, "the name of an AWS region"));
        }
        if let Some(region) = &own_region
            && self.region.as_ref() != Some(region)
            && !self.allowed_regions.contains(region)
            && !rules.regions.contains(region)
        {
            return Err(ReconcileError::Permanent {
                reason: "RegionNotAllowed",
                message: format!(
                    "the Namespace does not allow its objects to choose the region '{region}'; AWS was not called. An administrator can list it in the annotation {ALLOWED_REGIONS} of the Namespace, or for all Namespaces in the argument --rds-regions of the controller"
                ),
            });
        }
        let own_role = annotation(object, ROLE_ARN);
        let role = own_role.as_ref().or(self.role.as_ref());
        if let Some(role) = role.filter(|it| !is_role_arn(it)) {
            return Err(invalid(ROLE_ARN, role, "the ARN of an IAM role"));
        }
        if let Some(role) = &own_role
            && self.role.as_ref() != Some(role)
            && !self.allowed_roles.contains(role)
        {
            return Err(ReconcileError::Permanent {
                reason: "RoleNotAllowed",
                message: format!(
                    "the Namespace does not allow its objects to use the role '{role}'; AWS was not called. An administrator can list it in the annotation {ALLOWED_ROLE_ARNS} of the Namespace"
                ),
            });
        }
        let Some(arn) = role.cloned() else {
            return Ok(Access { region, role: None });
        };
        let role = Some(AssumedRole {
            arn,
            external_id: self.external_id(rules)?,
            session_name: session_name(&self.name),
        });
        Ok(Access { region, role })
    }

    /// Returns the external ID of the roles.
    fn external_id(&self, rules: &AccessRules) -> Result<String, ReconcileError> {
        let Some(own) = self.own_external_id() else {
            return Ok(self.uid.clone());
        };
        if !rules.allows_external_ids {
            return Err(ReconcileError::Permanent {
                reason: "ExternalIdNotAllowed",
                message: format!(
                    "the controller does not use the annotation {EXTERNAL_ID} of the Namespace; AWS was not called. Remove it, so that the external ID is the UID of the Namespace, or set the argument --external-ids=annotation of the controller"
                ),
            });
        }
        if is_external_id(own) {
            return Ok(own.to_owned());
        }
        let expected = format!(
            "'{EXTERNAL_ID_PREFIX}', which no UID begins with, and up to 119 letters, digits, '.', '_' and '-'"
        );
        Err(invalid(EXTERNAL_ID, own, &expected))
    }
}

/// Returns the value of an annotation. An empty one counts as missing.
fn annotation(object: &Value, name: &str) -> Option<String> {
    let value = object["metadata"]["annotations"][name].as_str()?.trim();
    Some(value.to_owned()).filter(|value| !value.is_empty())
}

fn invalid(name: &str, value: &str, expected: &str) -> ReconcileError {
    ReconcileError::Permanent {
        reason: "InvalidAnnotation",
        message: format!(
            "the annotation {name} of the object or its Namespace is '{value}', and must be {expected}; AWS was not called"
        ),
    }
}

/// Returns the elements of an annotation.
fn list(object: &Value, name: &str) -> Vec<String> {
    let value = object["metadata"]["annotations"][name].as_str();
    let value = value.unwrap_or_default();
    let elements = value.split(',').map(str::trim);
    let elements = elements.filter(|element| !element.is_empty());
    elements.map(String::from).collect()
}

fn session_name(namespace: &str) -> String {
    let name = format!("lockstep-{namespace}");
    name.chars().take(MAX_SESSION_NAME).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEAM: &str = "arn:aws:iam::111111111111:role/team";
    const OTHER: &str = "arn:aws:iam::222222222222:role/other";

    fn annotated(annotations: &Value) -> Value {
        json!({"metadata": {"name": "shop", "uid": "u1", "annotations": annotations}})
    }

    fn access(namespace: &Value, object: &Value) -> Result<(String, String), &'static str> {
        access_in(namespace, object, &AccessRules::default())
    }

    fn access_in(
        namespace: &Value,
        object: &Value,
        rules: &AccessRules,
    ) -> Result<(String, String), &'static str> {
        let namespace = NamespaceAccess::of(&annotated(namespace));
        match namespace.for_object(&annotated(object), rules) {
            Ok(access) => Ok((
                access.region.unwrap_or_default(),
                access.role.map(|it| it.arn).unwrap_or_default(),
            )),
            Err(error) => Err(error.reason()),
        }
    }

    fn pair(region: &str, role: &str) -> (String, String) {
        (region.to_owned(), role.to_owned())
    }

    #[test]
    fn annotations_of_the_object_take_precedence_over_those_of_its_namespace() {
        let none = json!(null);
        assert_eq!(access(&none, &none), Ok(pair("", "")));
        let namespace = json!({REGION: "us-east-1", ROLE_ARN: TEAM});
        assert_eq!(access(&namespace, &none), Ok(pair("us-east-1", TEAM)));
        let region = json!({REGION: "us-west-1"});
        let listed = json!({REGION: "us-east-1", ROLE_ARN: TEAM, ALLOWED_REGIONS: "us-west-1"});
        assert_eq!(access(&listed, &region), Ok(pair("us-west-1", TEAM)));
        assert_eq!(
            access(&namespace, &json!({REGION: " "})),
            Ok(pair("us-east-1", TEAM))
        );
    }

    #[test]
    fn an_object_uses_only_roles_that_its_namespace_lists() {
        let wants = |role: &str| json!({ROLE_ARN: role});
        let allowed = json!({ALLOWED_ROLE_ARNS: format!("{TEAM}, arn:aws:iam::1:role/x")});
        assert_eq!(access(&allowed, &wants(TEAM)), Ok(pair("", TEAM)));
        assert_eq!(access(&allowed, &json!(null)), Ok(pair("", "")));
        // That of the Namespace need not be listed.
        assert_eq!(access(&wants(TEAM), &wants(TEAM)), Ok(pair("", TEAM)));
        for namespace in [json!(null), allowed, wants(TEAM)] {
            let denied = access(&namespace, &wants(OTHER));
            assert_eq!(denied, Err("RoleNotAllowed"), "{namespace}");
        }
        let prefix = json!({ALLOWED_ROLE_ARNS: format!("{OTHER}-more")});
        assert_eq!(access(&prefix, &wants(OTHER)), Err("RoleNotAllowed"));
    }

    #[test]
    fn an_object_chooses_only_regions_that_are_allowed() {
        let wants = |region: &str| json!({REGION: region});
        let none = json!(null);
        let namespace = json!({REGION: "us-east-1", ALLOWED_REGIONS: "eu-west-1, eu-west-2"});
        for region in ["us-east-1", "eu-west-1", "eu-west-2"] {
            let allowed = access(&namespace, &wants(region));
            assert_eq!(allowed, Ok(pair(region, "")));
        }
        assert_eq!(access(&namespace, &none), Ok(pair("us-east-1", "")));
        for namespace in [&namespace, &none] {
            let denied = access(namespace, &wants("sa-east-1"));
            assert_eq!(denied, Err("RegionNotAllowed"));
        }
        let regions = AccessRules::default().with_regions(vec!["eu-west-1".to_owned()]);
        let of_all = |namespace: &Value, object: &Value| access_in(namespace, object, &regions);
        assert_eq!(of_all(&none, &none), Ok(pair("", "")));
        let allowed = of_all(&none, &wants("eu-west-1"));
        assert_eq!(allowed, Ok(pair("eu-west-1", "")));
        let denied = of_all(&none, &wants("eu-west-2"));
        assert_eq!(denied, Err("RegionNotAllowed"));
    }

    #[test]
    fn what_would_become_part_of_a_host_name_must_be_a_region() {
        for region in [
            "eu-central-1.example.com/",
            "EU-CENTRAL-1",
            "eu",
            "a b-1",
            "eu-central-",
        ] {
            let region = json!({REGION: region});
            assert_eq!(
                access(&json!(null), &region),
                Err("InvalidAnnotation"),
                "{region}"
            );
            assert_eq!(
                access(&region, &json!(null)),
                Err("InvalidAnnotation"),
                "{region}"
            );
        }
        let role = json!({ROLE_ARN: "team"});
        assert_eq!(access(&role, &json!(null)), Err("InvalidAnnotation"));
    }

    #[test]
    fn the_external_id_is_the_uid_of_the_namespace() {
        let mut namespace = annotated(&json!({ROLE_ARN: TEAM}));
        namespace["metadata"]["name"] = json!("a".repeat(63));
        let access = NamespaceAccess::of(&namespace);
        let access = access.for_object(&json!({}), &AccessRules::default());
        let role = access.ok().and_then(|it| it.role).expect("a role");
        assert_eq!(role.external_id, "u1");
        assert_eq!(role.session_name.len(), MAX_SESSION_NAME);
    }

    #[test]
    fn the_external_id_of_an_annotation_has_to_be_allowed() {
        let external_id = |value: &str, allows_external_ids: bool| {
            let namespace = annotated(&json!({ROLE_ARN: TEAM, EXTERNAL_ID: value}));
            let rules = AccessRules {
                allows_external_ids,
                ..AccessRules::default()
            };
            let access = NamespaceAccess::of(&namespace).for_object(&json!({}), &rules);
            access
                .map(|access| access.role.map(|role| role.external_id).unwrap_or_default())
                .map_err(|error| error.reason())
        };
        let own = "lockstep-shop";
        assert_eq!(external_id(own, true).as_deref(), Ok(own));
        assert_eq!(external_id(own, false), Err("ExternalIdNotAllowed"));
        assert_eq!(external_id("u2", true), Err("InvalidAnnotation"));
        // Without a role, it has no effect.
        let namespace = NamespaceAccess::of(&annotated(&json!({EXTERNAL_ID: "u2"})));
        assert!(
            namespace
                .for_object(&json!({}), &AccessRules::default())
                .is_ok()
        );
    }
}
