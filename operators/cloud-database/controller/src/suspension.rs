//! Observation of the instance of an invalid object: whether it serves clients is reported, and nothing is requested.

use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use lockstep_controller::{OperatorCondition, Readiness, ReconcileError, ReconcileOutput};

use crate::identity::Identity;
use crate::instance_reconciler::{InstanceReconciler, observed, require_ours};
use crate::instance_status;
use crate::modification::outcomes::SYNCED;
use crate::recent::Description;
use crate::recorded_instance::RecordedInstance;
use crate::tags;

impl InstanceReconciler {
    /// Returns what RDS shows of an instance that it has listed before. Without an answer, the condition `Ready` stays as it is.
    pub(crate) async fn observe_suspended(
        &self,
        identity: &Identity,
        record: &RecordedInstance<'_>,
        uid: Option<&str>,
        max_age: Duration,
    ) -> ReconcileOutput {
        let id = identity.id.as_str();
        let described = self.locate(id, record).await;
        let max_age = max_age.min(self.max_age(record.phase));
        let described = match described {
            Ok(_) => self.rds.recent(id, max_age).await.map_err(Into::into),
            Err(error) => Err(error),
        };
        let output = match described {
            Ok(Description::Swept(instance)) => self.shown(identity, uid, &instance),
            Ok(Description::Single(Some(instance))) => self.shown(identity, uid, &instance),
            // One answer without the instance proves nothing.
            Ok(Description::Single(None)) if self.is_past_grace_period(id) => self.unseen(id),
            Ok(Description::Single(None)) => unknown(self.shared.config.poll_interval),
            Err(error) => self.unanswered(id, &error),
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
    ) -> ReconcileOutput {
        let id = identity.id.as_str();
        self.record_seen(id);
        let phase = instance.db_instance_status().unwrap_or_default();
        // An instance that is only observed has no owner.
        let is_free = identity.is_adopted && !tags::has_owner(instance);
        if !is_free && let Err(error) = require_ours(instance, id, uid) {
            return self.not_ready(error.reason(), error.to_string());
        }
        let meaning = instance_status::meaning(phase);
        let mut output = match meaning.problem {
            Some(problem) => self.not_ready(problem.reason, problem.of_instance(id, phase)),
            None if meaning.serves => {
                let message =
                    "the database can be used; changes are suspended until the object is valid";
                self.available(id, instance, message.to_owned())
            }
            None => self.waiting(id, phase),
        };
        output.status.extend(observed(instance));
        output
    }

    fn not_ready(&self, reason: &'static str, message: String) -> ReconcileOutput {
        ReconcileOutput {
            readiness: Some(Readiness {
                ready: false,
                reason,
                message,
            }),
            requeue_after: self.shared.config.resync_period,
            ..ReconcileOutput::default()
        }
    }

    fn unanswered(&self, id: &str, error: &ReconcileError) -> ReconcileOutput {
        tracing::warn!(instance = id, %error, "the instance of an invalid object cannot be described");
        unknown(self.shared.config.resync_period)
    }
}

/// Returns the output that leaves the condition `Ready` as it is.
pub(crate) fn unknown(requeue_after: Duration) -> ReconcileOutput {
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
