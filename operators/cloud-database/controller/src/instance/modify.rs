//! Requests to modify an instance that differs from the spec of its object. The outcome of each group of fields is
//! reported, and none keeps the others from being requested.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use lockstep_cloud_database_api::effects::{Circumstance, Timing, effect_of};
use lockstep_cloud_database_api::{AcceptedChange, ApplyChanges};

use crate::aws::call_error::{CallError, OTHERS_AGAIN_AFTER};
use crate::aws::error_code::Class;
use crate::clock;
use crate::instance::instance_reconciler::InstanceReconciler;
use crate::instance::instance_status::Accepts;
use crate::instance::modification::Modification;
use crate::instance::modification::accepted_changes;
use crate::instance::modification::outcomes::{Outcome, Outcomes};
use crate::instance::modification::requested::Answer;
use crate::settings::{Call, ParameterGroup, Tags};

/// Time after a change of the storage in which RDS does not accept another one:
/// <https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_PIOPS.ModifyingExisting.html>.
const STORAGE_COOLDOWN: Duration = Duration::from_hours(6);

/// Time after which a modification is requested again that RDS has rejected because of its parameters.
const PARAMETERS_AGAIN_AFTER: Duration = Duration::from_hours(1);

/// Number of polls after which a modification is requested again that RDS has rejected because of the status of the
/// instance.
const BUSY_POLLS: u32 = 4;

/// Number of such answers in succession, while RDS reports a status in which it accepts modifications, after which the
/// modification counts as rejected: it does not wait for the status.
const BUSY_ANSWERS: u32 = 12;

/// Instance and what it accepts.
pub(crate) struct Target<'a> {
    pub(crate) id: &'a str,
    pub(crate) arn: &'a str,
    pub(crate) accepts: Accepts,
    /// Time at which RDS is to apply changes.
    pub(crate) when: ApplyChanges,
    /// Time of the last change of the storage.
    pub(crate) storage_modified_at: Option<Timestamp>,
    /// Circumstances on which the effects of changes depend.
    pub(crate) circumstances: Vec<Circumstance>,
    /// Changes that RDS has accepted before, or may have.
    pub(crate) accepted: &'a [AcceptedChange],
    /// Recorded changes that were not requested since then.
    pub(crate) recorded: &'a [AcceptedChange],
    /// Fields whose changes must be recorded before they are requested.
    pub(crate) unrecorded: &'a [&'static str],
}

impl InstanceReconciler {
    /// Requests the groups of a modification that RDS accepts in the status of the instance, unless they were requested
    /// recently.
    pub(crate) async fn modify(
        &self,
        target: &Target<'_>,
        change: Modification,
        outcomes: &mut Outcomes,
    ) {
        self.requested.retain(target.id, &change.groups());
        for request in change.requests() {
            let mut open = Vec::new();
            for group in request.groups() {
                match self.known(target, &group) {
                    Some(outcome) => outcomes.add(&group.fields(), outcome),
                    None => open.push(group),
                }
            }
            if open.iter().any(|group| target.is_unrecorded(group)) {
                // They go into one call, so that the instance restarts once.
                for group in open {
                    outcomes.add(&group.fields(), Outcome::Next);
                }
            } else {
                Box::pin(self.request(target, open, outcomes)).await;
            }
        }
    }

    /// Returns the outcome of a group of fields that is not requested now.
    fn known(&self, target: &Target<'_>, group: &Modification) -> Option<Outcome> {
        if let Some(outcome) = accepted_changes::outcome(target.accepted, group) {
            let answer = || self.requested.answer(target.id, group, target.when);
            let is_open = matches!(
                outcome,
                Outcome::Unanswered {
                    is_final: false,
                    ..
                }
            );
            // The status that records its answer was not written.
            if is_open && answer() == Some(Answer::Accepted) {
                return Some(Outcome::Accepted);
            }
            return Some(outcome);
        }
        let is_storage = group.needs(Call::Storage);
        let is_accepted = match target.accepts {
            // They do not depend on the status of the instance.
            _ if group.needs(Call::Tags) => true,
            Accepts::AllButStorage if is_storage => return Some(target.in_cooldown(None)),
            Accepts::All | Accepts::AllButStorage => true,
            Accepts::OnlyStorage => is_storage,
            Accepts::OnlyParameterGroup => group.has::<ParameterGroup>(),
            Accepts::Nothing => false,
        };
        if !is_accepted {
            return Some(Outcome::Busy(None));
        }
        match self.requested.answer(target.id, group, target.when)? {
            Answer::Accepted => Some(Outcome::Accepted),
            Answer::Busy { message, .. }
                if target.is_lasting(self.requested.busy_answers(target.id, group)) =>
            {
                Some(Outcome::Rejected(message))
            }
            Answer::Busy { message, .. } => Some(Outcome::Busy(Some(message))),
            Answer::Rejected {
                message,
                is_cooldown: true,
            } => Some(target.in_cooldown(Some(message))),
            Answer::Rejected { message, .. } => Some(Outcome::Rejected(message)),
        }
    }

    /// Requests these groups in one call. If RDS rejects it, each of them is requested alone.
    async fn request(
        &self,
        target: &Target<'_>,
        groups: Vec<Modification>,
        outcomes: &mut Outcomes,
    ) {
        if groups.is_empty() {
            return;
        }
        let is_one = groups.len() == 1;
        let has_recorded = groups.iter().any(|group| target.is_recorded(group));
        let result = self
            .call(target, Modification::from_parts(groups.clone()))
            .await;
        match result {
            // RDS also answers that an available instance is in a wrong state if one field is not for it, such as backups of a
            // replica.
            Err(error)
                if !(is_one || has_recorded && error.may_be_done())
                    && (error.is_rejected()
                        || error.is_busy() && target.accepts == Accepts::All) =>
            {
                for group in groups {
                    let result = self.call(target, group.clone()).await;
                    self.settle(target, vec![group], &result, outcomes);
                }
            }
            result => self.settle(target, groups, &result, outcomes),
        }
    }

    async fn call(&self, target: &Target<'_>, change: Modification) -> Result<(), CallError> {
        let (id, when) = (target.id, target.when);
        let fields = change.fields().join(", ");
        tracing::info!(instance = id, fields, "requesting a modification from RDS");
        let Some(tags) = change.get::<Tags>() else {
            return Box::pin(self.rds.modify(id, &change, when)).await.map(drop);
        };
        if !tags.set.is_empty() {
            self.rds.tag(target.arn, &tags.set).await?;
        }
        if !tags.removed.is_empty() {
            self.rds.untag(target.arn, tags.removed.clone()).await?;
        }
        Ok(())
    }

    /// Remembers and reports the result of a request.
    fn settle(
        &self,
        target: &Target<'_>,
        groups: Vec<Modification>,
        result: &Result<(), CallError>,
        outcomes: &mut Outcomes,
    ) {
        let has_recorded = groups.iter().any(|group| target.is_recorded(group));
        for group in groups {
            let fields = group.fields();
            let outcome = match result {
                Ok(()) => {
                    let waits = target.waits(&fields);
                    self.requested
                        .accepted(target.id, group, target.when, waits);
                    Outcome::Requested(target.effects(&fields))
                }
                Err(error) if error.may_be_done() && target.is_recorded(&group) => {
                    accepted_changes::unanswered(&fields, &error.text())
                }
                // The error can be the effect of an earlier attempt.
                Err(error) if error.may_be_done() && has_recorded => Outcome::Failed(error.text()),
                Err(error) if error.is_busy() => self.busy(target, group, error),
                Err(error) if error.is_rejected() => self.rejected(target, group, error),
                Err(error) => Outcome::Failed(error.text()),
            };
            outcomes.add(&fields, outcome);
        }
    }

    fn busy(&self, target: &Target<'_>, group: Modification, error: &CallError) -> Outcome {
        let (id, when) = (target.id, target.when);
        let answers = self.requested.busy_answers(id, &group) + 1;
        let answer = Answer::Busy {
            message: error.text(),
            is_unexpected: target.accepts.is_open(),
        };
        let again_after = self.shared.config.poll_interval * BUSY_POLLS;
        self.requested
            .remember(id, group, when, answer, again_after);
        if target.is_lasting(answers) {
            Outcome::Rejected(error.text())
        } else {
            Outcome::Busy(Some(error.text()))
        }
    }

    fn rejected(&self, target: &Target<'_>, group: Modification, error: &CallError) -> Outcome {
        let is_cooldown = group.needs(Call::Storage) && error.is_storage_cooldown();
        let answer = Answer::Rejected {
            message: error.text(),
            is_cooldown,
        };
        let again_after = if is_cooldown {
            target.cooldown().unwrap_or(OTHERS_AGAIN_AFTER)
        } else if error.class() == Class::Object {
            PARAMETERS_AGAIN_AFTER
        } else {
            OTHERS_AGAIN_AFTER
        };
        self.requested
            .remember(target.id, group, target.when, answer, again_after);
        if is_cooldown {
            target.in_cooldown(Some(error.text()))
        } else {
            Outcome::Rejected(error.text())
        }
    }
}

impl Target<'_> {
    /// Returns when RDS applies the changes of these fields and what that does to clients, in the words of the warnings
    /// at admission.
    fn effects(&self, fields: &[&'static str]) -> Vec<(&'static str, String)> {
        let fields = fields.iter();
        let effects = fields.map(|field| {
            let effect = effect_of(field, self.when, &self.circumstances);
            (*field, effect.map_or(String::new(), |it| it.words()))
        });
        effects.collect()
    }

    /// Returns true if RDS applies a change of these fields in the maintenance window.
    fn waits(&self, fields: &[&'static str]) -> bool {
        let in_window = self.when == ApplyChanges::MaintenanceWindow;
        let mut effects = fields
            .iter()
            .filter_map(|field| effect_of(field, self.when, &self.circumstances));
        in_window && effects.any(|effect| effect.timing == Timing::AsApplyChanges)
    }

    /// Returns true if a group has a change that was recorded before this request.
    fn is_recorded(&self, group: &Modification) -> bool {
        let fields = group.fields();
        let mut recorded = self.recorded.iter();
        recorded.any(|record| fields.contains(&record.field.as_str()))
    }

    /// Returns true if a group has a change that must be recorded before.
    fn is_unrecorded(&self, group: &Modification) -> bool {
        let mut fields = group.fields().into_iter();
        fields.any(|field| self.unrecorded.contains(&field))
    }

    /// Returns true if RDS has refused a group of fields because of the status of the instance again and again, although it
    /// reports one in which it accepts modifications.
    fn is_lasting(&self, busy_answers: u32) -> bool {
        busy_answers >= BUSY_ANSWERS && self.accepts.is_open()
    }

    fn in_cooldown(&self, message: Option<String>) -> Outcome {
        Outcome::Cooldown {
            left: self.cooldown(),
            message,
        }
    }

    /// Returns the time until RDS accepts a change of the storage again, if it is known.
    fn cooldown(&self) -> Option<Duration> {
        let since = clock::now().duration_since(self.storage_modified_at?);
        let since = Duration::try_from(since).ok()?;
        STORAGE_COOLDOWN.checked_sub(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_words_of_the_warning_at_admission() {
        let target = Target {
            id: "cdb-1",
            arn: "",
            accepts: Accepts::All,
            when: ApplyChanges::MaintenanceWindow,
            storage_modified_at: None,
            circumstances: vec![Circumstance::MultiAz],
            accepted: &[],
            recorded: &[],
            unrecorded: &[],
        };
        let words = |field| target.effects(&[field])[0].1.clone();
        assert_eq!(
            words("instanceClass"),
            "in the maintenance window, with a failover to the standby"
        );
        assert_eq!(
            words("storage.iops"),
            "in the maintenance window, without an outage"
        );
        assert_eq!(
            words("parameterGroup"),
            "at the next restart of the database, which is not requested"
        );
        assert_eq!(words("the password of the master user"), "");
    }

    #[test]
    fn the_time_until_the_next_change_of_the_storage_is_six_hours_from_the_last() {
        let left = |ago: Option<i64>| {
            let now = Timestamp::now().as_second();
            let at = ago.map(|ago| Timestamp::from_second(now - ago).expect("a time"));
            let target = Target {
                id: "cdb-1",
                arn: "",
                accepts: Accepts::All,
                when: ApplyChanges::Immediately,
                storage_modified_at: at,
                circumstances: Vec::new(),
                accepted: &[],
                recorded: &[],
                unrecorded: &[],
            };
            target.cooldown().map(|left| left.as_secs().div_ceil(60))
        };
        assert_eq!(left(None), None);
        assert_eq!(left(Some(3_600)), Some(300));
        assert_eq!(left(Some(7 * 3_600)), None);
    }
}
