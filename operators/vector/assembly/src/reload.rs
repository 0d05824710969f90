//! Options that Vector reloads, and options that need new Pods.
//!
//! At a change of its configuration, Vector compares the global options with those that it runs with, and rejects the whole
//! configuration if one of them differs. It compares the components one by one, and replaces those that differ. This is
//! the behavior of Vector 0.57:
//!
//! | options | at a change |
//! |---|---|
//! | `sources`, `transforms`, `sinks`, `enrichment_tables` | Vector replaces the components that differ |
//! | `secret` | Vector reads the secrets again with each configuration; only components whose values differ are replaced |
//! | `healthchecks`, `tests` | Vector reads them with each configuration |
//! | `api` | Vector starts or stops its API, on the address with which it was started |
//! | `data_dir`, `expire_metrics_secs` and all other global options | Vector rejects the configuration |
//! | `provider`, `schema` | Vector reads them when it starts |

use lockstep_vector_config::ComponentKind;
use serde_json::Value;

use crate::canonical::hash;

/// Options that Vector reloads, besides the components.
const RELOADED: [&str; 4] = ["enrichment_tables", "healthchecks", "secret", "tests"];

/// Returns true if Vector reloads a top-level option of its configuration. Other options need new Pods.
#[must_use]
pub fn is_reloaded(option: &str) -> bool {
    let mut blocks = ComponentKind::ALL.into_iter();
    blocks.any(|kind| kind.block() == option) || RELOADED.contains(&option)
}

/// Returns a fingerprint of the options of a configuration that need new Pods. It is the same for all configurations that
/// mean the same.
#[must_use]
pub fn global_options_hash(config: &Value) -> String {
    let fields = config.as_object().into_iter().flatten();
    let global = fields.filter(|(name, value)| {
        // An API that is not enabled is the same as none.
        let is_off = *name == "api" && value["enabled"] != true;
        !is_reloaded(name) && !value.is_null() && !is_off
    });
    let global = global.map(|(name, value)| {
        let mut value = value.clone();
        if let Some(api) = value.as_object_mut().filter(|_| name == "api") {
            // Vector 0.55 removed it.
            api.remove("playground");
        }
        (name.clone(), value)
    });
    hash(&Value::Object(global.collect()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_option_is_reloaded_or_changes_the_fingerprint() {
        let before = json!({"data_dir": "/data", "sources": {}, "sinks": {}});
        for (option, value, is_reload) in [
            ("sources", json!({"a": {}}), true),
            ("transforms", json!({"a": {}}), true),
            ("sinks", json!({"a": {}}), true),
            ("enrichment_tables", json!({"a": {}}), true),
            ("secret", json!({"a": {}}), true),
            ("healthchecks", json!({"enabled": false}), true),
            ("tests", json!([]), true),
            ("data_dir", json!("/other"), false),
            ("expire_metrics_secs", json!(1), false),
            ("api", json!({"enabled": true}), false),
            ("timezone", json!("local"), false),
            ("proxy", json!({"enabled": false}), false),
            ("acknowledgements", json!({"enabled": true}), false),
            ("schema", json!({"log_namespace": true}), false),
            ("provider", json!({"type": "http"}), false),
        ] {
            let mut after = before.clone();
            after[option] = value;
            let is_same = global_options_hash(&before) == global_options_hash(&after);
            assert_eq!(is_same, is_reload, "{option}");
            assert_eq!(is_reloaded(option), is_reload, "{option}");
        }
    }
}
