//! Change of a workload: what it restarts, and why.
//!
//! ```text
//! desired Pod template + observed workload + changed pipelines ─► reload, new Pods, or nothing
//! ```

use lockstep_vector_api::WorkloadChange;
use serde_json::Value;

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
        let pods = pods(live);
        let reasons = template_changes::between(live, desired);
        if !reasons.is_empty() {
            let reasons = reasons.iter().map(|path| reason(path)).collect();
            return Some(Self::new(ChangeAction::Roll, reasons, pods));
        }
        let pipelines: Vec<_> = pipelines.into_iter().collect();
        (!pipelines.is_empty()).then(|| Self::new(ChangeAction::Reload, pipelines, pods))
    }

    /// Returns the change that remains to be made, between the desired object of now and a planned one. `pipelines` describes
    /// the pipelines whose configuration differs between both. None if there is no difference.
    #[must_use]
    pub fn planned(
        live: Option<&Value>,
        desired: &Value,
        planned: &Value,
        pipelines: impl IntoIterator<Item = String>,
    ) -> Option<Self> {
        let observed = live.unwrap_or(desired);
        // Only the observed object tells which fields were applied before and are no longer desired.
        let mut reasons = template_changes::between(desired, planned);
        let made = template_changes::between(observed, desired);
        let later = template_changes::between(observed, planned).into_iter();
        reasons.extend(later.filter(|it| !made.contains(it)));
        let remaining = Self::between(Some(observed), observed, pipelines);
        if reasons.is_empty() {
            return remaining;
        }
        let pods = pods(observed);
        let reasons = reasons.iter().map(|path| reason(path)).collect();
        Some(Self::new(ChangeAction::Roll, reasons, pods))
    }

    /// Returns the change between two desired objects that run Vector. None if there is no difference.
    #[must_use]
    pub fn of_desired(before: &Value, after: &Value, settings: Vec<String>) -> Option<Self> {
        if before["kind"] != after["kind"] {
            let kinds = [before, after].map(|it| it["kind"].as_str().unwrap_or_default());
            let reason = format!("a {} instead of the {}", kinds[1], kinds[0]);
            return Some(Self::new(ChangeAction::Roll, vec![reason], pods(before)));
        }
        // Each of both directions finds the fields that the other object lacks.
        let mut reasons = template_changes::between(before, after);
        reasons.extend(template_changes::between(after, before));
        if reasons.is_empty() {
            return Self::between(Some(before), before, settings);
        }
        let reasons = reasons.iter().map(|path| reason(path)).collect();
        Some(Self::new(ChangeAction::Roll, reasons, pods(before)))
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
    pub fn at(&self, time: Option<&str>) -> WorkloadChange {
        WorkloadChange {
            action: self.action.as_str().to_owned(),
            reasons: self.reasons.clone(),
            pods: Some(self.pods),
            time: time.map(str::to_owned),
        }
    }

    /// Returns the value of the status field for a change that is not made yet. Its time remains that of `before`, the
    /// present value of the field, while the change is the same.
    #[must_use]
    pub fn planned_at(&self, before: Option<&WorkloadChange>, now: &str) -> WorkloadChange {
        let since = before.and_then(|before| before.time.as_deref());
        let same = self.at(since);
        if before == Some(&same) {
            same
        } else {
            self.at(Some(now))
        }
    }
}

/// Returns the number of Pods of a workload.
fn pods(workload: &Value) -> i64 {
    let pods = workload["status"]["desiredNumberScheduled"].as_i64();
    let pods = pods.or(workload["spec"]["replicas"].as_i64());
    pods.unwrap_or_default()
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
    use serde_json::json;

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

    fn change(live: Option<&Value>, desired: &Value, pipelines: &[&str]) -> Option<WorkloadChange> {
        let pipelines = pipelines.iter().map(|it| (*it).to_owned());
        let change = Change::between(live, desired, pipelines)?;
        Some(change.at(Some("now")))
    }

    #[test]
    fn new_pods_are_for_the_template_and_reloads_for_pipelines() {
        let live = workload("v:1", "a");
        let expected = |action: &str, reasons: &[&str], pods: i64| {
            Some(WorkloadChange {
                action: action.to_owned(),
                reasons: reasons.iter().map(|&reason| reason.to_owned()).collect(),
                pods: Some(pods),
                time: Some("now".to_owned()),
            })
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
    fn a_planned_change_has_what_is_not_made_yet() {
        let live = workload("v:1", "a");
        let planned = |desired: &Value, planned: &Value, pipelines: &[&str]| {
            let pipelines = pipelines.iter().map(|it| (*it).to_owned());
            let change = Change::planned(Some(&live), desired, planned, pipelines)?;
            Some((change.action, change.reasons.join(", "), change.pods))
        };
        assert_eq!(planned(&live, &live, &[]), None);
        let reload = (ChangeAction::Reload, "a/p added".to_owned(), 3);
        assert_eq!(planned(&live, &live, &["a/p added"]), Some(reload));
        let new = workload("v:2", "a");
        let image = "containers[logs-agent].image".to_owned();
        let roll = (ChangeAction::Roll, image.clone(), 3);
        assert_eq!(planned(&live, &new, &["a/p added"]), Some(roll));
        // The same difference is made now.
        assert_eq!(planned(&new, &new, &[]), None);
        let (newer, roll) = (workload("v:3", "a"), (ChangeAction::Roll, image, 3));
        assert_eq!(planned(&new, &newer, &[]), Some(roll));
        // A field that is removed is among the managed ones of the observed object.
        let mut observed = workload("v:1", "a");
        observed["metadata"]["managedFields"] = json!([{"manager": "lockstep", "fieldsV1": {"f:spec": {"f:template": {
            "f:metadata": {"f:annotations": {(format!("f:{GLOBAL_OPTIONS_CHECKSUM}")): {}}},
        }}}}]);
        let mut without = live.clone();
        without["spec"]["template"]["metadata"]["annotations"] = json!({});
        let change = Change::planned(Some(&observed), &live, &without, []);
        assert_eq!(change.expect("a change").action, ChangeAction::Roll);
    }

    #[test]
    fn the_time_of_a_plan_is_that_of_its_beginning() {
        let change = |image: &str| {
            let change = Change::between(Some(&workload("v:1", "a")), &workload(image, "a"), []);
            change.expect("a change")
        };
        let first = change("v:2").planned_at(None, "first");
        assert_eq!(first.time.as_deref(), Some("first"));
        let again = change("v:2").planned_at(Some(&first), "later");
        assert_eq!(again, first);
        let mut other = change("v:2");
        other.reasons.push("another".to_owned());
        let other = other.planned_at(Some(&first), "later");
        assert_eq!(other.time.as_deref(), Some("later"));
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
