//! Section `settings.cloudDatabase` of the policy: what the objects of a namespace may use, and how much of it.

use std::collections::BTreeMap;

use lockstep_shared_validation::Settings;
use serde::Deserialize;
use serde_json::Value;

/// Name of the section.
pub const POLICY_SECTION: &str = "cloudDatabase";

/// Maximum of what the instances of a namespace may have together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Number of instances.
    pub instances: u64,
    /// Storage in GiB, up to which autoscaling may increase it.
    pub storage_gib: u64,
    /// Provisioned I/O operations per second.
    pub provisioned_iops: u64,
}

impl Default for Quota {
    /// Returns a half of the 40 instances that an account can have at first, with an average of 1 TiB and 4,000 IOPS each:
    /// <https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/CHAP_Limits.html>.
    fn default() -> Self {
        Self {
            instances: 20,
            storage_gib: 20 * 1_024,
            provisioned_iops: 20 * 4_000,
        }
    }
}

/// Limits and choices of a namespace.
#[derive(Clone, Debug, Default)]
pub struct NamespacePolicy {
    /// Maximum of all instances together.
    pub quota: Quota,
    pub(crate) allowed: Allowed,
}

impl NamespacePolicy {
    /// Reads what a namespace may use. `settings` is the section of the policy.
    #[must_use]
    pub fn read(settings: Option<&Value>, namespace: &str) -> Self {
        // The section was validated when the policy was read. Those of other namespaces, which can be thousands, are not read
        // for each object.
        let restrictions = |value: Option<&Value>| {
            let read = value.and_then(|value| Restrictions::deserialize(value).ok());
            read.unwrap_or_default()
        };
        let section = |name: &str| settings.and_then(|settings| settings.get(name));
        let all = restrictions(section("default"));
        let own = section("namespaces").and_then(|namespaces| namespaces.get(namespace));
        let own = restrictions(own);
        let limit = Quota::default();
        let or = |own: Option<u64>, all: Option<u64>, limit| own.or(all).unwrap_or(limit);
        Self {
            quota: Quota {
                instances: or(own.quota.instances, all.quota.instances, limit.instances),
                storage_gib: or(
                    own.quota.storage_gib,
                    all.quota.storage_gib,
                    limit.storage_gib,
                ),
                provisioned_iops: or(
                    own.quota.provisioned_iops,
                    all.quota.provisioned_iops,
                    limit.provisioned_iops,
                ),
            },
            allowed: own.allowed.or(all.allowed),
        }
    }
}

/// Section of the policy.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Section {
    /// Restrictions of all namespaces, unless `namespaces` says something else.
    default: Restrictions,
    namespaces: BTreeMap<String, Restrictions>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Restrictions {
    quota: QuotaSettings,
    allowed: Allowed,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct QuotaSettings {
    instances: Option<u64>,
    storage_gib: Option<u64>,
    provisioned_iops: Option<u64>,
}

/// Patterns of the names that objects may have in their specs. Without a list, every name is allowed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Allowed {
    pub(crate) instance_classes: Option<Vec<String>>,
    pub(crate) subnet_groups: Option<Vec<String>>,
    pub(crate) security_groups: Option<Vec<String>>,
    pub(crate) parameter_groups: Option<Vec<String>>,
    pub(crate) option_groups: Option<Vec<String>>,
    pub(crate) kms_keys: Option<Vec<String>>,
    pub(crate) monitoring_roles: Option<Vec<String>>,
    pub(crate) deletion_policies: Option<Vec<String>>,
}

impl Allowed {
    /// Returns these lists, and others where these are missing.
    fn or(self, others: Self) -> Self {
        Self {
            instance_classes: self.instance_classes.or(others.instance_classes),
            subnet_groups: self.subnet_groups.or(others.subnet_groups),
            security_groups: self.security_groups.or(others.security_groups),
            parameter_groups: self.parameter_groups.or(others.parameter_groups),
            option_groups: self.option_groups.or(others.option_groups),
            kms_keys: self.kms_keys.or(others.kms_keys),
            monitoring_roles: self.monitoring_roles.or(others.monitoring_roles),
            deletion_policies: self.deletion_policies.or(others.deletion_policies),
        }
    }
}

/// Returns the section of the policy file.
pub(crate) fn settings() -> Settings {
    Settings {
        section: POLICY_SECTION,
        validate: |section| {
            let result = Section::deserialize(section).map_err(|error| error.to_string());
            result.and_then(|_| require_mappings(section)).map_err(|problem| format!(
                "{problem}; the section has `default` and `namespaces` (by name), each with `quota` (`instances`, `storageGib`, `provisionedIops`: numbers) and `allowed` (lists of names or patterns with `*`)"
            ))
        },
        actions: |_| Vec::new(),
    }
}

/// Returns an error if a list stands in place of a mapping, which can be read as one.
fn require_mappings(section: &Value) -> Result<(), String> {
    let require = |value: &Value| match value {
        Value::Object(_) | Value::Null => Ok(()),
        other => Err(format!("{other} must be a mapping")),
    };
    require(section)?;
    let own = section["namespaces"].as_object().into_iter().flatten();
    let own = own.map(|(_, restrictions)| restrictions);
    for restrictions in own.chain([&section["default"]]) {
        require(restrictions)?;
        require(&restrictions["quota"])?;
        require(&restrictions["allowed"])?;
    }
    Ok(())
}

/// Returns true if a text matches a pattern, in which `*` stands for any characters.
#[must_use]
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(first) else {
        return false;
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut text) = text.strip_suffix(last) else {
        return false;
    };
    for part in middle.split('*') {
        let Some(at) = text.find(part) else {
            return false;
        };
        text = &text[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_namespace_does_not_set_is_that_of_all_and_then_the_default() {
        let section = json!({
            "default": {
                "quota": {"instances": 3},
                "allowed": {"instanceClasses": ["db.t4g.*"], "kmsKeys": []},
            },
            "namespaces": {"shop": {
                "quota": {"storageGib": 100},
                "allowed": {"instanceClasses": ["*"]},
            }},
        });
        assert_eq!((settings().validate)(&section), Ok(()));
        let shop = NamespacePolicy::read(Some(&section), "shop");
        let expected = Quota {
            instances: 3,
            storage_gib: 100,
            ..Quota::default()
        };
        assert_eq!(shop.quota, expected);
        assert_eq!(shop.allowed.instance_classes, Some(vec!["*".to_owned()]));
        assert_eq!(shop.allowed.kms_keys, Some(Vec::new()));
        let other = NamespacePolicy::read(Some(&section), "other");
        assert_eq!(
            (other.quota.instances, other.quota.storage_gib),
            (3, 20_480)
        );
        assert_eq!(other.allowed.subnet_groups, None);
        assert_eq!(NamespacePolicy::read(None, "shop").quota, Quota::default());
    }

    #[test]
    fn a_section_with_an_unknown_key_or_a_wrong_value_is_refused() {
        for (section, part) in [
            (json!({"defaults": {}}), "`defaults`"),
            (json!({"default": {"quota": {"instance": 1}}}), "`instance`"),
            (json!({"default": {"quota": {"instances": -1}}}), "-1"),
            (
                json!({"namespaces": {"shop": {"allowed": {"kmsKeys": "a"}}}}),
                "\"a\"",
            ),
            (json!([]), "[] must be a mapping"),
            (json!({"default": {"quota": [1]}}), "[1] must be a mapping"),
        ] {
            let error = (settings().validate)(&section).expect_err("an error");
            assert!(error.contains(part), "{error}");
        }
    }
}
