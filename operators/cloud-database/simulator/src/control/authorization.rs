//! IAM policies of callers.

use std::collections::BTreeMap;

use glob::Pattern;
use serde_json::{Value, json};

use crate::fields::Fields;
use crate::state::place::Place;

/// Parameters that name resources of RDS, with the type of the resource.
const NAMES: &[(&str, &str)] = &[
    ("DBInstanceIdentifier", "db"),
    ("DBParameterGroupName", "pg"),
    ("DBSnapshotIdentifier", "snapshot"),
    ("DBSubnetGroupName", "subgrp"),
    ("OptionGroupName", "og"),
    ("SourceDBInstanceIdentifier", "db"),
    ("TargetDBInstanceIdentifier", "db"),
];

/// Identity-based policy, of which only statements that allow something are supported.
#[derive(Clone, Debug)]
pub(crate) struct Policy(Vec<Statement>);

#[derive(Clone, Debug)]
struct Statement {
    actions: Vec<Pattern>,
    resources: Vec<Pattern>,
    conditions: Vec<TagCondition>,
}

/// Tags of a resource.
pub(crate) type Tags = BTreeMap<String, String>;

/// Condition that a tag of the resource has a value, if the resource has the tag.
#[derive(Clone, Debug)]
struct TagCondition {
    key: String,
    value: String,
}

impl TagCondition {
    /// Parses the conditions of a statement.
    ///
    /// # Panics
    ///
    /// There is one with another operator or key.
    fn parse_all(conditions: &Value) -> Vec<Self> {
        let mut parsed = Vec::new();
        for (operator, keys) in conditions.as_object().into_iter().flatten() {
            // What RDS does for a call is done by a service of AWS.
            if conditions == &json!({"Bool": {"kms:GrantIsForAWSResource": "true"}})
                || operator == "StringEquals" && keys.get("iam:PassedToService").is_some()
            {
                continue;
            }
            assert_eq!(operator, "StringEqualsIfExists", "{conditions}");
            for (name, value) in keys.as_object().expect("keys") {
                let prefixes = ["aws:ResourceTag/", "rds:db-tag/"];
                let mut keys = prefixes
                    .iter()
                    .filter_map(|prefix| name.strip_prefix(prefix));
                parsed.push(Self {
                    key: keys.next().expect("a tag of the resource").to_owned(),
                    value: value.as_str().expect("a text").to_owned(),
                });
            }
        }
        parsed
    }

    fn holds(&self, tags: &Tags) -> bool {
        tags.get(&self.key).is_none_or(|value| *value == self.value)
    }
}

impl Policy {
    /// Parses a JSON document of IAM.
    ///
    /// # Panics
    ///
    /// The document has a part that is not supported.
    pub(crate) fn parse(document: &Value) -> Self {
        let statements = document["Statement"].as_array().expect("statements");
        let statements = statements.iter().map(|statement| {
            assert_eq!(statement["Effect"], "Allow", "{statement}");
            Statement {
                actions: patterns(&statement["Action"]),
                resources: patterns(&statement["Resource"]),
                conditions: TagCondition::parse_all(&statement["Condition"]),
            }
        });
        Self(statements.collect())
    }

    /// Returns true if the policy allows an action on a resource with tags.
    pub(crate) fn allows(&self, action: &str, resource: &str, tags: &Tags) -> bool {
        self.0.iter().any(|statement| {
            let matches = |patterns: &[Pattern], text| patterns.iter().any(|it| it.matches(text));
            matches(&statement.actions, action)
                && matches(&statement.resources, resource)
                && statement
                    .conditions
                    .iter()
                    .all(|condition| condition.holds(tags))
        })
    }
}

fn patterns(texts: &Value) -> Vec<Pattern> {
    let texts = texts.as_array().expect("a list").iter();
    let texts = texts.map(|text| text.as_str().expect("a text"));
    texts
        .map(|text| Pattern::new(text).expect("a pattern"))
        .collect()
}

/// Operations without a resource in IAM.
const OFFERS: [&str; 2] = [
    "DescribeDBEngineVersions",
    "DescribeOrderableDBInstanceOptions",
];

/// Returns the actions that a call needs, each with a resource.
pub(crate) fn needed(operation: &str, parameters: &Fields, place: &Place) -> Vec<(String, String)> {
    if operation == "GetCallerIdentity" {
        return Vec::new();
    }
    if OFFERS.contains(&operation) {
        return vec![(format!("rds:{operation}"), "*".to_owned())];
    }
    if operation == "AssumeRole" {
        let role = parameters.text("RoleArn").to_owned();
        return vec![("sts:AssumeRole".to_owned(), role)];
    }
    let mut needed = on_resources(operation, parameters, place);
    needed.extend(on_keys(parameters, place));
    if parameters.flag("ManageMasterUserPassword") {
        let Place { account, name } = place;
        let secret = format!("arn:aws:secretsmanager:{name}:{account}:secret:rds!db-1");
        let actions = ["secretsmanager:CreateSecret", "secretsmanager:TagResource"];
        needed.extend(actions.map(|action| (action.to_owned(), secret.clone())));
    }
    if let Some(role) = parameters.given_text("MonitoringRoleArn") {
        needed.push(("iam:PassRole".to_owned(), role.to_owned()));
    }
    needed
}

/// Returns the actions on resources of RDS.
fn on_resources(operation: &str, parameters: &Fields, place: &Place) -> Vec<(String, String)> {
    let of = |type_: &str, name: &str| {
        if name.starts_with("arn:") {
            return name.to_owned();
        }
        place.arn(type_, name)
    };
    let given = |parameter: &str| parameters.given_text(parameter);
    let action = format!("rds:{operation}");
    let named = NAMES
        .iter()
        .filter_map(|(parameter, type_)| Some(of(type_, given(parameter)?)));
    let named = named.chain(given("ResourceName").map(String::from));
    let mut needed: Vec<_> = named.map(|resource| (action.clone(), resource)).collect();
    if needed.is_empty() {
        needed.push((action.clone(), of("db", "*")));
    }
    if operation == "DescribeDBInstanceAutomatedBackups" {
        needed.push((action, of("auto-backup", "*")));
    }
    let instance = given("DBInstanceIdentifier").or_else(|| given("TargetDBInstanceIdentifier"));
    let instance = of("db", instance.unwrap_or("*"));
    // Tags at creation need the permission to add tags.
    if parameters.has("Tags") && operation != "AddTagsToResource" {
        needed.push(("rds:AddTagsToResource".to_owned(), instance.clone()));
    }
    if let Some(snapshot) = given("FinalDBSnapshotIdentifier") {
        let snapshot = of("snapshot", snapshot);
        needed.extend([instance, snapshot].map(|it| ("rds:CreateDBSnapshot".to_owned(), it)));
    }
    needed
}

/// Returns the actions on KMS keys.
fn on_keys(parameters: &Fields, place: &Place) -> Vec<(String, String)> {
    const OF_STORAGE: &[&str] = &["kms:CreateGrant", "kms:DescribeKey"];
    const OF_SECRET: &[&str] = &[
        "kms:CreateGrant",
        "kms:Decrypt",
        "kms:DescribeKey",
        "kms:GenerateDataKey",
    ];
    let Place { account, name } = place;
    let mut needed = Vec::new();
    for (parameter, actions) in [
        ("KmsKeyId", OF_STORAGE),
        ("PerformanceInsightsKMSKeyId", OF_STORAGE),
        ("MasterUserSecretKmsKeyId", OF_SECRET),
    ] {
        let Some(key) = parameters.given_text(parameter) else {
            continue;
        };
        let key = if key.starts_with("arn:") {
            key.to_owned()
        } else {
            format!("arn:aws:kms:{name}:{account}:key/{key}")
        };
        let actions = actions.iter();
        needed.extend(actions.map(|action| ((*action).to_owned(), key.clone())));
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_excludes_resources_whose_tag_has_another_value() {
        let policy = Policy::parse(&json!({"Statement": [{
            "Effect": "Allow", "Action": ["rds:*"], "Resource": ["*:db:cdb-*"],
            "Condition": {"StringEqualsIfExists": {"aws:ResourceTag/cluster": "blue", "rds:db-tag/cluster": "blue"}},
        }]}));
        let allows = |resource: &str, tags: &[(&str, &str)]| {
            let tags = tags.iter();
            let tags = tags.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            policy.allows("rds:CreateDBInstanceReadReplica", resource, &tags.collect())
        };
        let own = "arn:aws:rds:eu-central-1:123456789012:db:cdb-1";
        assert!(allows(own, &[]));
        assert!(allows(own, &[("team", "shop")]));
        assert!(allows(own, &[("cluster", "blue")]));
        assert!(!allows(own, &[("cluster", "green")]));
        let other = "arn:aws:rds:eu-central-1:123456789012:db:orders";
        assert!(!allows(other, &[("cluster", "blue")]));
    }
}
