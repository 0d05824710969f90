//! Comparison of an instance with the spec of its object: what differs is requested from RDS, and what it means is
//! reported.
//!
//! describe → owner? → tags → modifications → `Ready` by the status of the instance, `Synced` by what still differs

use aws_sdk_rds::types::DbInstance;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use lockstep_cloud_database_api::{ApplyChanges, CloudDatabase, REPLACES_INSTANCE};
use lockstep_controller::{ReconcileError, ReconcileOutput, SyncRequest};
use serde_json::{Map, Value, json};

use crate::applied_values;
use crate::certificate::{self, CertificateLabels};
use crate::circumstances;
use crate::credentials::MasterUser;
use crate::drift;
use crate::instance_status::{self, Accepts, Meaning};
use crate::modification::outcomes::Outcomes;
use crate::modification::{Password, TagChange};
use crate::modify::Target;
use crate::reconciler::{CloudDatabaseReconciler, observed, require_ours};
use crate::recorded_instance::RecordedInstance;
use crate::replacement::replaced;
use crate::step_error::{StepError, with_status};
use crate::tags;

/// Version of the credentials of an instance whose password is unknown.
const UNKNOWN_VERSION: &str = "unknown";

/// Beginning of the name of the group with the password in the outcomes.
const PASSWORD: &str = "the password";

impl CloudDatabaseReconciler {
    /// Brings the instance to its desired state.
    pub(crate) async fn sync(
        &self,
        id: &str,
        request: &SyncRequest<'_, CloudDatabase>,
        user: Result<MasterUser, ReconcileError>,
    ) -> Result<ReconcileOutput, StepError> {
        let object = request.parent();
        let uid = object.uid();
        let record = RecordedInstance::from_status(request.raw_parent(), id);
        let instance = self.describe(id, object, &record, &user).await;
        let instance = instance.map_err(|error| self.without_answer(id, error.into()))?;
        self.record_answer(id);
        let Some(instance) = instance else {
            return self.create(id, object, &record, user).await;
        };
        require_ours(&instance, id, uid.as_deref()).map_err(|error| self.requeue(error))?;
        self.record_seen(id);
        let mut outcomes = Outcomes::default();
        let mut status = observed(&instance);
        let compared = self
            .apply(id, object, &instance, &record, user, &mut outcomes)
            .await;
        status.extend(compared);
        self.report(id, object, &instance, status, outcomes)
    }

    /// Requests what differs from the spec, and returns status fields that record it.
    async fn apply(
        &self,
        id: &str,
        object: &CloudDatabase,
        instance: &DbInstance,
        record: &RecordedInstance<'_>,
        user: Result<MasterUser, ReconcileError>,
        outcomes: &mut Outcomes,
    ) -> Map<String, Value> {
        let meaning = meaning_of(instance);
        let spec = &object.spec;
        let enforced = drift::enforced(spec, instance, &record.enforced_fields);
        let applied = applied_values::storage(spec, instance, &record.applied_storage);
        // Full storage does not wait for the maintenance window.
        let when = match meaning.accepts {
            Accepts::OnlyStorage => ApplyChanges::Immediately,
            _ => spec.apply_changes,
        };
        let mut change = drift::between(spec, when, instance, &enforced, &record.applied_storage);
        outcomes.add_differences(drift::unrepairable(spec, instance, &enforced));
        outcomes.add_not_allowed(drift::not_allowed(spec, instance));
        outcomes.add_waiting_for_restart(drift::waiting_for_restart(spec, instance));
        let mut version = record.credentials_version.map(String::from);
        let is_other =
            record.resource_id.is_some() && record.resource_id != instance.dbi_resource_id();
        if is_other && version.is_some() {
            // It was restored, with the password of that time.
            version = Some(UNKNOWN_VERSION.to_owned());
            self.passwords.forget(id);
        }
        match &user {
            Ok(user) => {
                outcomes.add_differences(drift::other_user(&user.name, instance));
                change.password = self.password_to_set(id, user, &mut version);
            }
            Err(error) => outcomes.add_differences([format!(
                "the password of the master user is unknown: {error}"
            )]),
        }
        let arn = instance.db_instance_arn().unwrap_or_default();
        change.tags = self.tags_to_change(object, instance, record);
        let fields = change.fields();
        let pending = drift::pending(instance).into_iter();
        let pending = pending
            .filter(|field| !fields.contains(&field.as_str()) && drift::is_of_spec(spec, field));
        let window = Some(instance.preferred_maintenance_window().unwrap_or_default());
        let window = window.filter(|_| spec.apply_changes == ApplyChanges::MaintenanceWindow);
        outcomes.add_pending(pending, window);
        let target = Target {
            id,
            arn,
            accepts: meaning.accepts,
            when,
            storage_modified_at: record.storage_modified_at,
            circumstances: circumstances::of(spec, when, instance, &change),
        };
        self.modify(&target, change, outcomes).await;

        let mut status = Map::new();
        if let Ok(user) = &user
            && outcomes.has_accepted(PASSWORD)
        {
            self.passwords.record(id, &user.password);
            version = Some(user.version.clone());
        }
        if outcomes.has_requested("storage.") {
            let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            status.insert("storageModifiedAt".to_owned(), json!(now));
        }
        let tags = applied_values::tags(spec, instance, &record.applied_tags);
        let or_null = |is_empty: bool, value: Value| if is_empty { Value::Null } else { value };
        status.extend([
            ("enforcedFields".to_owned(), json!(enforced)),
            (
                "appliedStorage".to_owned(),
                or_null(applied == Default::default(), json!(applied)),
            ),
            (
                "appliedTags".to_owned(),
                or_null(tags.is_empty(), json!(tags)),
            ),
            ("credentialsVersion".to_owned(), json!(version)),
        ]);
        status
    }

    /// Returns the password to set, if the Secret has another one than the instance. `version` is the recorded version of
    /// the Secret. If none is recorded, the instance was created by a release that did not record it, and keeps its
    /// password.
    pub(crate) fn password_to_set(
        &self,
        id: &str,
        user: &MasterUser,
        version: &mut Option<String>,
    ) -> Option<Password> {
        let is_recorded = version.as_ref().is_none_or(|it| *it == user.version);
        if is_recorded || self.passwords.has(id, &user.password) {
            self.passwords.record(id, &user.password);
            *version = Some(user.version.clone());
            return None;
        }
        Some(Password(user.password.clone()))
    }

    /// Returns the tags to add, to correct and to remove.
    fn tags_to_change(
        &self,
        object: &CloudDatabase,
        instance: &DbInstance,
        record: &RecordedInstance<'_>,
    ) -> Option<TagChange> {
        let expected = tags::managed_tags(object, self.rds.cluster_name());
        let removed = applied_values::removed_tags(&expected, instance, &record.applied_tags);
        let change = TagChange {
            set: drift::missing_tags(expected, instance.tag_list()),
            removed,
        };
        (change != TagChange::default()).then_some(change)
    }

    /// Reports the instance: `Ready` tells whether clients are served, and `Synced` whether the spec is applied.
    fn report(
        &self,
        id: &str,
        object: &CloudDatabase,
        instance: &DbInstance,
        status: Map<String, Value>,
        outcomes: Outcomes,
    ) -> Result<ReconcileOutput, StepError> {
        let phase = instance.db_instance_status().unwrap_or_default();
        let meaning = meaning_of(instance);
        let is_in_progress = outcomes.is_in_progress();
        if let Some(problem) = meaning.problem {
            let is_being_solved = phase == "storage-full" && outcomes.has_accepted("storage.");
            if !is_being_solved {
                let message = format!(
                    "RDS reports the instance '{id}' as '{phase}': {}",
                    problem.message
                );
                let error = ReconcileError::Permanent {
                    reason: problem.reason,
                    message: message.clone(),
                };
                let mut status = status;
                status.insert("message".to_owned(), json!(message));
                let error = with_status(status, self.requeue(error));
                return Err(error.with_outcomes(outcomes));
            }
        }
        let mut notes = outcomes.notes();
        notes.extend(unused_replacement(object, instance));
        let mut output = if meaning.serves {
            if phase != "available" {
                notes.push(format!("RDS reports its status as '{phase}'"));
            }
            notes.insert(0, "the database can be used".to_owned());
            self.available(id, instance, notes.join("; "))
        } else {
            self.waiting(id, phase)
        };
        if is_in_progress || phase != "available" {
            output.requeue_after = self.config.poll_interval;
        } else if let Some(left) = outcomes.cooldown() {
            output.requeue_after = output.requeue_after.min(left);
        }
        output.status.extend(status);
        output.conditions = vec![outcomes.condition()];
        output.events = outcomes.events();
        if let Some((condition, event)) = certificate::report(instance, Timestamp::now()) {
            output.conditions.push(condition);
            output.events.extend(event);
        }
        self.record_certificate(object, instance);
        Ok(output)
    }
}

impl CloudDatabaseReconciler {
    /// Reports in a metric when the certificate of an instance expires.
    fn record_certificate(&self, object: &CloudDatabase, instance: &DbInstance) {
        if let Some(expiry) = certificate::expiry(instance) {
            let metadata = &object.metadata;
            let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
            let labels = CertificateLabels::of(namespace, name);
            let gauge = self.certificate_expiry.get_or_create(&labels);
            gauge.set(expiry.as_second());
        }
    }
}

fn meaning_of(instance: &DbInstance) -> Meaning {
    instance_status::meaning(instance.db_instance_status().unwrap_or_default())
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
