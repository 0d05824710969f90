//! Changes that can interrupt clients and that RDS has accepted, recorded in the status of the object until the instance
//! has them.
//!
//! RDS can accept a change, interrupt the database for it, fail, and take it back. It is accepted once for each consent of
//! the user: one that RDS has taken back is reported, and requested again only if the field or its consent changes, or a
//! user requests a reconciliation.

use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use lockstep_cloud_database_api::{
    AcceptedChange, ApplyChanges, CloudDatabaseSpec, version_matches,
};

use crate::drift;
use crate::instance_status::{self, Accepts};
use crate::modification::Modification;
use crate::modification::outcomes::{ENGINE_VERSION, Outcome, Outcomes};

/// Fields whose changes are recorded.
const FIELDS: [&str; 5] = [
    "instanceClass",
    ENGINE_VERSION,
    "multiAz",
    "optionGroup",
    "caCertificate",
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
            now: Timestamp::now(),
            idle_for: SignedDuration::try_from(poll_interval).unwrap_or(SignedDuration::MAX),
        }
    }

    /// Returns the accepted changes as this comparison shows them. Those that are applied, and those whose field or consent
    /// has changed, are left out.
    pub(crate) fn review(&self, records: &[AcceptedChange]) -> Vec<AcceptedChange> {
        let mut reviewed: Vec<_> = records
            .iter()
            .filter(|record| self.is_wanted(record))
            .filter_map(|record| next(record, self.shown(&record.field), self))
            .collect();
        // The process may have ended after the call, before the status was written.
        let missing = FIELDS.into_iter().filter(|field| {
            self.is_changing()
                && self.is_pending(field)
                && self.pends_as_wanted(field)
                && reviewed.iter().all(|record| record.field != *field)
        });
        let missing: Vec<_> = missing.filter_map(|field| self.record(field)).collect();
        reviewed.extend(missing.into_iter().map(|record| AcceptedChange {
            began: true,
            ..record
        }));
        reviewed
    }

    /// Adds the changes that RDS has accepted in this reconciliation, or before as the process remembers.
    pub(crate) fn add_accepted(&self, records: &mut Vec<AcceptedChange>, outcomes: &Outcomes) {
        for field in FIELDS {
            let is_new = records.iter().all(|record| record.field != field);
            if is_new
                && outcomes.has_accepted(field)
                && self.requests_wanted(field)
                && let Some(record) = self.record(field)
            {
                records.push(record);
            }
        }
    }

    /// Returns the record of a change to what the spec says.
    fn record(&self, field: &str) -> Option<AcceptedChange> {
        Some(AcceptedChange {
            field: field.to_owned(),
            target: wanted(self.spec, field)?,
            consent: consent(self.spec, field),
            accepted_at: time(self.now),
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
            "optionGroup" => self.option_group_status().is_some_and(|status| {
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
            return field == "optionGroup";
        };
        match field {
            "instanceClass" => pending.db_instance_class() == Some(&wanted),
            ENGINE_VERSION => {
                let version = pending.engine_version();
                version.is_some_and(|version| version_matches(&wanted, version))
            }
            "multiAz" => pending.multi_az() == self.spec.multi_az,
            "caCertificate" => pending.ca_certificate_identifier() == Some(&wanted),
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
        }
        Shown::Busy => next.absent_since = None,
        Shown::Absent => {
            let now = comparison.now;
            let age = |since: &str| {
                let since = since.parse::<Timestamp>().unwrap_or(now);
                now.duration_since(since)
            };
            let shown_after = match comparison.spec.apply_changes {
                ApplyChanges::Immediately => SHOWN_AFTER,
                ApplyChanges::MaintenanceWindow => IN_WINDOW_SHOWN_AFTER,
            };
            if record.began || age(&record.accepted_at) >= shown_after {
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

/// Returns the outcome of a group of fields that RDS has accepted before, if one of them is recorded.
pub(crate) fn outcome(records: &[AcceptedChange], group: &Modification) -> Option<Outcome> {
    let of_group = |record: &&AcceptedChange| {
        requested(group, &record.field).is_some_and(|target| target == record.target)
    };
    let mut found = records.iter().filter(of_group);
    let failed = records.iter().filter(of_group).find(|it| it.failed);
    match failed {
        Some(record) => Some(Outcome::TakenBack(format!(
            "RDS accepted the change of {} to '{}' at {} and has taken it back: see the events and logs of the instance in RDS. It is not requested again before the field or its consent changes, or the annotation lockstep.dev/reconcile-requested-at gets a new value",
            record.field, record.target, record.accepted_at
        ))),
        None => found.next().map(|_| Outcome::Accepted),
    }
}

/// Returns the value that a modification requests for a field.
fn requested(change: &Modification, field: &str) -> Option<String> {
    match field {
        "instanceClass" => change.instance_class.clone(),
        ENGINE_VERSION => change.engine_version.as_ref().map(|it| it.version.clone()),
        "multiAz" => change.multi_az.map(|it| it.to_string()),
        "optionGroup" => change.option_group.clone(),
        "caCertificate" => change.ca_certificate.clone(),
        _ => None,
    }
}

/// Returns the value of a field in the spec.
fn wanted(spec: &CloudDatabaseSpec, field: &str) -> Option<String> {
    match field {
        "instanceClass" => Some(spec.instance_class.clone()),
        ENGINE_VERSION => spec.engine_version.clone(),
        "multiAz" => spec.multi_az.map(|it| it.to_string()),
        "optionGroup" => spec.option_group.clone(),
        "caCertificate" => spec.ca_certificate.clone(),
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
        Some(version) if field == ENGINE_VERSION => format!("{when}, {version}"),
        _ => when.to_owned(),
    }
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests;
