//! Reconciliation of an object with its instance, as one page.
//!
//! describe → owner? → compare → request, unless it is only observed → report: `Ready` by the status of the instance,
//! `Synced` by what still differs

use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use kube::ResourceExt;
use lockstep_cloud_database_api::{CloudDatabase, CloudDatabaseStatus, REPLACES_INSTANCE};
use lockstep_controller::{ReconcileError, ReconcileOutput, SyncRequest};

use crate::aws::rds_events::changed_instances::Change;
use crate::clock;
use crate::credentials::connection_secret::{self, Published};
use crate::credentials::master_user::MasterUser;
use crate::credentials::owned_secrets;
use crate::instance::certificate::{self, CertificateLabels};
use crate::instance::described::Described;
use crate::instance::described::is_observed;
use crate::instance::identity::Identity;
use crate::instance::instance_reconciler::{InstanceReconciler, require_ours};
use crate::instance::modification::outcomes::Outcomes;
use crate::instance::observed_status;
use crate::instance::record::Record;
use crate::instance::step_error::StepError;
use crate::instance::tags;
use crate::origin::replacement::replaced;
use crate::quota::enforcement::Part;
use crate::settings::{Setting, Size};

/// Object to reconcile.
pub(crate) struct Subject<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) request: &'a SyncRequest<'a, CloudDatabase>,
    /// Status before the reconciliation.
    pub(crate) record: &'a Record,
    /// Master user that the instance is to have.
    pub(crate) user: Result<MasterUser, ReconcileError>,
    /// Instance to replicate, if the spec names one.
    pub(crate) source: Option<Result<String, ReconcileError>>,
}

impl InstanceReconciler {
    /// Brings the instance to its desired state, and records in the status what was done, also before an error. After a
    /// `change`, its present state is described.
    pub(crate) async fn sync(
        &self,
        subject: Subject<'_>,
        change: Option<Change>,
        status: &mut CloudDatabaseStatus,
    ) -> Result<ReconcileOutput, StepError> {
        let Subject {
            identity,
            request,
            record,
            ..
        } = subject;
        let id = identity.id.as_str();
        let object = request.parent();
        let uid = object.uid();
        let instance = self.described(&subject, change).await?;
        let is_observed = is_observed(object);
        let Some(instance) = instance else {
            if identity.is_adopted || is_observed {
                return self.absent(id, object, record, status);
            }
            return Box::pin(self.create(id, subject, status)).await;
        };
        self.record_seen(id);
        let described = Described {
            id,
            object,
            instance: &instance,
            record,
            user: &subject.user,
        };
        if !identity.is_adopted {
            require_ours(&instance, id, uid.as_deref()).map_err(|error| self.requeue(error))?;
        } else if !is_observed && !tags::is_owned_by(&instance, uid.as_deref()) {
            return Box::pin(self.adopt(&described, status)).await;
        }
        observed_status::record(status, &instance);
        let mut outcomes = Outcomes::default();
        let published = if is_observed {
            self.observe(&described, status, &mut outcomes);
            None
        } else {
            let mut diff = self.diff(&described, &mut outcomes);
            let exceeded = self.exceeded_quota(request, Part::Change(&instance)).await;
            diff.hold_storage(exceeded, &mut outcomes);
            let is_requested = request.is_requested();
            let requests = self.apply(&described, &diff, is_requested, status, &mut outcomes);
            Box::pin(requests).await;
            diff.published
        };
        let mut output = self.report(&described, status, outcomes)?;
        output
            .children
            .extend(self.connection_secret(&described, request, published)?);
        Ok(output)
    }

    /// Returns the instance of an object, if RDS lists it.
    async fn described(
        &self,
        subject: &Subject<'_>,
        change: Option<Change>,
    ) -> Result<Option<DbInstance>, StepError> {
        let Subject {
            identity,
            request,
            record,
            user,
            ..
        } = subject;
        let id = identity.id.as_str();
        let object = request.parent();
        let instance = if request.is_requested() {
            self.requested.forget_refusals(id);
            self.rds.describe(id).await
        } else {
            self.describe(id, object, record, user, change.as_ref())
                .await
        };
        let instance = instance.map_err(|error| self.without_answer(id, error.into()))?;
        self.record_answer(id);
        if let Some(mut change) = change {
            change.set_seen();
        }
        // One answer of RDS does not prove that an instance that it has listed before is absent.
        match instance {
            None if record.listed_id().is_some() => {
                Box::pin(self.found_again(id, object, record)).await
            }
            described => Ok(described),
        }
    }

    /// Returns the Secret for applications.
    fn connection_secret(
        &self,
        described: &Described<'_>,
        request: &SyncRequest<'_, CloudDatabase>,
        published: Option<Published>,
    ) -> Result<Option<serde_json::Value>, ReconcileError> {
        let before = owned_secrets::published(request)?;
        let ca_bundle = self.shared.ca_bundle.as_deref();
        let Described {
            object, instance, ..
        } = *described;
        Ok(published
            .or(before)
            .and_then(|shown| connection_secret::of_instance(object, instance, &shown, ca_bundle)))
    }

    /// Reports the instance: `Ready` tells whether clients are served, and `Synced` whether the spec is applied.
    fn report(
        &self,
        described: &Described<'_>,
        status: &mut CloudDatabaseStatus,
        outcomes: Outcomes,
    ) -> Result<ReconcileOutput, StepError> {
        let Described {
            id,
            object,
            instance,
            ..
        } = *described;
        let phase = instance.db_instance_status().unwrap_or_default();
        let meaning = described.meaning();
        let is_in_progress = outcomes.is_in_progress();
        if let Some(problem) = meaning.problem {
            let is_being_solved = phase == "storage-full" && outcomes.has_accepted(Size::FIELD);
            if !is_being_solved {
                let message = problem.of_instance(id, phase);
                status.message = Some(message.clone());
                let error = self.requeue(ReconcileError::Permanent {
                    reason: problem.reason,
                    message,
                });
                return Err(StepError::from(error).with_outcomes(outcomes));
            }
        }
        let mut notes = outcomes.notes();
        notes.extend(unused_replacement(object, instance));
        notes.extend(without_backups(object, instance));
        let mut output = if meaning.serves {
            if phase != "available" {
                notes.push(format!("RDS reports its status as '{phase}'"));
            }
            notes.insert(0, "the database can be used".to_owned());
            self.available(status, instance, notes.join("; "))
        } else {
            self.waiting(status, phase)
        };
        if outcomes.has_next() {
            output.requeue_after = Duration::ZERO;
        } else if is_in_progress || phase != "available" {
            output.requeue_after = self.shared.config.poll_interval;
        } else if let Some(left) = outcomes.cooldown() {
            output.requeue_after = output.requeue_after.min(left);
        } else if outcomes.is_over_quota() {
            let period = self.shared.config.resync_period;
            output.requeue_after = output.requeue_after.min(period);
        }
        output.stalled = outcomes.stalled();
        output.conditions = vec![outcomes.condition()];
        output.events = outcomes.events();
        if let Some((condition, event)) = certificate::report(instance, clock::now()) {
            output.conditions.push(condition);
            output.events.extend(event);
        }
        self.record_certificate(object, instance);
        Ok(output)
    }

    /// Reports in a metric when the certificate of an instance expires.
    fn record_certificate(&self, object: &CloudDatabase, instance: &DbInstance) {
        if let Some(expiry) = certificate::expiry(instance) {
            let metadata = &object.metadata;
            let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
            let labels = CertificateLabels::of(namespace, name);
            let uid = metadata.uid.as_deref().unwrap_or_default();
            let metric = &self.shared.certificate_expiry;
            metric.set(uid, labels, expiry.as_second());
        }
    }
}

/// Returns a warning if an instance has no automated backups and its object does not decide about them. A replica is
/// created without them, and others may have come from a replica, a snapshot or another client.
fn without_backups(object: &CloudDatabase, instance: &DbInstance) -> Option<String> {
    let source = instance.read_replica_source_db_instance_identifier();
    let is_replica = source.is_some_and(|source| !source.is_empty());
    let is_open = object.spec.backup.retention_days.is_none();
    let is_without = instance.backup_retention_period() == Some(0);
    (is_without && is_open && !is_replica).then(|| {
        "it has no automated backups; set `spec.backup.retentionDays`, to 0 if that is intended"
            .to_owned()
    })
}

/// Returns a warning if the annotation that requests a new instance names this one.
fn unused_replacement(object: &CloudDatabase, instance: &DbInstance) -> Option<String> {
    let is_listed = replaced(object).contains(instance.dbi_resource_id()?);
    is_listed.then(|| {
        format!(
            "the annotation {REPLACES_INSTANCE} lists this instance, so that an empty one would replace it if it were missing; remove the annotation"
        )
    })
}
