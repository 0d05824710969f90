//! IAM policies of callers.

use glob::Pattern;
use serde_json::Value;

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
            assert!(statement["Condition"].is_null(), "{statement}");
            Statement {
                actions: patterns(&statement["Action"]),
                resources: patterns(&statement["Resource"]),
            }
        });
        Self(statements.collect())
    }

    /// Returns true if the policy allows an action on a resource.
    pub(crate) fn allows(&self, action: &str, resource: &str) -> bool {
        self.0.iter().any(|statement| {
            let matches = |patterns: &[Pattern], text| patterns.iter().any(|it| it.matches(text));
            matches(&statement.actions, action) && matches(&statement.resources, resource)
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
    let Place { account, name } = place;
    let of = |type_: &str, name: &str, region: &str| {
        if name.starts_with("arn:") {
            return name.to_owned();
        }
        format!("arn:aws:rds:{region}:{account}:{type_}:{name}")
    };
    let given = |parameter: &str| parameters.given_text(parameter);
    let action = format!("rds:{operation}");
    let mut needed = Vec::new();
    for (parameter, type_) in NAMES {
        if let Some(resource) = given(parameter) {
            needed.push((action.clone(), of(type_, resource, name)));
        }
    }
    if let Some(resource) = given("ResourceName") {
        needed.push((action.clone(), resource.to_owned()));
    }
    if needed.is_empty() {
        needed.push((action.clone(), of("db", "*", name)));
    }
    if operation == "DescribeDBInstanceAutomatedBackups" {
        needed.push((action, of("auto-backup", "*", name)));
    }
    let instance = given("DBInstanceIdentifier").or_else(|| given("TargetDBInstanceIdentifier"));
    let instance = of("db", instance.unwrap_or("*"), name);
    // Tags at creation need the permission to add tags.
    if parameters.has("Tags") && operation != "AddTagsToResource" {
        needed.push(("rds:AddTagsToResource".to_owned(), instance.clone()));
    }
    if let Some(snapshot) = given("FinalDBSnapshotIdentifier") {
        let snapshot = of("snapshot", snapshot, name);
        needed.extend([instance, snapshot].map(|it| ("rds:CreateDBSnapshot".to_owned(), it)));
    }
    let mut uses_key = |parameter: &str, actions: &[&str]| {
        if let Some(key) = given(parameter) {
            let key = if key.starts_with("arn:") {
                key.to_owned()
            } else {
                format!("arn:aws:kms:{name}:{account}:key/{key}")
            };
            needed.extend(
                actions
                    .iter()
                    .map(|action| ((*action).to_owned(), key.clone())),
            );
        }
    };
    let of_storage = ["kms:CreateGrant", "kms:DescribeKey"];
    uses_key("KmsKeyId", &of_storage);
    uses_key("PerformanceInsightsKMSKeyId", &of_storage);
    let of_secret = [
        "kms:CreateGrant",
        "kms:Decrypt",
        "kms:DescribeKey",
        "kms:GenerateDataKey",
    ];
    uses_key("MasterUserSecretKmsKeyId", &of_secret);
    if parameters.flag("ManageMasterUserPassword") {
        let secret = format!("arn:aws:secretsmanager:{name}:{account}:secret:rds!db-1");
        let actions = ["secretsmanager:CreateSecret", "secretsmanager:TagResource"];
        needed.extend(actions.map(|action| (action.to_owned(), secret.clone())));
    }
    if let Some(role) = given("MonitoringRoleArn") {
        needed.push(("iam:PassRole".to_owned(), role.to_owned()));
    }
    needed
}
