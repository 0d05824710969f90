//! IAM policy of the controller: the calls that it makes, each on the resources that it makes them for.
//!
//! The simulator of RDS rejects in the tests what this policy does not allow.

use serde_json::{Value, json};

/// Beginning of the identifiers of instances, and of their snapshots.
const OWN: &str = "cdb-*";

/// Place and keys that a policy is limited to. `*` stands for all.
#[derive(Clone, Debug)]
pub struct IamPolicyScope {
    /// Partition, such as `aws` or `aws-cn`.
    pub partition: String,
    /// Region.
    pub region: String,
    /// ID of the account.
    pub account: String,
    /// ARNs of the KMS keys in `spec.encryption.kmsKey`.
    pub kms_keys: Vec<String>,
}

/// Statement of the policy.
struct Statement {
    id: &'static str,
    actions: &'static [&'static str],
    /// Types of resources of RDS, each with a pattern of the names.
    resources: &'static [(&'static str, &'static str)],
}

const STATEMENTS: &[Statement] = &[
    Statement {
        id: "Read",
        actions: &["rds:DescribeDBInstances", "rds:DescribeDBSnapshots"],
        resources: &[("db", "*"), ("snapshot", "*")],
    },
    Statement {
        id: "ManageInstances",
        actions: &[
            "rds:AddTagsToResource",
            "rds:CreateDBInstance",
            "rds:DeleteDBInstance",
            "rds:ModifyDBInstance",
            "rds:RemoveTagsFromResource",
        ],
        resources: &[("db", OWN)],
    },
    // RDS checks these calls for the groups of an instance, too.
    Statement {
        id: "UseGroups",
        actions: &["rds:CreateDBInstance", "rds:ModifyDBInstance"],
        resources: &[("og", "*"), ("pg", "*"), ("subgrp", "*")],
    },
    Statement {
        id: "TakeFinalSnapshots",
        actions: &["rds:CreateDBSnapshot"],
        resources: &[("db", OWN), ("snapshot", "cdb-*-final*")],
    },
    Statement {
        id: "TagFinalSnapshots",
        actions: &["rds:AddTagsToResource"],
        resources: &[("snapshot", "cdb-*-final*")],
    },
];

/// Returns the policy as a JSON document of IAM.
#[must_use]
pub fn iam_policy(scope: &IamPolicyScope) -> Value {
    let IamPolicyScope {
        partition,
        region,
        account,
        kms_keys,
    } = scope;
    let statements = STATEMENTS.iter().map(|statement| {
        let resources = statement.resources.iter();
        let resources = resources
            .map(|(type_, name)| format!("arn:{partition}:rds:{region}:{account}:{type_}:{name}"));
        allow(
            statement.id,
            statement.actions,
            &resources.collect::<Vec<_>>(),
        )
    });
    let keys = allow("UseKeys", &["kms:CreateGrant", "kms:DescribeKey"], kms_keys);
    let keys = Some(keys).filter(|_| !kms_keys.is_empty());
    let statements: Vec<_> = statements.chain(keys).collect();
    json!({"Version": "2012-10-17", "Statement": statements})
}

fn allow(id: &str, actions: &[&str], resources: &[String]) -> Value {
    json!({"Sid": id, "Effect": "Allow", "Action": actions, "Resource": resources})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_limited_to_a_place_and_names_only_keys_that_are_given() {
        let scope = |kms_keys| IamPolicyScope {
            partition: "aws".to_owned(),
            region: "eu-central-1".to_owned(),
            account: "123456789012".to_owned(),
            kms_keys,
        };
        let policy = iam_policy(&scope(Vec::new()));
        assert!(!policy.to_string().contains("kms:"));
        let instances = &policy["Statement"][1]["Resource"];
        assert_eq!(
            *instances,
            json!(["arn:aws:rds:eu-central-1:123456789012:db:cdb-*"])
        );
        let key = "arn:aws:kms:eu-central-1:123456789012:key/a".to_owned();
        let policy = iam_policy(&scope(vec![key.clone()]));
        let keys = &policy["Statement"].as_array().expect("statements")[5];
        assert_eq!(keys["Resource"], json!([key]));
    }
}
