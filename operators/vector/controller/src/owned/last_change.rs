//! Change of a workload: what it restarts, and why.
//!
//! ```text
//! desired Pod template + observed workload + changed pipelines ─► reload, new Pods, or nothing
//! ```

use serde_json::{Value, json};

use crate::owned::labels::GLOBAL_OPTIONS_CHECKSUM;
use crate::owned::template_changes;

/// Maximum number of reasons.
const MAX_REASONS: usize = 20;

/// Maximum length of a reason, in bytes.
const MAX_REASON: usize = 256;

/// Change of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Action.
    pub action: ChangeAction,
    /// Reasons: what of the Pods or which pipelines differ.
    pub reasons: Vec<String>,
    /// Number of Pods that are created, restarted, or reload their configuration.
    pub pods: i64,
}

/// Effect of a change on the Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeAction {
    /// The Pods are created.
    Create,
    /// Vector reloads its configuration. No Pod restarts.
    Reload,
    /// The Pods are replaced by the rolling update of their workload.
    Roll,
}

impl ChangeAction {
    /// Returns the name in the status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Reload => "Reload",
            Self::Roll => "Roll",
        }
    }
}

impl Change {
    /// Returns the change between an observed object that runs Vector and the desired one. `pipelines` describes the
    /// pipelines whose published configuration differs. None if there is no difference.
    #[must_use]
    pub fn between(
        live: Option<&Value>,
        desired: &Value,
        pipelines: impl IntoIterator<Item = String>,
    ) -> Option<Self> {
        let Some(live) = live else {
            let pods = desired["spec"]["replicas"].as_i64().unwrap_or_default();
            return Some(Self::new(ChangeAction::Create, Vec::new(), pods));
        };
        let pods = live["status"]["desiredNumberScheduled"].as_i64();
        let pods = pods.or(live["spec"]["replicas"].as_i64());
        let pods = pods.unwrap_or_default();
        let reasons = template_changes::between(live, desired);
        if !reasons.is_empty() {
            let reasons = reasons.iter().map(|path| reason(path)).collect();
            return Some(Self::new(ChangeAction::Roll, reasons, pods));
        }
        let pipelines: Vec<_> = pipelines.into_iter().collect();
        (!pipelines.is_empty()).then(|| Self::new(ChangeAction::Reload, pipelines, pods))
    }

    fn new(action: ChangeAction, mut reasons: Vec<String>, pods: i64) -> Self {
        reasons.sort();
        reasons.dedup();
        if reasons.len() > MAX_REASONS {
            let more = reasons.len() - (MAX_REASONS - 1);
            reasons.truncate(MAX_REASONS - 1);
            reasons.push(format!("and {more} more"));
        }
        for reason in &mut reasons {
            reason.truncate(reason.floor_char_boundary(MAX_REASON));
        }
        Self {
            action,
            reasons,
            pods,
        }
    }

    /// Returns the value of the status field.
    #[must_use]
    pub fn to_status(&self, time: &Value) -> Value {
        json!({
            "action": self.action.as_str(), "reasons": self.reasons, "pods": self.pods, "time": time,
        })
    }
}

/// Describes a difference by the path of the field in the Pod template. The checksum stands for the options of Vector.
fn reason(path: &str) -> String {
    if path.ends_with(GLOBAL_OPTIONS_CHECKSUM) {
        return "options that Vector does not reload (api, expireMetricsSecs)".to_owned();
    }
    path.trim_start_matches("spec.").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(image: &str, checksum: &str) -> Value {
        json!({
            "status": {"desiredNumberScheduled": 3},
            "spec": {"template": {
                "metadata": {"annotations": {GLOBAL_OPTIONS_CHECKSUM: checksum}},
                "spec": {"containers": [{"name": "logs-agent", "image": image}]},
            }},
        })
    }

    fn change(live: Option<&Value>, desired: &Value, pipelines: &[&str]) -> Option<Value> {
        let pipelines = pipelines.iter().map(|it| (*it).to_owned());
        let change = Change::between(live, desired, pipelines)?;
        Some(change.to_status(&json!("now")))
    }

    #[test]
    fn new_pods_are_for_the_template_and_reloads_for_pipelines() {
        let live = workload("v:1", "a");
        let expected = |action: &str, reasons: &[&str], pods: i64| {
            Some(json!({"action": action, "reasons": reasons, "pods": pods, "time": "now"}))
        };
        assert_eq!(change(Some(&live), &live, &[]), None);
        assert_eq!(
            change(None, &live, &["a/p added"]),
            expected("Create", &[], 0)
        );
        assert_eq!(
            change(Some(&live), &live, &["a/q changed", "a/p added"]),
            expected("Reload", &["a/p added", "a/q changed"], 3)
        );
        assert_eq!(
            change(Some(&live), &workload("v:2", "b"), &["a/p added"]),
            expected(
                "Roll",
                &[
                    "containers[logs-agent].image",
                    "options that Vector does not reload (api, expireMetricsSecs)",
                ],
                3
            )
        );
    }

    #[test]
    fn of_many_reasons_the_first_ones_are_listed() {
        let live = workload("v:1", "a");
        let names: Vec<_> = (0..30)
            .map(|index| format!("n{index:02}/{}", "p".repeat(300)))
            .collect();
        let change = Change::between(Some(&live), &live, names).expect("a change");
        assert_eq!(change.reasons.len(), MAX_REASONS);
        assert_eq!(change.reasons[MAX_REASONS - 1], "and 11 more");
        assert!(change.reasons.iter().all(|it| it.len() <= MAX_REASON));
    }
}
