//! Observation of the instance of an invalid object: whether it serves clients is reported, and nothing is requested.

use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::CloudDatabaseStatus;
use lockstep_controller::{OperatorCondition, Readiness, ReconcileError, ReconcileOutput};

use crate::aws::recent::Description;
use crate::instance::identity::Identity;
use crate::instance::instance_reconciler::{InstanceReconciler, require_ours};
use crate::instance::instance_status;
use crate::instance::modification::outcomes::SYNCED;
use crate::instance::observed_status;
use crate::instance::record::Record;
use crate::instance::tags;

impl InstanceReconciler {
    /// Returns what RDS shows of an instance that it has listed before. Without an answer, the condition `Ready` stays as it is
    /// for the grace period of valid objects.
    pub(crate) async fn observe_suspended(
        &self,
        identity: &Identity,
        record: &Record,
        uid: Option<&str>,
        max_age: Duration,
        status: &mut CloudDatabaseStatus,
    ) -> ReconcileOutput {
        let id = identity.id.as_str();
        let described = self.locate(id, record).await;
        let max_age = max_age.min(self.max_age(record.phase.as_deref()));
        let described = match described {
            Ok(_) => {
                let described = self.rds.recent(id, max_age).await;
                described.map_err(|error| self.without_answer(id, error.into()))
            }
            Err(error) => Err(error),
        };
        let described = match described {
            Ok(described) => described,
            Err(error) => return not_described(&error, self.shared.config.resync_period),
        };
        self.record_answer(id);
        let output = match described {
            Description::Swept(instance) => self.shown(identity, uid, &instance, status),
            Description::Single(Some(instance)) => self.shown(identity, uid, &instance, status),
            // One answer without the instance proves nothing.
            Description::Single(None) if self.is_past_grace_period(id) => self.unseen(id, status),
            Description::Single(None) => unknown(self.shared.config.poll_interval),
        };
        ReconcileOutput {
            conditions: vec![suspended()],
            ..output
        }
    }

    fn shown(
        &self,
        identity: &Identity,
        uid: Option<&str>,
        instance: &DbInstance,
        status: &mut CloudDatabaseStatus,
    ) -> ReconcileOutput {
        let id = identity.id.as_str();
        self.record_seen(id);
        let period = self.shared.config.resync_period;
        let phase = instance.db_instance_status().unwrap_or_default();
        // An instance that is only observed has no owner.
        let is_free = identity.is_adopted && !tags::has_owner(instance);
        if !is_free && let Err(error) = require_ours(instance, id, uid) {
            return not_ready(error.reason(), error.to_string(), period);
        }
        let meaning = instance_status::meaning(phase);
        observed_status::record(status, instance);
        match meaning.problem {
            Some(problem) => not_ready(problem.reason, problem.of_instance(id, phase), period),
            None if meaning.serves => {
                let message =
                    "the database can be used; changes are suspended until the object is valid";
                self.available(status, instance, message.to_owned())
            }
            None => self.waiting(status, phase),
        }
    }
}

/// Returns the output about an instance that cannot be described. An error that says nothing about the instance leaves the
/// condition `Ready` as it is.
pub(crate) fn not_described(error: &ReconcileError, requeue_after: Duration) -> ReconcileOutput {
    if matches!(error, ReconcileError::Inconclusive(_)) {
        return unknown(requeue_after);
    }
    ReconcileOutput {
        conditions: vec![suspended()],
        ..not_ready(error.reason(), error.to_string(), requeue_after)
    }
}

fn not_ready(reason: &'static str, message: String, requeue_after: Duration) -> ReconcileOutput {
    ReconcileOutput {
        readiness: Some(Readiness {
            ready: false,
            reason,
            message,
        }),
        requeue_after,
        ..ReconcileOutput::default()
    }
}

/// Returns the output that leaves the condition `Ready` as it is.
fn unknown(requeue_after: Duration) -> ReconcileOutput {
    ReconcileOutput {
        requeue_after,
        conditions: vec![suspended()],
        ..ReconcileOutput::default()
    }
}

fn suspended() -> OperatorCondition {
    OperatorCondition {
        type_: SYNCED,
        is_true: false,
        reason: "Suspended",
        message: "nothing is changed in RDS until the object is valid; see the condition `Valid`"
            .to_owned(),
    }
}
