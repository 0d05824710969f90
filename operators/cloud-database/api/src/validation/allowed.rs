//! Rule on what the policy lets the objects of a namespace use: classes, groups, keys and roles.

use lockstep_shared_validation::{Diagnostics, Rule, RuleContext, Severity};

use crate::spec::{CloudDatabase, CloudDatabaseSpec, DeletionPolicy};
use crate::tenancy::{NamespacePolicy, matches_pattern};

const POLICY: &str = "Lockstep's own: section `settings.cloudDatabase` of the policy";

pub(super) fn rules() -> Vec<Rule<CloudDatabase>> {
    vec![Rule {
        id: "not-allowed-in-namespace",
        description: "Instance class, groups, keys, roles and deletion policy must be those that the policy allows for the namespace. Without a list in the policy, all are allowed.",
        severity: Severity::Error,
        reference: POLICY,
        fields: &[
            "spec.instanceClass",
            "spec.network.subnetGroup",
            "spec.network.securityGroups",
            "spec.parameterGroup",
            "spec.optionGroup",
            "spec.encryption.kmsKey",
            "spec.credentials.managed.kmsKey",
            "spec.monitoring.performanceInsights.kmsKey",
            "spec.monitoring.enhanced.roleArn",
            "spec.deletionPolicy",
        ],
        validate: not_allowed,
    }]
}

fn not_allowed(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    if context.settings.is_none() {
        return;
    }
    let object = context.object;
    let spec = &object.spec;
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let allowed = NamespacePolicy::read(context.settings, namespace).allowed;
    let mut check = |field: &str, list: &Option<Vec<String>>, name: Option<&str>| {
        if let (Some(list), Some(name)) = (list, name)
            && !list.iter().any(|pattern| matches_pattern(pattern, name))
        {
            let which = match list.as_slice() {
                [] => "the policy allows none".to_owned(),
                list => format!("the policy allows {}", list.join(", ")),
            };
            let detail = format!("is not allowed in the namespace '{namespace}': {which}");
            diagnostics.invalid(field, name, detail);
        }
    };
    let class = Some(spec.instance_class.as_str());
    check("spec.instanceClass", &allowed.instance_classes, class);
    let network = &spec.network;
    let subnets = network.subnet_group.as_deref();
    check("spec.network.subnetGroup", &allowed.subnet_groups, subnets);
    for (index, group) in network.security_groups.iter().enumerate() {
        let field = format!("spec.network.securityGroups[{index}]");
        check(&field, &allowed.security_groups, Some(group));
    }
    let parameters = spec.parameter_group.as_deref();
    check("spec.parameterGroup", &allowed.parameter_groups, parameters);
    let options = spec.option_group.as_deref();
    check("spec.optionGroup", &allowed.option_groups, options);
    for (field, key) in kms_keys(spec) {
        check(field, &allowed.kms_keys, key);
    }
    let monitoring = spec.monitoring.as_ref();
    let enhanced = monitoring.and_then(|monitoring| monitoring.enhanced.as_ref());
    let role = enhanced.and_then(|enhanced| enhanced.role_arn.as_deref());
    check(
        "spec.monitoring.enhanced.roleArn",
        &allowed.monitoring_roles,
        role,
    );
    let policy = match spec.deletion_policy {
        DeletionPolicy::Snapshot => "Snapshot",
        DeletionPolicy::Retain => "Retain",
        DeletionPolicy::Delete => "Delete",
    };
    check(
        "spec.deletionPolicy",
        &allowed.deletion_policies,
        Some(policy),
    );
}

/// Returns the KMS keys of a spec by their fields.
fn kms_keys(spec: &CloudDatabaseSpec) -> [(&'static str, Option<&str>); 3] {
    let managed = spec.credentials.managed.as_ref();
    let monitoring = spec.monitoring.as_ref();
    let insights = monitoring.and_then(|monitoring| monitoring.performance_insights.as_ref());
    [
        ("spec.encryption.kmsKey", spec.encryption.kms_key.as_deref()),
        (
            "spec.credentials.managed.kmsKey",
            managed.and_then(|managed| managed.kms_key.as_deref()),
        ),
        (
            "spec.monitoring.performanceInsights.kmsKey",
            insights.and_then(|insights| insights.kms_key.as_deref()),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lockstep_shared_validation::{Policy, ValidationRequest, Validator, ValidatorRegistry};
    use serde_json::{Value, json};

    use crate::kind::ruleset;

    #[test]
    fn names_that_the_policy_does_not_list_for_the_namespace_are_invalid() {
        let ruleset = Arc::new(ruleset().expect("valid rules"));
        let validators = ValidatorRegistry::default().register(ruleset.clone());
        let allowed = json!({
            "instanceClasses": ["db.t4g.*"], "subnetGroups": ["private"], "securityGroups": ["sg-1*"],
            "parameterGroups": [], "optionGroups": ["own-*"], "kmsKeys": ["alias/shop"],
            "monitoringRoles": ["arn:aws:iam::123456789012:role/monitoring"],
            "deletionPolicies": ["Snapshot", "Delete"],
        });
        let section = json!({"namespaces": {"shop": {"allowed": allowed}}});
        let policy = json!({"settings": {"cloudDatabase": section}});
        let policy = Policy::read(&policy, &validators).expect("a valid policy");
        let errors = |namespace: &str, spec: &Value| {
            let mut object = json!({
                "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabase",
                "metadata": {"name": "orders", "namespace": namespace},
                "spec": {
                    "engine": "postgres", "instanceClass": "db.t4g.micro", "storage": {"sizeGib": 20},
                    "credentials": {"username": "app", "managed": {}},
                },
            });
            json_patch::merge(&mut object["spec"], spec);
            let request = ValidationRequest::create(&object).with_policy(&policy);
            let errors = ruleset.validate(&request).errors.into_iter();
            let errors = errors.filter(|violation| violation.rule == "not-allowed-in-namespace");
            errors
                .map(|violation| violation.error.path.to_string())
                .collect::<Vec<_>>()
        };
        assert!(errors("shop", &json!({})).is_empty());
        let others = json!({
            "instanceClass": "db.m7g.large", "parameterGroup": "own", "optionGroup": "others",
            "network": {"subnetGroup": "public", "securityGroups": ["sg-12345678", "sg-23456789"]},
            "encryption": {"kmsKey": "alias/other"}, "deletionPolicy": "Retain",
            "credentials": {"managed": {"kmsKey": "alias/other"}},
            "monitoring": {
                "performanceInsights": {"enabled": true, "kmsKey": "alias/other"},
                "enhanced": {"intervalSeconds": 60, "roleArn": "arn:aws:iam::123456789012:role/other"},
            },
        });
        let mut found = errors("shop", &others);
        found.sort_unstable();
        let expected = [
            "spec.credentials.managed.kmsKey",
            "spec.deletionPolicy",
            "spec.encryption.kmsKey",
            "spec.instanceClass",
            "spec.monitoring.enhanced.roleArn",
            "spec.monitoring.performanceInsights.kmsKey",
            "spec.network.securityGroups[1]",
            "spec.network.subnetGroup",
            "spec.optionGroup",
            "spec.parameterGroup",
        ];
        assert_eq!(found, expected);
        assert!(errors("other", &others).is_empty());
        let own = json!({
            "optionGroup": "own-1", "encryption": {"kmsKey": "alias/shop"},
            "network": {"subnetGroup": "private", "securityGroups": ["sg-12345678"]},
        });
        assert!(errors("shop", &own).is_empty());
    }
}
