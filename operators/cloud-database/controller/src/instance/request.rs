//! Requests of a reconciliation, and what the status records of them.
//!
//! differences → recorded changes, as RDS shows them now → requests → status

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::CloudDatabaseStatus;

use crate::credentials::master_password::{has_pending_password, is_known};
use crate::credentials::master_user::MasterPassword;
use crate::instance::described::{Described, meaning_of};
use crate::instance::diff::Diff;
use crate::instance::instance_reconciler::InstanceReconciler;
use crate::instance::instance_status::{Accepts, STORAGE_OPTIMIZATION};
use crate::instance::modification::Modification;
use crate::instance::modification::accepted_changes::{Comparison, Records, Review};
use crate::instance::modification::outcomes::{Outcome, Outcomes};
use crate::instance::modify::Target;
use crate::instance::{applied_values, circumstances, drift, storage_record};
use crate::origin::replication::{REPLICA_OF, Replication};
use crate::settings::{Password, Setting, Size};

impl InstanceReconciler {
    /// Requests what differs from the spec, and records it. If the reconciliation `is_requested` by a user, changes of which
    /// the outcome is unknown are requested again.
    pub(crate) async fn apply(
        &self,
        described: &Described<'_>,
        diff: &Diff<'_>,
        is_requested: bool,
        status: &mut CloudDatabaseStatus,
        outcomes: &mut Outcomes,
    ) {
        let Described {
            id,
            instance,
            record,
            ..
        } = *described;
        let spec = described.spec();
        self.forget_cooldown(described);
        let poll = self.shared.config.poll_interval;
        let comparison = Comparison::new(spec, instance, &diff.change, poll);
        let reviewed = self.reviewed(described, &comparison, is_requested);
        let target = Target {
            id,
            arn: instance.db_instance_arn().unwrap_or_default(),
            accepts: described.meaning().accepts,
            when: diff.when,
            storage_modified_at: record.storage_modified_at(),
            circumstances: circumstances::of(spec, diff.when, instance, &diff.change),
            accepted: &reviewed.settled,
            recorded: &reviewed.not_made,
            unrecorded: &comparison.unrecorded(&reviewed),
        };
        if diff.change.has::<Password>() {
            // If the answer is lost, or this process ends, the instance may have either.
            self.passwords.forget(id);
        }
        let mut change = diff.change.clone();
        if diff.notes_password {
            // What goes into one call with the password waits for it.
            let [access, storage, rest, tags] = change.requests();
            outcomes.add(&rest.fields(), Outcome::Next);
            change = Modification::from_parts([access, storage, tags]);
        }
        Box::pin(self.request_changes(&target, described, &diff.replication, change, outcomes))
            .await;
        if diff.when != spec.apply_changes && outcomes.has_requested(Size::FIELD) {
            outcomes.add_applied_early(waiting_for_window(instance));
        }
        let Records { stored, unaccepted } = comparison.records(reviewed, outcomes);
        self.unaccepted.set(id, unaccepted);
        status.accepted_changes = stored;
        self.record_password(described, diff, status, outcomes);
        storage_record::record(described, status, outcomes);
        let tags = applied_values::tags(spec, instance, &record.applied_tags);
        status.applied_tags = tags.into_iter().map(String::from).collect();
        status.enforced_fields = diff
            .enforced
            .iter()
            .map(|field| (*field).to_owned())
            .collect();
        status.replica_of = diff.replication.recorded().map(String::from);
    }

    /// Records the password that the instance has, or may have.
    fn record_password(
        &self,
        described: &Described<'_>,
        diff: &Diff<'_>,
        status: &mut CloudDatabaseStatus,
        outcomes: &mut Outcomes,
    ) {
        let Described { id, instance, .. } = *described;
        let user = described.user.as_ref();
        let sends_password = diff.change.has::<Password>();
        let is_accepted = outcomes.has_accepted(Password::FIELD);
        status
            .credentials_version
            .clone_from(&diff.credentials_version);
        if let Ok(user) = user
            && is_accepted
        {
            if let MasterPassword::Known(known) = &user.password {
                self.passwords.record(id, &known.text);
            }
            if let Some(version) = user.password.version() {
                status.credentials_version = Some(version.to_owned());
            }
        }
        match user {
            Ok(user) if diff.notes_password => {
                status.requested_credentials_version = user.password.version().map(String::from);
            }
            Ok(user) if is_known(&user.password, &diff.replication) && !sends_password => {
                status.requested_credentials_version = None;
            }
            Ok(_) if is_accepted => status.requested_credentials_version = None,
            _ => {}
        }
        if described.meaning().serves && !sends_password && has_pending_password(instance) {
            // It never waits for the maintenance window.
            outcomes.add(&[Password::FIELD], Outcome::Accepted);
        }
    }

    /// Forgets that RDS has refused changes of the storage, once it has optimized that: it may accept another one before six
    /// hours have passed.
    fn forget_cooldown(&self, described: &Described<'_>) {
        if described.record.phase.as_deref() == Some(STORAGE_OPTIMIZATION)
            && described.meaning().accepts == Accepts::All
        {
            self.requested.forget_cooldown(described.id);
        }
    }

    /// Returns the recorded changes, as RDS shows them now. What is known of those that RDS has not accepted is forgotten until
    /// the requests of this reconciliation have ended.
    fn reviewed(
        &self,
        described: &Described<'_>,
        comparison: &Comparison<'_>,
        is_requested: bool,
    ) -> Review {
        let Described { id, record, .. } = *described;
        let unaccepted = self.unaccepted.take(id);
        let before = record.accepted_changes.iter();
        // A user asks for another attempt.
        let before: Vec<_> = before
            .filter(|change| !(is_requested && change.failed))
            .cloned()
            .collect();
        let reviewed = comparison.review(&before, &unaccepted, is_requested);
        let failed = reviewed.settled.iter().filter(|change| change.failed);
        let failed = failed.map(|change| change.field.as_str());
        let was_failed = |field: &str| {
            before
                .iter()
                .any(|change| change.failed && change.field == field)
        };
        let newly: Vec<_> = failed.filter(|field| !was_failed(field)).collect();
        self.requested.forget_accepted(id, &newly);
        reviewed
    }

    /// Requests the promotion of a replica, or what else differs.
    async fn request_changes(
        &self,
        target: &Target<'_>,
        described: &Described<'_>,
        replication: &Replication<'_>,
        change: Modification,
        outcomes: &mut Outcomes,
    ) {
        match replication {
            // Other modifications would have to wait until it is promoted.
            Replication::ToPromote(_) => {
                self.promote(target.id, described.object, described.instance, outcomes)
                    .await;
                if !outcomes.has_requested(REPLICA_OF) {
                    // Full storage, for example, may be what keeps RDS from promoting it.
                    let [access, storage, _, tags] = change.requests();
                    let change = Modification::from_parts([access, storage, tags]);
                    self.modify(target, change, outcomes).await;
                }
            }
            _ => {
                let serves = meaning_of(described.instance).serves;
                outcomes.add_differences(replication.difference(serves));
                self.modify(target, change, outcomes).await;
            }
        }
    }
}

/// Returns the fields whose change waits for the maintenance window, but for those of the storage.
fn waiting_for_window(instance: &DbInstance) -> impl Iterator<Item = String> {
    let waiting = drift::pending(instance).into_iter();
    // The log volume waits for a restart in any case.
    let waiting = waiting.filter(|field| field != Password::FIELD && field != "dedicatedLogVolume");
    waiting.filter(|field| !field.starts_with("storage."))
}
