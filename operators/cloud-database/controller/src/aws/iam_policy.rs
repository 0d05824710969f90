//! IAM policy of the controller: the calls that it makes, each on the resources that it makes them for.
//!
//! The simulator of RDS rejects in the tests what this policy does not allow.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::instance::tags::CLUSTER_TAG;

/// Beginning of the identifiers of instances, and of their snapshots.
const OWN: &str = "cdb-*";

/// Place that a policy is limited to, and the resources of others that the controller may use. `*` stands for all.
#[derive(Clone, Debug, Default)]
pub struct IamPolicyScope {
    /// Partition, such as `aws` or `aws-cn`.
    pub partition: String,
    /// Region.
    pub region: String,
    /// ID of the account.
    pub account: String,
    /// Name of the cluster, if the controller has one.
    pub cluster_name: Option<String>,
    /// Identifiers of instances that may be adopted.
    pub adopted: Vec<String>,
    /// Identifiers of snapshots that may be restored.
    pub snapshots: Vec<String>,
    /// Identifiers of instances of which earlier states may be restored.
    pub restored: Vec<String>,
    /// Identifiers of instances that may be replicated.
    pub replicated: Vec<String>,
    /// If true, RDS may keep passwords in Secrets Manager.
    pub has_managed_passwords: bool,
    /// ARNs of the roles for enhanced monitoring.
    pub monitoring_roles: Vec<String>,
    /// ARNs of the roles that Namespaces choose or allow.
    pub assumed_roles: Vec<String>,
    /// ARN of the queue with the events of RDS.
    pub events_queue: Option<String>,
    /// ARNs of the KMS keys of storage, Performance Insights and managed passwords.
    pub kms_keys: Vec<String>,
}

/// Calls that change an instance.
const CHANGES: &[&str] = &[
    "rds:AddTagsToResource",
    "rds:DeleteDBInstance",
    "rds:ModifyDBInstance",
    "rds:RemoveTagsFromResource",
];

/// Calls that read what RDS offers. IAM has no resources for them.
const OFFERS: [&str; 2] = [
    "rds:DescribeDBEngineVersions",
    "rds:DescribeOrderableDBInstanceOptions",
];

/// Types of the groups of an instance. RDS checks calls with a group for it, too.
const GROUPS: [(&str, &str); 3] = [("og", "*"), ("pg", "*"), ("subgrp", "*")];

/// Services that a role for enhanced monitoring is passed to. AWS documents the first one as the one that assumes the role, and not
/// which one each call of RDS passes it to.
const MONITORING_SERVICES: [&str; 2] = ["monitoring.rds.amazonaws.com", "rds.amazonaws.com"];

/// Partitions, by the beginnings of the names of their regions:
/// <https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/partitions.html>.
const PARTITIONS: [(&str, &str); 7] = [
    ("cn-", "aws-cn"),
    ("us-gov-", "aws-us-gov"),
    ("us-iso-", "aws-iso"),
    ("us-isob-", "aws-iso-b"),
    ("eu-isoe-", "aws-iso-e"),
    ("us-isof-", "aws-iso-f"),
    ("eusc-", "aws-eusc"),
];

/// End of the identifiers of final snapshots.
const FINAL: &str = "-final*";

/// Returns the policy as a JSON document of IAM.
#[must_use]
pub fn iam_policy(scope: &IamPolicyScope) -> Value {
    let own = [("db", OWN)];
    let own_with_groups = [own.as_slice(), &GROUPS].concat();
    let fixed = |resources: &[(&'static str, &str)]| {
        let resources = resources.iter();
        let resources = resources.map(|(type_, name)| (*type_, (*name).to_owned()));
        resources.collect::<Vec<_>>()
    };
    let snapshots: Vec<_> = std::iter::once(OWN)
        .chain(scope.adopted.iter().map(String::as_str))
        .map(|name| ("snapshot", format!("{name}{FINAL}")))
        .collect();
    let instances = [fixed(&own), others("db", &scope.adopted)].concat();
    let read = ["rds:DescribeDBInstances", "rds:DescribeDBSnapshots"];
    let mut statements = vec![
        scope.allow("Read", &read, &fixed(&[("db", "*"), ("snapshot", "*")])),
        scope.allow(
            "ReadBackups",
            &["rds:DescribeDBInstanceAutomatedBackups"],
            &fixed(&[("auto-backup", "*"), ("db", "*")]),
        ),
        statement("ReadOffers", &OFFERS, &["*".to_owned()]),
        scope.allow(
            "Create",
            &["rds:CreateDBInstance"],
            &fixed(&own_with_groups),
        ),
        scope.allow("Change", CHANGES, &instances),
        scope.allow("UseGroups", &["rds:ModifyDBInstance"], &fixed(&GROUPS)),
        scope.allow(
            "TakeFinalSnapshots",
            &["rds:CreateDBSnapshot"],
            &[instances.clone(), snapshots.clone()].concat(),
        ),
        scope.allow("TagFinalSnapshots", &["rds:AddTagsToResource"], &snapshots),
    ];
    statements.extend(scope.origins());
    if !scope.replicated.is_empty() {
        statements.push(scope.allow("Promote", &["rds:PromoteReadReplica"], &fixed(&own)));
    }
    statements.extend(scope.other_services());
    json!({"Version": "2012-10-17", "Statement": statements})
}

impl IamPolicyScope {
    /// Returns a statement for resources of RDS, each with its type and a pattern of its name.
    fn allow(&self, id: &str, actions: &[&str], resources: &[(&str, String)]) -> Value {
        let Self {
            partition,
            region,
            account,
            ..
        } = self;
        let resources = resources.iter().map(|(type_, name)| {
            if name.starts_with("arn:") {
                return name.clone();
            }
            format!("arn:{partition}:rds:{region}:{account}:{type_}:{name}")
        });
        statement(id, actions, &resources.collect::<Vec<_>>())
    }

    /// Returns the statements for instances with the data of others.
    fn origins(&self) -> Vec<Value> {
        let origins = [
            (
                "RestoreSnapshots",
                "rds:RestoreDBInstanceFromDBSnapshot",
                others("snapshot", &self.snapshots),
            ),
            (
                "RestoreInstances",
                "rds:RestoreDBInstanceToPointInTime",
                others("db", &self.restored),
            ),
            (
                "Replicate",
                "rds:CreateDBInstanceReadReplica",
                others("db", &self.replicated),
            ),
        ];
        let groups = GROUPS.map(|(type_, name)| (type_, name.to_owned()));
        let mut statements = Vec::new();
        for (id, action, sources) in origins {
            if sources.is_empty() {
                continue;
            }
            let resources = [sources.as_slice(), &groups].concat();
            statements.push(self.allow(id, &[action], &resources));
            let created = [("db", OWN.to_owned())];
            let create = self.allow(&format!("{id}To"), &[action], &created);
            statements.push(self.unless_of_other_cluster(create));
        }
        statements
    }

    /// Adds a condition to the statement for new instances, which covers other instances of that name as sources, too: those with the
    /// tag of another cluster are excluded.
    ///
    /// A new instance has no tags yet, or already those of the request, which names this cluster: AWS documents `aws:ResourceTag`
    /// also for "requests that create a resource with an attached tag"
    /// (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-resourcetag>),
    /// so that neither `Null` nor `StringEquals` would do. `rds:db-tag` is the older name of the same
    /// (<https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.IAM.SpecifyingCustomTags.html>). Both have to hold.
    fn unless_of_other_cluster(&self, statement: Value) -> Value {
        if let Some(name) = &self.cluster_name {
            let keys = ["aws:ResourceTag", "rds:db-tag"];
            let keys = keys.map(|key| (format!("{key}/{CLUSTER_TAG}"), json!(name)));
            let condition = json!({"StringEqualsIfExists": BTreeMap::from(keys)});
            return only_if(statement, condition);
        }
        statement
    }

    /// Returns the statements for other services, which RDS uses with the permissions of its caller.
    fn other_services(&self) -> Vec<Value> {
        let Self {
            partition,
            region,
            account,
            ..
        } = self;
        let mut statements = Vec::new();
        if let Some(queue) = &self.events_queue {
            let actions = ["sqs:DeleteMessage", "sqs:ReceiveMessage"];
            statements.push(statement(
                "ReceiveEvents",
                &actions,
                std::slice::from_ref(queue),
            ));
        }
        if !self.assumed_roles.is_empty() {
            let roles = &self.assumed_roles;
            statements.push(statement("AssumeRoles", &["sts:AssumeRole"], roles));
        }
        if self.has_managed_passwords {
            let secrets = format!("arn:{partition}:secretsmanager:{region}:{account}:secret:rds!*");
            let actions = ["secretsmanager:CreateSecret", "secretsmanager:TagResource"];
            statements.push(statement("KeepPasswords", &actions, &[secrets]));
            if self.kms_keys.is_empty() {
                // Also of the key that AWS manages.
                let keys = format!("arn:{partition}:kms:{region}:{account}:key/*");
                statements.push(statement("DescribeKeys", &["kms:DescribeKey"], &[keys]));
            }
        }
        if !self.monitoring_roles.is_empty() {
            let roles = &self.monitoring_roles;
            let pass = statement("PassMonitoringRoles", &["iam:PassRole"], roles);
            let to = json!({"iam:PassedToService": MONITORING_SERVICES});
            statements.push(only_if(pass, json!({"StringEquals": to})));
        }
        if !self.kms_keys.is_empty() {
            let actions: &[&str] = if self.has_managed_passwords {
                &["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey"]
            } else {
                &["kms:DescribeKey"]
            };
            statements.push(statement("UseKeys", actions, &self.kms_keys));
            let grant = statement("GrantKeys", &["kms:CreateGrant"], &self.kms_keys);
            let of_service = json!({"kms:GrantIsForAWSResource": "true"});
            statements.push(only_if(grant, json!({"Bool": of_service})));
        }
        statements
    }
}

/// Adds a condition to a statement.
fn only_if(mut statement: Value, condition: Value) -> Value {
    statement["Condition"] = condition;
    statement
}

/// Returns the partition of a region, or that of the commercial regions for `*`.
#[must_use]
pub fn partition_of(region: &str) -> &'static str {
    let found = PARTITIONS.iter();
    let mut found = found.filter(|(beginning, _)| region.starts_with(beginning));
    found.next().map_or("aws", |(_, partition)| partition)
}

fn others<'a>(type_: &'a str, names: &[String]) -> Vec<(&'a str, String)> {
    names.iter().map(|name| (type_, name.clone())).collect()
}

fn statement(id: &str, actions: &[&str], resources: &[String]) -> Value {
    json!({"Sid": id, "Effect": "Allow", "Action": actions, "Resource": resources})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(change: impl FnOnce(&mut IamPolicyScope)) -> String {
        let mut scope = IamPolicyScope {
            partition: "aws".to_owned(),
            region: "eu-central-1".to_owned(),
            account: "123456789012".to_owned(),
            ..IamPolicyScope::default()
        };
        change(&mut scope);
        iam_policy(&scope).to_string()
    }

    #[test]
    fn resources_of_others_are_allowed_only_if_they_are_named() {
        let of_rds = "arn:aws:rds:eu-central-1:123456789012:";
        let own = policy(|_| ());
        assert!(own.contains(&format!("{of_rds}db:cdb-*\"")));
        assert!(own.contains(&format!("{of_rds}snapshot:cdb-*-final*\"")));
        let one = || vec!["orders".to_owned()];
        for (found, action, resource) in [
            (
                policy(|it| it.adopted = one()),
                "DeleteDBInstance",
                "db:orders",
            ),
            (
                policy(|it| it.adopted = one()),
                "CreateDBSnapshot",
                "snapshot:orders-final*",
            ),
            (
                policy(|it| it.snapshots = one()),
                "FromDBSnapshot",
                "snapshot:orders",
            ),
            (
                policy(|it| it.restored = one()),
                "ToPointInTime",
                "db:orders",
            ),
            (
                policy(|it| it.replicated = one()),
                "PromoteReadReplica",
                "db:orders",
            ),
        ] {
            assert!(found.contains(action), "{action}");
            assert!(
                found.contains(&format!("{of_rds}{resource}\"")),
                "{resource}: {found}"
            );
        }
        for text in [
            "orders",
            "kms:",
            "iam:",
            "secretsmanager:",
            "sqs:",
            "sts:",
            "Restore",
            "Replica",
        ] {
            assert!(!own.contains(text), "{text}");
        }
    }

    #[test]
    fn instances_of_another_cluster_are_no_sources_unless_they_are_named() {
        let scope = IamPolicyScope {
            cluster_name: Some("blue".to_owned()),
            restored: vec!["orders".to_owned()],
            replicated: vec!["orders".to_owned()],
            snapshots: vec!["before".to_owned()],
            ..IamPolicyScope::default()
        };
        let condition = |id: &str, scope: &IamPolicyScope| {
            let policy = iam_policy(scope);
            let mut statements = policy["Statement"].as_array().into_iter().flatten();
            let statement = statements.find(|statement| statement["Sid"] == id);
            statement.expect("a statement")["Condition"].clone()
        };
        let expected = json!({"StringEqualsIfExists": {
            "aws:ResourceTag/database.example.com/cluster": "blue",
            "rds:db-tag/database.example.com/cluster": "blue",
        }});
        for id in ["RestoreSnapshots", "RestoreInstances", "Replicate"] {
            assert_eq!(condition(id, &scope), Value::Null, "{id}");
            assert_eq!(condition(&format!("{id}To"), &scope), expected, "{id}");
        }
        let without_name = IamPolicyScope {
            cluster_name: None,
            ..scope
        };
        assert_eq!(condition("ReplicateTo", &without_name), Value::Null);
    }

    #[test]
    fn a_region_has_the_partition_of_its_name() {
        for (region, partition) in [
            ("eu-central-1", "aws"),
            ("cn-north-1", "aws-cn"),
            ("us-gov-west-1", "aws-us-gov"),
            ("us-iso-east-1", "aws-iso"),
            ("us-isob-east-1", "aws-iso-b"),
            ("eusc-de-east-1", "aws-eusc"),
            ("us-east-1", "aws"),
            ("*", "aws"),
        ] {
            assert_eq!(partition_of(region), partition, "{region}");
        }
    }

    #[test]
    fn roles_are_passed_and_keys_are_granted_to_services_only() {
        let policy = policy(|scope| {
            scope.kms_keys = vec!["arn:aws:kms:eu-central-1:123456789012:key/a".to_owned()];
            scope.monitoring_roles = vec!["arn:aws:iam::123456789012:role/m".to_owned()];
        });
        let policy: Value = serde_json::from_str(&policy).expect("JSON");
        let statements = policy["Statement"].as_array().expect("statements");
        for (action, condition) in [
            (
                "iam:PassRole",
                json!({"StringEquals": {"iam:PassedToService": MONITORING_SERVICES}}),
            ),
            (
                "kms:CreateGrant",
                json!({"Bool": {"kms:GrantIsForAWSResource": "true"}}),
            ),
        ] {
            let with = statements.iter().filter(|statement| {
                let actions = statement["Action"].as_array().expect("actions");
                actions.iter().any(|allowed| allowed == action)
            });
            let conditions: Vec<_> = with.map(|statement| &statement["Condition"]).collect();
            assert_eq!(conditions, [&condition], "{action}");
        }
    }

    #[test]
    fn other_services_are_allowed_only_if_they_are_needed() {
        let key = || vec!["arn:aws:kms:eu-central-1:123456789012:key/a".to_owned()];
        let with_key = policy(|it| it.kms_keys = key());
        assert!(with_key.contains("kms:CreateGrant") && !with_key.contains("kms:Decrypt"));
        let managed = policy(|it| {
            it.kms_keys = key();
            it.has_managed_passwords = true;
        });
        assert!(managed.contains("kms:Decrypt") && managed.contains("secret:rds!*"));
        let queue = "arn:aws:sqs:eu-west-1:210987654321:rds";
        let with_events = policy(|it| it.events_queue = Some(queue.to_owned()));
        let allowed = format!(
            r#""Action":["sqs:DeleteMessage","sqs:ReceiveMessage"],"Effect":"Allow","Resource":["{queue}"]"#
        );
        assert!(with_events.contains(&allowed), "{with_events}");
        let team = "arn:aws:iam::210987654321:role/team";
        let with_role = policy(|it| it.assumed_roles = vec![team.to_owned()]);
        let allowed =
            format!(r#""Action":["sts:AssumeRole"],"Effect":"Allow","Resource":["{team}"]"#);
        assert!(with_role.contains(&allowed), "{with_role}");
        let role = "arn:aws:iam::123456789012:role/monitoring";
        let monitored = policy(|it| it.monitoring_roles = vec![role.to_owned()]);
        assert!(monitored.contains("iam:PassRole") && monitored.contains(role));
    }
}
