//! Instances and snapshots that an administrator lets the objects of a namespace use although no object of the cluster owns them.
//!
//! The author of an object names the source, and an administrator, who may write the Namespace or the arguments of the controller, allows it.
//! A name holds in each region and account that the objects of the namespace may choose. An ARN holds in its own only.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use lockstep_cloud_database_api::matches_pattern;

/// Beginning of an ARN.
const ARN: &str = "arn:";

/// Identifiers of instances and snapshots, resource IDs and ARNs, or patterns of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedSources(Vec<String>);

impl AllowedSources {
    /// Parses a list that is separated by commas.
    #[must_use]
    pub fn parse(list: &str) -> Self {
        let elements = list.split(',').map(str::trim);
        let elements = elements.filter(|element| !element.is_empty());
        Self(elements.map(str::to_owned).collect())
    }

    /// Returns true if the list has a source: its name in the spec, which is an ARN for a snapshot of another account, or the ARN
    /// that RDS reports of it.
    ///
    /// A pattern for names matches no ARN: otherwise `orders-*` or `*-final` would allow a snapshot of that name which a stranger
    /// shares from another account.
    pub(crate) fn contains(&self, name: &str, arn: Option<&str>) -> bool {
        self.0.iter().any(|pattern| {
            let is_arn = pattern.starts_with(ARN);
            // RDS does not distinguish capital letters.
            let is_listed = |source: &str| {
                matches_pattern(&pattern.to_ascii_lowercase(), &source.to_ascii_lowercase())
            };
            let is_of_kind = pattern == "*" || is_arn == name.starts_with(ARN);
            is_of_kind && is_listed(name) || is_arn && arn.is_some_and(is_listed)
        })
    }

    /// Returns the list with a source in addition, as text. A name that could change the meaning of the list, or of a command with
    /// it, is not added.
    pub(crate) fn text_with(&self, source: &str) -> Option<String> {
        let is_plain = |char: char| char.is_ascii_alphanumeric() || ".:_-/".contains(char);
        let is_name = !source.is_empty() && source.chars().all(is_plain);
        let is_pattern = |name: &String| name.chars().all(|char| char == '*' || is_plain(char));
        let names = self.0.iter().map(String::as_str).chain([source]);
        (is_name && self.0.iter().all(is_pattern)).then(|| names.collect::<Vec<_>>().join(","))
    }
}

/// Value of `--allowed-sources`: a namespace with its sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceSources {
    namespace: String,
    sources: AllowedSources,
}

impl FromStr for NamespaceSources {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = text.split_once('=').map(|(namespace, list)| Self {
            namespace: namespace.trim().to_owned(),
            sources: AllowedSources::parse(list),
        });
        let found =
            found.filter(|found| !found.namespace.is_empty() && !found.sources.0.is_empty());
        found.ok_or_else(|| {
            format!("'{text}' must be a namespace with its sources, as in shop=orders-production,legacy-*")
        })
    }
}

/// Sources that the arguments of a controller allow, by namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourcesByNamespace(Arc<BTreeMap<String, AllowedSources>>);

impl SourcesByNamespace {
    /// Returns the sources of a namespace.
    pub(crate) fn of_namespace(&self, namespace: &str) -> AllowedSources {
        self.0.get(namespace).cloned().unwrap_or_default()
    }
}

impl FromIterator<NamespaceSources> for SourcesByNamespace {
    fn from_iter<I: IntoIterator<Item = NamespaceSources>>(all: I) -> Self {
        let mut by_namespace = BTreeMap::<String, AllowedSources>::new();
        for NamespaceSources { namespace, sources } in all {
            by_namespace
                .entry(namespace)
                .or_default()
                .0
                .extend(sources.0);
        }
        Self(Arc::new(by_namespace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_listed_by_its_name_or_a_pattern() {
        for (list, source, expected) in [
            ("orders", "orders", true),
            ("billing, orders", "orders", true),
            ("Orders", "orders", true),
            ("db-ABC", "db-ABC", true),
            ("orders", "orders-2", false),
            ("orders", "my-orders", false),
            ("orders-*", "orders-2", true),
            ("orders-*", "orders", false),
            ("*-final", "orders-final", true),
            ("o*r*s", "orders", true),
            ("o*s*s", "orders", false),
            ("or*rs", "ors", false),
            ("a*b*c", "abc", true),
            ("rds:orders-*", "rds:orders-2026-11-26-03-00", true),
            ("*", "orders", true),
            ("", "orders", false),
            (" , ", "", false),
        ] {
            let found = AllowedSources::parse(list).contains(source, None);
            assert_eq!(found, expected, "{source} in '{list}'");
        }
    }

    #[test]
    fn a_snapshot_of_another_account_is_listed_by_its_arn() {
        let shared = "arn:aws:rds:eu-central-1:210987654321:snapshot:orders-final";
        for (list, expected) in [
            (shared, true),
            ("arn:aws:rds:*:210987654321:snapshot:*", true),
            ("*", true),
            ("orders-final", false),
            ("*-final", false),
            ("a*", false),
        ] {
            let found = AllowedSources::parse(list).contains(shared, None);
            assert_eq!(found, expected, "{list}");
        }
    }

    #[test]
    fn a_source_is_listed_for_one_region_and_account_by_its_arn() {
        let arn = "arn:aws:rds:eu-central-1:123456789012:db:orders";
        for (list, expected) in [
            (arn, true),
            ("arn:aws:rds:eu-central-1:123456789012:db:*", true),
            ("arn:aws:rds:eu-*:123456789012:db:orders", true),
            ("arn:aws:rds:us-east-1:123456789012:db:orders", false),
            ("arn:aws:rds:eu-central-1:210987654321:db:orders", false),
            (
                "arn:aws:rds:eu-central-1:123456789012:snapshot:orders",
                false,
            ),
            ("*:orders", false),
            ("orders", true),
        ] {
            let found = AllowedSources::parse(list).contains("orders", Some(arn));
            assert_eq!(found, expected, "{list}");
        }
    }

    #[test]
    fn a_list_gets_no_name_that_would_allow_more_than_itself() {
        let list = AllowedSources::parse("orders, legacy-*");
        let found = list.text_with("billing");
        assert_eq!(found.as_deref(), Some("orders,legacy-*,billing"));
        for other in ["", "a,*", "*", "a b", "a';true;'", "a$(true)"] {
            assert_eq!(list.text_with(other), None, "{other}");
        }
        let odd = AllowedSources::parse("orders';true;'");
        assert_eq!(odd.text_with("billing"), None);
    }

    #[test]
    fn arguments_name_a_namespace_and_its_sources() {
        let parsed = ["shop=orders,legacy-*", "shop=billing", "stock=*"].map(str::parse);
        let all: Result<SourcesByNamespace, String> = parsed.into_iter().collect();
        let all = all.expect("sources");
        assert!(all.of_namespace("shop").contains("legacy-1", None));
        assert!(all.of_namespace("shop").contains("billing", None));
        assert!(!all.of_namespace("shop").contains("other", None));
        assert!(all.of_namespace("stock").contains("other", None));
        assert!(!all.of_namespace("reports").contains("orders", None));
        for invalid in ["orders", "=orders", "shop=", "shop= , "] {
            assert!(invalid.parse::<NamespaceSources>().is_err(), "{invalid}");
        }
    }
}
