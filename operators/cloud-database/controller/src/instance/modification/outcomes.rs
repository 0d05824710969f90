//! Outcomes of the modifications of one reconciliation, and the condition `Synced` that follows from them.

use std::time::Duration;

use lockstep_cloud_database_api::effects::Effect;
use lockstep_controller::{OperatorCondition, OperatorEvent, Stalled};

use crate::settings::{EngineVersion, Setting};

/// Condition: the spec is applied.
pub(crate) const SYNCED: &str = "Synced";

/// Reason of the Event about a modification that RDS has rejected.
const REJECTED: &str = "ModificationRejected";

/// Reason of the Event about a modification that was requested.
const REQUESTED: &str = "ModificationRequested";

/// Reason of the Event about changes that RDS applies before the maintenance window.
const APPLIED_EARLY: &str = "AppliedBeforeMaintenanceWindow";

/// Reason of an upgrade that RDS has accepted and taken back, in conditions and an Event.
const UPGRADE_FAILED: &str = "UpgradeFailed";

/// The same for another change.
const CHANGE_TAKEN_BACK: &str = "ChangeTakenBack";

/// Reason of a change that can interrupt clients and that RDS may have made, in conditions and an Event.
const OUTCOME_UNKNOWN: &str = "OutcomeUnknown";

/// Outcome of a group of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// RDS has accepted it in this reconciliation. With the words for the effect of each field, which can be empty.
    Requested(Vec<(&'static str, String)>),
    /// RDS has accepted it before, and has not applied it yet.
    Accepted,
    /// RDS accepts it when the instance has another status. With its message, if it was asked.
    Busy(Option<String>),
    /// RDS has rejected it, with this code and message.
    Rejected(String),
    /// RDS has accepted it before, and has taken it back, with what to do.
    TakenBack(String),
    /// There was no answer that says whether RDS accepts it.
    Failed(String),
    /// The same for a change that can interrupt clients: it may have been made, so that it is not requested again.
    Unanswered {
        /// Known facts, and what to do.
        message: String,
        /// If true, waiting does not help.
        is_final: bool,
    },
    /// The storage was changed a short time ago.
    Cooldown {
        /// Time left, if it is known.
        left: Option<Duration>,
        /// Code and message of RDS, if it was asked.
        message: Option<String>,
    },
    /// It would exceed a quota of the namespace, with what to do.
    OverQuota(String),
    /// It differs, and nothing is requested for an instance that is only observed.
    Observed,
    /// It is requested once the status of the object says that it may have been.
    Next,
}

/// Change that RDS has accepted and applies later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingChange {
    pub(crate) field: String,
    /// Effect on clients, if it is known.
    pub(crate) effect: Option<Effect>,
}

/// Outcomes of the groups of fields that differ, and everything else that keeps the instance from matching the spec.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    fields: Vec<(String, Outcome)>,
    /// If true, the instance is only observed.
    is_observed: bool,
    /// Differences that cannot be changed.
    differences: Vec<String>,
    /// Upgrade that the spec does not allow.
    not_allowed: Option<String>,
    /// Settings that RDS applies at the next restart.
    waiting_for_restart: Vec<String>,
    /// Changes that RDS has accepted and applies later.
    pending: Vec<PendingChange>,
    /// Maintenance window in which RDS applies it, if the spec demands that.
    window: Option<String>,
    /// Fields whose change waited for the maintenance window, and which RDS applies with one that does not wait.
    applied_early: Vec<String>,
}

impl Outcomes {
    pub(crate) fn add(&mut self, fields: &[&str], outcome: Outcome) {
        self.fields.push((fields.join(", "), outcome));
    }

    /// Records that the instance is only observed.
    pub(crate) fn set_observed(&mut self) {
        self.is_observed = true;
    }

    /// Returns true if RDS has accepted a change of these fields, now or before.
    pub(crate) fn has_accepted(&self, starts_with: &str) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|(fields, outcome)| {
            has_field(fields, starts_with)
                && matches!(outcome, Outcome::Requested(_) | Outcome::Accepted)
        })
    }

    /// Returns true if RDS has accepted a change of these fields in this reconciliation.
    pub(crate) fn has_requested(&self, starts_with: &str) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|(fields, outcome)| {
            has_field(fields, starts_with) && matches!(outcome, Outcome::Requested(_))
        })
    }

    /// Returns the outcome of a field.
    pub(crate) fn of_field(&self, field: &str) -> Option<&Outcome> {
        let mut all = self.fields.iter();
        let found = all.find(|(fields, _)| fields.split(", ").any(|name| name == field));
        found.map(|(_, outcome)| outcome)
    }

    /// Returns the fields of which RDS has accepted a change in this reconciliation.
    pub(crate) fn requested_fields(&self) -> Vec<String> {
        let requested = self.fields.iter();
        let requested = requested.filter(|(_, outcome)| matches!(outcome, Outcome::Requested(_)));
        let fields = requested.flat_map(|(fields, _)| fields.split(", "));
        fields.map(String::from).collect()
    }

    /// Returns the time until RDS accepts a change of the storage, if that is what is waited for.
    pub(crate) fn cooldown(&self) -> Option<Duration> {
        let mut fields = self.fields.iter();
        fields.find_map(|(_, outcome)| match outcome {
            Outcome::Cooldown { left, .. } => *left,
            _ => None,
        })
    }

    /// Returns true if a change waits for the quota of the namespace.
    pub(crate) fn is_over_quota(&self) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|(_, outcome)| matches!(outcome, Outcome::OverQuota(_)))
    }

    pub(crate) fn add_differences(&mut self, differences: impl IntoIterator<Item = String>) {
        self.differences.extend(differences);
    }

    /// Adds an upgrade to another major version that the spec does not allow.
    pub(crate) fn add_not_allowed(&mut self, upgrade: Option<String>) {
        self.not_allowed = upgrade;
    }

    /// Adds settings that RDS applies at the next restart.
    pub(crate) fn add_waiting_for_restart(&mut self, settings: Vec<String>) {
        self.waiting_for_restart.extend(settings);
    }

    /// Adds changes that RDS applies later: in this maintenance window, if the spec demands that.
    pub(crate) fn add_pending(&mut self, changes: Vec<PendingChange>, window: Option<&str>) {
        self.pending.extend(changes);
        self.window = window.map(String::from);
    }

    /// Adds fields whose change waited for the maintenance window, and which RDS applies with one that does not wait.
    pub(crate) fn add_applied_early(&mut self, fields: impl IntoIterator<Item = String>) {
        self.applied_early.extend(fields);
    }

    /// Returns true if a change is requested once the status of the object is stored.
    pub(crate) fn has_next(&self) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|(_, outcome)| *outcome == Outcome::Next)
    }

    /// Returns true if a change is in progress, so that RDS is asked again soon.
    pub(crate) fn is_in_progress(&self) -> bool {
        let mut fields = self.fields.iter();
        let in_progress = |outcome: &Outcome| match outcome {
            Outcome::Requested(_)
            | Outcome::Accepted
            | Outcome::Busy(_)
            | Outcome::Failed(_)
            | Outcome::Next => true,
            Outcome::Unanswered { is_final, .. } => !is_final,
            Outcome::Rejected(_)
            | Outcome::TakenBack(_)
            | Outcome::Cooldown { .. }
            | Outcome::OverQuota(_)
            | Outcome::Observed => false,
        };
        fields.any(|(_, it)| in_progress(it)) || !self.pending.is_empty() && self.window.is_none()
    }

    /// Returns the condition `Synced`.
    pub(crate) fn condition(&self) -> OperatorCondition {
        let notes = self.notes();
        OperatorCondition {
            type_: SYNCED,
            is_true: notes.is_empty(),
            reason: self.reason(),
            message: if notes.is_empty() {
                "the instance matches the spec".to_owned()
            } else if self.is_observed {
                format!(
                    "nothing is changed, because `managementPolicy` is Observe: {}",
                    notes.join("; ")
                )
            } else {
                notes.join("; ")
            },
        }
    }

    /// Returns what keeps the instance from matching the spec, one sentence each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let fields = self.fields.iter().map(|(fields, outcome)| match outcome {
            Outcome::Requested(effects) => format!("RDS is changing {}", described(effects)),
            Outcome::Observed => format!("{fields}: RDS has another value"),
            Outcome::OverQuota(message) => {
                format!("the change of {fields} is not requested: {message}")
            }
            Outcome::Next => format!("the change of {fields} is requested next"),
            Outcome::Accepted => {
                format!("RDS has accepted the change of {fields} and has not applied it yet")
            }
            Outcome::Busy(None) => format!("RDS cannot change {fields} at the moment"),
            Outcome::Busy(Some(message)) => {
                format!("RDS cannot change {fields} at the moment: {message}")
            }
            Outcome::Rejected(message) => {
                format!("RDS has rejected the change of {fields}: {message}")
            }
            Outcome::TakenBack(message) | Outcome::Unanswered { message, .. } => message.clone(),
            Outcome::Failed(message) => {
                format!("the change of {fields} could not be requested, and is requested again: {message}")
            }
            Outcome::Cooldown { left, message } => {
                let mut note = format!(
                    "RDS changes {fields} only some hours after the last change of the storage"
                );
                if let Some(left) = left {
                    note += &format!(", in about {} minutes", left.as_secs().div_ceil(60));
                }
                if let Some(message) = message {
                    note += &format!(": {message}");
                }
                note
            }
        });
        let when = self.window.as_ref().map_or("later".to_owned(), |window| {
            format!("in the maintenance window {window}")
        });
        let pending = self.pending.iter();
        let pending = pending.map(move |change| {
            let PendingChange { field, effect } = change;
            let effect = effect.map_or(String::new(), |effect| format!(", {}", effect.words()));
            format!("RDS has accepted the change of {field} and applies it {when}{effect}")
        });
        fields
            .chain(pending)
            .chain(self.not_allowed.clone())
            .chain(self.waiting_for_restart.iter().cloned())
            .chain(self.differences.iter().cloned())
            .collect()
    }

    /// Returns the Events about this reconciliation: one for all that was requested, and one for each rejection.
    pub(crate) fn events(&self) -> Vec<OperatorEvent> {
        let mut requested = Vec::new();
        let mut events = Vec::new();
        for (fields, outcome) in &self.fields {
            match outcome {
                Outcome::Requested(effects) => requested.extend_from_slice(effects),
                Outcome::TakenBack(message) => events.push(OperatorEvent {
                    is_warning: true,
                    reason: taken_back_reason(fields),
                    note: message.clone(),
                }),
                Outcome::Unanswered {
                    message,
                    is_final: true,
                } => events.push(OperatorEvent {
                    is_warning: true,
                    reason: OUTCOME_UNKNOWN,
                    note: message.clone(),
                }),
                Outcome::Rejected(message) => events.push(OperatorEvent {
                    is_warning: true,
                    reason: REJECTED,
                    note: format!("RDS has rejected the change of {fields}: {message}"),
                }),
                _ => {}
            }
        }
        if !requested.is_empty() {
            let requested = described(&requested);
            let event = OperatorEvent {
                is_warning: false,
                reason: REQUESTED,
                note: format!("requested a change from RDS, as the spec says: {requested}"),
            };
            events.insert(0, event);
        }
        if !self.applied_early.is_empty() {
            events.push(OperatorEvent {
                is_warning: true,
                reason: APPLIED_EARLY,
                note: format!(
                    "full storage does not wait for the maintenance window, and RDS applies with its growth what waits for it: {}",
                    self.applied_early.join(", ")
                ),
            });
        }
        events
    }

    /// Returns the condition `Stalled` for changes that RDS has taken back, or whose outcome stays unknown.
    pub(crate) fn stalled(&self) -> Option<Stalled> {
        let mut fields = self.fields.iter();
        fields.find_map(|(fields, outcome)| match outcome {
            Outcome::TakenBack(message) => Some(Stalled {
                reason: taken_back_reason(fields),
                message: message.clone(),
            }),
            Outcome::Unanswered {
                message,
                is_final: true,
            } => Some(Stalled {
                reason: OUTCOME_UNKNOWN,
                message: message.clone(),
            }),
            _ => None,
        })
    }

    /// Returns the most important reason why the instance does not match the spec.
    fn reason(&self) -> &'static str {
        let has = |is: fn(&Outcome) -> bool| self.fields.iter().any(|(_, it)| is(it));
        if self.is_observed {
            let differs = !self.fields.is_empty()
                || !self.differences.is_empty()
                || self.not_allowed.is_some();
            return if differs {
                "ObservedDifferent"
            } else {
                "Observed"
            };
        }
        if let Some(stalled) = self.stalled() {
            stalled.reason
        } else if has(|it| matches!(it, Outcome::Rejected(_))) {
            "Rejected"
        } else if has(|outcome| matches!(outcome, Outcome::Unanswered { .. })) {
            OUTCOME_UNKNOWN
        } else if has(|it| matches!(it, Outcome::Failed(_))) {
            "CallFailed"
        } else if has(|outcome| matches!(outcome, Outcome::OverQuota(_))) {
            "QuotaExceeded"
        } else if has(|outcome| matches!(outcome, Outcome::Cooldown { .. })) {
            "StorageCooldown"
        } else if !self.fields.is_empty() {
            "Modifying"
        } else if self.not_allowed.is_some() {
            "UpgradeNotAllowed"
        } else if !self.pending.is_empty() {
            "Pending"
        } else if !self.waiting_for_restart.is_empty() {
            "RestartPending"
        } else if !self.differences.is_empty() {
            "Different"
        } else {
            "Synced"
        }
    }
}

/// Returns the reason of changes of these joined fields that RDS has taken back.
fn taken_back_reason(fields: &str) -> &'static str {
    if has_field(fields, EngineVersion::FIELD) {
        UPGRADE_FAILED
    } else {
        CHANGE_TAKEN_BACK
    }
}

/// Returns true if one of the joined fields starts with a text.
fn has_field(fields: &str, starts_with: &str) -> bool {
    let mut fields = fields.split(", ");
    fields.any(|field| field.starts_with(starts_with))
}

/// Returns fields with the words for their effects. Fields with the same words are listed together.
fn described(effects: &[(&str, String)]) -> String {
    let mut parts: Vec<(&str, String)> = Vec::new();
    for (field, words) in effects {
        match parts.iter_mut().find(|(known, _)| known == words) {
            Some((_, fields)) => *fields += &format!(", {field}"),
            None => parts.push((words, (*field).to_owned())),
        }
    }
    let parts = parts.into_iter();
    let parts = parts.map(|(words, fields)| format!("{fields} {words}").trim_end().to_owned());
    parts.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(effects: &[(&'static str, &str)]) -> Outcome {
        let effects = effects.iter();
        Outcome::Requested(
            effects
                .map(|(field, it)| (*field, (*it).to_owned()))
                .collect(),
        )
    }

    fn condition(outcomes: &[(&str, Outcome)]) -> (bool, &'static str, String) {
        let mut all = Outcomes::default();
        for (field, outcome) in outcomes {
            all.add(&[*field], outcome.clone());
        }
        let condition = all.condition();
        (condition.is_true, condition.reason, condition.message)
    }

    #[test]
    fn the_instance_is_synced_if_nothing_is_left() {
        assert!(condition(&[]).0);
        let (is_synced, reason, message) = condition(&[
            ("port", requested(&[("port", "")])),
            (
                "instanceClass",
                Outcome::Rejected("InvalidParameterValue: no".to_owned()),
            ),
            (
                "storage.sizeGib",
                Outcome::Cooldown {
                    left: Some(Duration::from_secs(601)),
                    message: Some("InvalidParameterCombination: wait".to_owned()),
                },
            ),
        ]);
        assert_eq!((is_synced, reason), (false, "Rejected"));
        let parts = [
            "RDS is changing port",
            "instanceClass: InvalidParameterValue: no",
            "in about 11 minutes: InvalidParameterCombination: wait",
        ];
        for part in parts {
            assert!(message.contains(part), "{message}");
        }
        let mut different = Outcomes::default();
        different.add_differences(["its storage is not encrypted".to_owned()]);
        assert_eq!(different.condition().reason, "Different");
        assert!(!different.is_in_progress());
        let mut restart = Outcomes::default();
        restart.add_waiting_for_restart(vec!["the parameters".to_owned()]);
        assert_eq!(restart.condition().reason, "RestartPending");
        assert!(!restart.is_in_progress(), "no restart is requested");
        restart.add_not_allowed(Some("it runs version 16".to_owned()));
        assert_eq!(restart.condition().reason, "UpgradeNotAllowed");
        let change = |effect| PendingChange {
            field: "multiAz".to_owned(),
            effect,
        };
        let mut pending = Outcomes::default();
        pending.add_pending(vec![change(None)], None);
        assert_eq!(pending.condition().reason, "Pending");
        assert!(pending.is_in_progress());
        let mut waiting = Outcomes::default();
        let failover = change(Some(Effect::Failover));
        waiting.add_pending(vec![failover], Some("sun:05:00-sun:06:00"));
        let message = waiting.condition().message;
        let expected =
            "in the maintenance window sun:05:00-sun:06:00, with a failover to the standby";
        assert!(message.ends_with(expected), "{message}");
        assert!(!waiting.is_in_progress(), "it may take a week");
    }

    #[test]
    fn a_change_that_rds_has_taken_back_stalls_the_object_and_is_a_warning() {
        for (field, reason) in [
            ("engineVersion", UPGRADE_FAILED),
            ("multiAz", CHANGE_TAKEN_BACK),
        ] {
            let mut all = Outcomes::default();
            all.add(&[field], Outcome::TakenBack("see RDS".to_owned()));
            assert_eq!(all.stalled().map(|it| it.reason), Some(reason));
            assert_eq!(all.condition().reason, reason);
            let events = all.events();
            assert!(events[0].is_warning && events[0].reason == reason);
            assert!(!all.is_in_progress());
        }
    }

    #[test]
    fn an_instance_that_is_observed_differs_or_not() {
        let mut same = Outcomes::default();
        same.set_observed();
        let condition = same.condition();
        assert_eq!((condition.is_true, condition.reason), (true, "Observed"));
        let mut different = Outcomes::default();
        different.set_observed();
        different.add(&["port", "multiAz"], Outcome::Observed);
        let condition = different.condition();
        let expected = (false, "ObservedDifferent");
        assert_eq!((condition.is_true, condition.reason), expected);
        assert!(condition.message.contains("port, multiAz"));
        assert!(!different.is_in_progress());
        assert!(different.events().is_empty());
    }

    #[test]
    fn a_request_is_a_normal_event_and_a_rejection_a_warning() {
        let mut all = Outcomes::default();
        all.add(&["port"], requested(&[("port", "now, with a restart")]));
        let online = [("multiAz", "now"), ("optionGroup", "now")];
        all.add(&["multiAz", "optionGroup"], requested(&online));
        all.add(&["network.networkType"], Outcome::Accepted);
        all.add(&["instanceClass"], Outcome::Rejected("no".to_owned()));
        let events = all.events();
        let events: Vec<_> = events.iter().map(|it| (it.is_warning, it.reason)).collect();
        assert_eq!(events, [(false, REQUESTED), (true, REJECTED)]);
        let note = &all.events()[0].note;
        let expected = "as the spec says: port now, with a restart; multiAz, optionGroup now";
        assert!(note.ends_with(expected), "{note}");
    }
}
