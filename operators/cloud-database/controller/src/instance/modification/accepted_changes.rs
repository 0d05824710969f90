//! Changes that can interrupt clients, recorded in the status of the object before they are requested, until the instance
//! has them.
//!
//! record → request, in the next reconciliation → accepted → applied, or taken back
//!
//! RDS can accept a change, interrupt the database for it, fail, and take it back. There is one attempt for each consent of
//! the user: a change that RDS has taken back, or whose outcome is unknown, is reported, and requested again only if the
//! field or its consent changes, or a user requests a reconciliation. The outcome is unknown if the answer of RDS was
//! lost, or if the process that has recorded the change has ended before it recorded the answer.

use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use lockstep_cloud_database_api::{
    AcceptedChange, ApplyChanges, CloudDatabaseSpec, version_matches,
};

use crate::clock;
use crate::instance::drift;
use crate::instance::instance_status::{self, Accepts};
use crate::instance::modification::Modification;
use crate::instance::modification::outcomes::{Outcome, Outcomes};
use crate::instance::modification::unaccepted_changes::{Knowledge, UnacceptedChange};
use crate::settings::{CaCertificate, EngineVersion, InstanceClass, MultiAz, OptionGroup, Setting};

/// Fields whose changes are recorded.
const FIELDS: [&str; 5] = [
    InstanceClass::FIELD,
    EngineVersion::FIELD,
    MultiAz::FIELD,
    OptionGroup::FIELD,
    CaCertificate::FIELD,
];

/// Statuses of an instance that RDS is changing.
const CHANGING: [&str; 4] = ["maintenance", "modifying", "rebooting", "upgrading"];

/// Time after which RDS certainly shows a change that it has accepted.
const SHOWN_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// The same for one that waits for the maintenance window, which opens once a week. RDS does not report all that waits.
const IN_WINDOW_SHOWN_AFTER: SignedDuration = SignedDuration::from_hours(8 * 24);

/// State of a change that RDS has accepted, as a description shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// The instance has the value, and RDS is not changing it.
    Applied,
    /// RDS reports that the change waits, or that it is changing the instance, for a change that does not wait for the
    /// maintenance window.
    InProgress,
    /// RDS does something else with the instance.
    Busy,
    /// RDS does nothing with the instance, which has another value.
    Absent,
}

/// Recorded changes as a comparison shows them.
#[derive(Debug, Default)]
pub(crate) struct Review {
    /// Changes that RDS has accepted, or may have.
    pub(crate) settled: Vec<AcceptedChange>,
    /// Changes that were not made since they were recorded.
    pub(crate) not_made: Vec<AcceptedChange>,
    /// Knowledge about the settled ones whose answer was lost.
    observed: Vec<UnacceptedChange>,
}

/// Record of the change of a field.
enum Recorded<'a> {
    Settled(&'a AcceptedChange),
    NotMade(&'a AcceptedChange),
}

impl Review {
    fn of_field(&self, field: &str) -> Option<Recorded<'_>> {
        let of_field = |record: &&AcceptedChange| record.field == field;
        let settled = self.settled.iter().find(of_field).map(Recorded::Settled);
        settled.or_else(|| self.not_made.iter().find(of_field).map(Recorded::NotMade))
    }
}

/// Records after the requests of a reconciliation.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Records of the status.
    pub(crate) stored: Vec<AcceptedChange>,
    /// Knowledge of this process about those that RDS has not accepted, and about those that it has refused.
    pub(crate) unaccepted: Vec<UnacceptedChange>,
}

/// Comparison of an instance with the spec, in which accepted changes are looked for.
pub(crate) struct Comparison<'a> {
    pub(crate) spec: &'a CloudDatabaseSpec,
    pub(crate) instance: &'a DbInstance,
    /// Differences.
    pub(crate) change: &'a Modification,
    pub(crate) now: Timestamp,
    /// Time for which the instance must be idle without the change, so that more than one description shows it.
    pub(crate) idle_for: SignedDuration,
}

impl<'a> Comparison<'a> {
    /// Creates the comparison at the present time. An instance must be idle for a poll interval.
    pub(crate) fn new(
        spec: &'a CloudDatabaseSpec,
        instance: &'a DbInstance,
        change: &'a Modification,
        poll_interval: Duration,
    ) -> Self {
        Self {
            spec,
            instance,
            change,
            now: clock::now(),
            idle_for: SignedDuration::try_from(poll_interval).unwrap_or(SignedDuration::MAX),
        }
    }

    /// Returns the recorded changes as this comparison shows them, with what this process knows about those that RDS has not
    /// accepted. Changes that are applied, and those whose field or consent has changed, are left out. If a user has
    /// requested the reconciliation, so are those whose outcome is unknown, while RDS is not changing the instance.
    pub(crate) fn review(
        &self,
        records: &[AcceptedChange],
        unaccepted: &[UnacceptedChange],
        is_requested: bool,
    ) -> Review {
        let mut review = Review::default();
        for record in records.iter().filter(|record| self.is_wanted(record)) {
            let known = unaccepted.iter().find(|change| change.is(record));
            let shown = self.shown(&record.field);
            let knowledge = match known.map(|change| change.knowledge) {
                Some(knowledge @ Knowledge::Unanswered { .. }) if shown == Shown::Absent => {
                    knowledge.after_idle(self.now, SHOWN_AFTER)
                }
                Some(Knowledge::Unanswered { .. }) | None => None,
                Some(Knowledge::NotMade) => {
                    review.not_made.push(record.clone());
                    continue;
                }
            };
            let next = match knowledge {
                // It is recorded anew.
                Some(Knowledge::NotMade) => None,
                Some(Knowledge::Unanswered { .. }) => Some(record.clone()),
                None => next(record, shown, self),
            };
            let is_another_attempt = is_requested && !self.is_changing();
            let next = next.filter(|record| record.accepted_at.is_some() || !is_another_attempt);
            if let (Some(next), Some(knowledge)) = (&next, knowledge) {
                review.observed.push(UnacceptedChange {
                    record: next.clone(),
                    knowledge,
                });
            }
            review.settled.extend(next);
        }
        review.settled.extend(self.missing(&review));
        review
    }

    /// Returns records of changes in progress that have none: an earlier release may have requested them, or another client.
    fn missing(&self, review: &Review) -> Vec<AcceptedChange> {
        let missing = FIELDS.into_iter().filter(|field| {
            self.is_changing()
                && self.is_pending(field)
                && self.pends_as_wanted(field)
                && review.of_field(field).is_none()
        });
        let missing = missing.filter_map(|field| self.record(field));
        missing
            .map(|record| AcceptedChange {
                accepted_at: Some(time(self.now)),
                began: true,
                ..record
            })
            .collect()
    }

    /// Returns the fields whose changes must be recorded before they are requested.
    pub(crate) fn unrecorded(&self, review: &Review) -> Vec<&'static str> {
        let open = FIELDS.into_iter().filter(|field| {
            let is_requested = requested(self.change, field).is_some();
            is_requested && self.requests_wanted(field) && review.of_field(field).is_none()
        });
        open.collect()
    }

    /// Returns the records after the requests of this reconciliation: those of changes that RDS has accepted, or may have, and
    /// of those that are requested next.
    pub(crate) fn records(&self, review: Review, outcomes: &Outcomes) -> Records {
        let mut records = Records::default();
        for field in FIELDS {
            let outcome = outcomes.of_field(field);
            let is_accepted = matches!(outcome, Some(Outcome::Requested(_) | Outcome::Accepted));
            let accepted_at = is_accepted.then(|| time(self.now));
            let is_next = outcome == Some(&Outcome::Next);
            match review.of_field(field) {
                Some(Recorded::Settled(record)) => records.stored.push(AcceptedChange {
                    accepted_at: record.accepted_at.clone().or(accepted_at),
                    ..record.clone()
                }),
                Some(Recorded::NotMade(record)) if is_accepted => {
                    records.stored.push(AcceptedChange {
                        accepted_at,
                        ..record.clone()
                    });
                }
                Some(Recorded::NotMade(record)) => {
                    let change = match outcome {
                        Some(Outcome::Unanswered { .. }) => {
                            UnacceptedChange::unanswered(record.clone(), self.now)
                        }
                        _ => UnacceptedChange::not_made(record.clone()),
                    };
                    // If RDS has refused it, another attempt has a record of its own.
                    if is_next || change.knowledge != Knowledge::NotMade {
                        records.stored.push(record.clone());
                    }
                    records.unaccepted.push(change);
                }
                None if (is_accepted || is_next) && self.requests_wanted(field) => {
                    let Some(record) = self.record(field) else {
                        continue;
                    };
                    if is_next {
                        let change = UnacceptedChange::not_made(record.clone());
                        records.unaccepted.push(change);
                    }
                    records.stored.push(AcceptedChange {
                        accepted_at,
                        ..record
                    });
                }
                None => {}
            }
        }
        records.unaccepted.extend(review.observed);
        records
    }

    /// Returns the record of a change to what the spec says.
    fn record(&self, field: &str) -> Option<AcceptedChange> {
        Some(AcceptedChange {
            field: field.to_owned(),
            target: wanted(self.spec, field)?,
            consent: consent(self.spec, field),
            requested_at: Some(time(self.now)),
            ..AcceptedChange::default()
        })
    }

    /// Returns true if the spec demands the recorded change with the same consent.
    fn is_wanted(&self, record: &AcceptedChange) -> bool {
        wanted(self.spec, &record.field).as_ref() == Some(&record.target)
            && consent(self.spec, &record.field) == record.consent
    }

    fn shown(&self, field: &str) -> Shown {
        let is_pending = self.is_pending(field);
        let status = self.instance.db_instance_status().unwrap_or_default();
        let accepts = instance_status::meaning(status).accepts;
        // In the maintenance window, RDS may change the instance for another reason.
        let is_immediate = self.spec.apply_changes == ApplyChanges::Immediately;
        let differs = self.change.fields().contains(&field);
        if !is_pending && !differs && !self.is_changing() {
            Shown::Applied
        } else if is_pending || is_immediate && self.is_changing() {
            Shown::InProgress
        } else if matches!(accepts, Accepts::All | Accepts::AllButStorage) && !self.is_changing() {
            Shown::Absent
        } else {
            Shown::Busy
        }
    }

    fn is_changing(&self) -> bool {
        let status = self.instance.db_instance_status().unwrap_or_default();
        CHANGING.contains(&status)
    }

    fn is_pending(&self, field: &str) -> bool {
        match field {
            OptionGroup::FIELD => self.option_group_status().is_some_and(|status| {
                status == "applying" || status.starts_with("pending") && status.ends_with("apply")
            }),
            _ => drift::pending(self.instance).iter().any(|it| it == field),
        }
    }

    fn option_group_status(&self) -> Option<&str> {
        let wanted = self.spec.option_group.as_deref()?;
        let mut groups = self.instance.option_group_memberships().iter();
        let group = groups.find(|it| {
            let name = it.option_group_name();
            name.is_some_and(|name| name.eq_ignore_ascii_case(wanted))
        });
        group?.status()
    }

    /// Returns true if RDS reports what the spec says as pending.
    fn pends_as_wanted(&self, field: &str) -> bool {
        let Some(wanted) = wanted(self.spec, field) else {
            return false;
        };
        let Some(pending) = self.instance.pending_modified_values() else {
            return field == OptionGroup::FIELD;
        };
        match field {
            InstanceClass::FIELD => pending.db_instance_class() == Some(&wanted),
            EngineVersion::FIELD => {
                let version = pending.engine_version();
                version.is_some_and(|version| version_matches(&wanted, version))
            }
            MultiAz::FIELD => pending.multi_az() == self.spec.multi_az,
            CaCertificate::FIELD => pending.ca_certificate_identifier() == Some(&wanted),
            _ => true,
        }
    }

    /// Returns true if the change requests what the spec says, and not that a change is taken back.
    fn requests_wanted(&self, field: &str) -> bool {
        requested(self.change, field) == wanted(self.spec, field)
    }
}

/// Returns the record of a change after a description, or `None` if the instance has it.
fn next(
    record: &AcceptedChange,
    shown: Shown,
    comparison: &Comparison<'_>,
) -> Option<AcceptedChange> {
    let mut next = record.clone();
    match shown {
        Shown::Applied => return None,
        _ if record.failed => {}
        Shown::InProgress => {
            next.began = true;
            next.absent_since = None;
            let is_shown =
                |field: &str| comparison.is_pending(field) && comparison.pends_as_wanted(field);
            if record.accepted_at.is_none() && is_shown(&record.field) {
                next.accepted_at = Some(time(comparison.now));
            }
        }
        Shown::Busy => next.absent_since = None,
        Shown::Absent => {
            let now = comparison.now;
            let age = |since: &str| {
                let since = since.parse::<Timestamp>().unwrap_or(now);
                now.duration_since(since)
            };
            let shown_after = match (comparison.spec.apply_changes, &record.accepted_at) {
                (ApplyChanges::MaintenanceWindow, Some(_)) => IN_WINDOW_SHOWN_AFTER,
                (ApplyChanges::MaintenanceWindow, None) | (ApplyChanges::Immediately, _) => {
                    SHOWN_AFTER
                }
            };
            let since = record.accepted_at.as_ref().or(record.requested_at.as_ref());
            let is_old = since.is_none_or(|since| age(since) >= shown_after);
            if record.began || is_old {
                match &record.absent_since {
                    // One answer proves nothing.
                    None => next.absent_since = Some(time(now)),
                    Some(since) => next.failed = age(since) >= comparison.idle_for,
                }
            }
        }
    }
    Some(next)
}

/// When a change is requested again.
const NEXT_ATTEMPT: &str = "It is not requested again before the field or its consent changes, or the annotation lockstep.dev/reconcile-requested-at gets a new value";

/// Returns the outcome of a group of fields that RDS has accepted before, or may have, if one of them is recorded.
pub(crate) fn outcome(records: &[AcceptedChange], group: &Modification) -> Option<Outcome> {
    let of_group: Vec<_> = records
        .iter()
        .filter(|record| requested(group, &record.field).as_ref() == Some(&record.target))
        .collect();
    let first = |is: fn(&AcceptedChange) -> bool| of_group.iter().find(|record| is(record));
    let found = first(|record| record.failed)
        .or_else(|| first(|record| record.accepted_at.is_none()))
        .or_else(|| first(|_| true))?;
    let AcceptedChange { field, target, .. } = found;
    Some(match (&found.accepted_at, found.failed) {
        (Some(_), false) => Outcome::Accepted,
        (Some(at), true) => Outcome::TakenBack(format!(
            "RDS accepted the change of {field} to '{target}' at {at} and has taken it back: see the events and logs of the instance in RDS. {NEXT_ATTEMPT}"
        )),
        (None, is_final) => Outcome::Unanswered {
            message: format!(
                "the change of {field} to '{target}' was to be requested at {}, and it is not known whether RDS has received it and taken it back: see the events of the instance in RDS. {NEXT_ATTEMPT}",
                found.requested_at.as_deref().unwrap_or("an unknown time")
            ),
            is_final,
        },
    })
}

/// Returns the outcome of a change of these fields whose answer was lost.
pub(crate) fn unanswered(fields: &[&str], error: &str) -> Outcome {
    Outcome::Unanswered {
        message: format!(
            "it is not known whether RDS makes the change of {}, because its answer was lost: {error}. {NEXT_ATTEMPT}",
            fields.join(", ")
        ),
        is_final: false,
    }
}

/// Returns the value that a modification requests for a field.
fn requested(change: &Modification, field: &str) -> Option<String> {
    match field {
        InstanceClass::FIELD => change.get::<InstanceClass>().cloned(),
        EngineVersion::FIELD => {
            let upgrade = change.get::<EngineVersion>();
            upgrade.map(|upgrade| upgrade.version.clone())
        }
        MultiAz::FIELD => change.get::<MultiAz>().map(ToString::to_string),
        OptionGroup::FIELD => change.get::<OptionGroup>().cloned(),
        CaCertificate::FIELD => change.get::<CaCertificate>().cloned(),
        _ => None,
    }
}

/// Returns the value of a field in the spec.
fn wanted(spec: &CloudDatabaseSpec, field: &str) -> Option<String> {
    match field {
        InstanceClass::FIELD => InstanceClass::desired(spec),
        EngineVersion::FIELD => EngineVersion::desired(spec).map(|upgrade| upgrade.version),
        MultiAz::FIELD => MultiAz::desired(spec).map(|is_multi_az| is_multi_az.to_string()),
        OptionGroup::FIELD => OptionGroup::desired(spec),
        CaCertificate::FIELD => CaCertificate::desired(spec),
        _ => None,
    }
}

/// Returns the consent of the spec to a change of a field.
fn consent(spec: &CloudDatabaseSpec, field: &str) -> String {
    let when = match spec.apply_changes {
        ApplyChanges::Immediately => "Immediately",
        ApplyChanges::MaintenanceWindow => "MaintenanceWindow",
    };
    match &spec.allow_major_version_upgrade {
        Some(version) if field == EngineVersion::FIELD => format!("{when}, {version}"),
        _ => when.to_owned(),
    }
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests;
