//! Comparison of an instance with the spec of its object: what differs is requested from RDS, and what it means is
//! reported.
//!
//! describe → owner? → tags → modifications, unless it is only observed → `Ready` by the status of the instance, `Synced` by what still differs

use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use lockstep_cloud_database_api::{
    ApplyChanges, CloudDatabase, CloudDatabaseSpec, LastChange, REPLACES_INSTANCE,
};
use lockstep_controller::{ReconcileError, ReconcileOutput, SyncRequest};
use serde_json::{Map, Value, json};

use crate::applied_values;
use crate::certificate::{self, CertificateLabels};
use crate::circumstances;
use crate::connection_secret::{self, Published};
use crate::drift;
use crate::identity::Identity;
use crate::instance_reconciler::{
    InstanceReconciler, fields as instance_fields, observed, require_ours,
};
use crate::instance_status::{self, Accepts, Meaning, STORAGE_OPTIMIZATION};
use crate::master_password::{
    ComparedUser, accepts_password, has_pending_password, is_changing_password, is_known, is_noted,
    is_unknown_password, published_by,
};
use crate::master_user::{MasterPassword, MasterUser};
use crate::modification::Modification;
use crate::modification::accepted_changes::{Comparison, Records, Review};
use crate::modification::outcomes::{Outcome, Outcomes};
use crate::modify::Target;
use crate::observation::is_observed;
use crate::owned_secrets;
use crate::rds_events::changed_instances::Change;
use crate::recorded_instance::RecordedInstance;
use crate::replacement::replaced;
use crate::replication::{REPLICA_OF, Replication};
use crate::settings::{self, MaxSize, Password, Setting, Size, TagChange, Tags};
use crate::step_error::{StepError, with_status};
use crate::tags;

/// Time after which RDS certainly reports a change that it has accepted and not applied.
const SHOWN_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// State that a reconciliation has found.
struct State<'a> {
    instance: &'a DbInstance,
    record: &'a RecordedInstance<'a>,
    /// If true, a user has requested the reconciliation.
    is_requested: bool,
}

/// Result of the requests of a reconciliation.
struct Applied {
    /// Status fields that record them.
    status: Map<String, Value>,
    /// Password that the instance has, or where it is. None while RDS is changing it.
    published: Option<Published>,
}

impl InstanceReconciler {
    /// Brings the instance to its desired state. After a `change`, its present state is described.
    pub(crate) async fn sync(
        &self,
        identity: &Identity,
        request: &SyncRequest<'_, CloudDatabase>,
        user: Result<MasterUser, ReconcileError>,
        source: Option<Result<String, ReconcileError>>,
        mut change: Option<Change>,
    ) -> Result<ReconcileOutput, StepError> {
        let id = identity.id.as_str();
        let object = request.parent();
        let uid = object.uid();
        let mut record = RecordedInstance::from_status(request.raw_parent(), id);
        let is_requested = request.is_requested();
        let instance = if is_requested {
            self.requested.forget_refusals(id);
            record.accepted_changes.retain(|change| !change.failed);
            self.rds.describe(id).await
        } else {
            self.describe(id, object, &record, &user, change.as_ref())
                .await
        };
        let instance = instance.map_err(|error| self.without_answer(id, error.into()))?;
        self.record_answer(id);
        if let Some(change) = &mut change {
            change.set_seen();
        }
        // One answer of RDS does not prove that an instance that it has listed before is absent.
        let instance = match instance {
            None if record.listed_id().is_some() => {
                Box::pin(self.found_again(id, object, &record)).await?
            }
            described => described,
        };
        let is_observed = is_observed(object);
        let Some(instance) = instance else {
            if identity.is_adopted || is_observed {
                return self.absent(id, object, &record);
            }
            return Box::pin(self.create(id, object, &record, user, source)).await;
        };
        self.record_seen(id);
        if !identity.is_adopted {
            require_ours(&instance, id, uid.as_deref()).map_err(|error| self.requeue(error))?;
        } else if !is_observed && !tags::is_owned_by(&instance, uid.as_deref()) {
            return Box::pin(self.adopt(id, object, &instance, &record, user)).await;
        }
        let mut outcomes = Outcomes::default();
        let mut status = observed(&instance);
        let applied = if is_observed {
            self.observe(id, object, &instance, &record, &user, &mut outcomes);
            let version = self.credentials_version(id, object, &instance, &record);
            let version = version.map(|version| ("credentialsVersion".to_owned(), version.into()));
            Applied {
                status: version.into_iter().collect(),
                published: None,
            }
        } else {
            let state = State {
                instance: &instance,
                record: &record,
                is_requested,
            };
            let applied = self.apply(id, object, &state, user, &mut outcomes);
            Box::pin(applied).await
        };
        status.extend(applied.status);
        let mut output = self.report(id, object, &instance, status, outcomes)?;
        // What was requested is recorded in any case.
        let before = owned_secrets::published(request)
            .map_err(|error| with_status(output.status.clone(), error))?;
        let published = applied.published.or(before);
        let secret = published.and_then(|it| {
            connection_secret::of_instance(object, &instance, &it, self.shared.ca_bundle.as_deref())
        });
        output.children.extend(secret);
        Ok(output)
    }

    /// Requests what differs from the spec.
    async fn apply(
        &self,
        id: &str,
        object: &CloudDatabase,
        state: &State<'_>,
        user: Result<MasterUser, ReconcileError>,
        outcomes: &mut Outcomes,
    ) -> Applied {
        let State {
            instance,
            record,
            is_requested,
        } = *state;
        let meaning = meaning_of(instance);
        self.forget_cooldown(id, record, &meaning);
        let spec = &object.spec;
        let enforced = drift::enforced(spec, instance, &record.enforced_fields);
        let when = time_of_changes(spec, &meaning);
        let mut change = drift::between(spec, when, instance, &enforced, record);
        outcomes.add_differences(drift::unrepairable(spec, instance, &enforced));
        outcomes.add_not_allowed(settings::not_allowed(spec, instance));
        outcomes.add_waiting_for_restart(settings::waiting_for_restart(spec, instance));
        let version = self.credentials_version(id, object, instance, record);
        let replication = Replication::of(object, instance, record.replica_of);
        let ComparedUser {
            differences,
            password,
            mut version,
        } = self.compare_user(id, &user, instance, record, &replication, version);
        outcomes.add_differences(differences);
        let is_next = password.is_some()
            && !user
                .as_ref()
                .is_ok_and(|user| is_noted(&user.password, record))
            && accepts_password(&meaning);
        change.set::<Password>(password);
        let arn = instance.db_instance_arn().unwrap_or_default();
        change.set::<Tags>(self.tags_to_change(object, instance, record));
        let is_settled = !change.has::<Password>() && !is_changing_password(instance);
        let is_settled = is_settled && !is_unknown_password(spec, &replication);
        let published = user.as_ref().ok().filter(|_| is_settled);
        let published = published.and_then(|user| published_by(&user.password, instance));
        let fields = change.fields();
        let sends_password = change.has::<Password>();
        let pending = pending_of_spec(spec, instance, &fields);
        let window = Some(instance.preferred_maintenance_window().unwrap_or_default());
        let window = window.filter(|_| spec.apply_changes == ApplyChanges::MaintenanceWindow);
        outcomes.add_pending(pending, window);
        let wanted = change.clone();
        let poll = self.shared.config.poll_interval;
        let comparison = Comparison::new(spec, instance, &wanted, poll);
        let reviewed = self.reviewed(id, &comparison, record, is_requested);
        let target = Target {
            id,
            arn,
            accepts: meaning.accepts,
            when,
            storage_modified_at: record.storage_modified_at,
            circumstances: circumstances::of(spec, when, instance, &change),
            accepted: &reviewed.settled,
            recorded: &reviewed.not_made,
            unrecorded: &comparison.unrecorded(&reviewed),
        };
        if sends_password {
            // If the answer is lost, or this process ends, the instance may have either.
            self.passwords.forget(id);
        }
        if is_next {
            // What goes into one call with the password waits for it.
            let [access, storage, rest, tags] = change.requests();
            outcomes.add(&rest.fields(), Outcome::Next);
            change = Modification::from_parts([access, storage, tags]);
        }
        let requests =
            self.request_changes(&target, object, instance, &replication, change, outcomes);
        Box::pin(requests).await;
        if when != spec.apply_changes && outcomes.has_requested(Size::FIELD) {
            outcomes.add_applied_early(waiting_for_window(instance));
        }
        let mut status = self.recorded(id, &comparison, reviewed, outcomes);
        if let Ok(user) = &user
            && outcomes.has_accepted(Password::FIELD)
        {
            if let MasterPassword::Known(known) = &user.password {
                self.passwords.record(id, &known.text);
            }
            version = user.password.version().map(String::from).or(version);
        }
        let requested = match &user {
            Ok(user) if is_next => user.password.version(),
            Ok(user) if is_known(&user.password, &replication) && !sends_password => None,
            Ok(_) if outcomes.has_accepted(Password::FIELD) => None,
            _ => record.requested_credentials_version,
        };
        if meaning.serves && !sends_password && has_pending_password(instance) {
            // It never waits for the maintenance window.
            outcomes.add(&[Password::FIELD], Outcome::Accepted);
        }
        status.extend(not_pending(instance, record));
        status.extend(accepted_changes(object, outcomes));
        status.extend(applied_fields(spec, instance, record, outcomes));
        status.extend([
            ("enforcedFields".to_owned(), json!(enforced)),
            ("credentialsVersion".to_owned(), json!(version)),
            ("requestedCredentialsVersion".to_owned(), json!(requested)),
            ("replicaOf".to_owned(), json!(replication.recorded())),
        ]);
        Applied { status, published }
    }

    /// Forgets that RDS has refused changes of the storage, once it has optimized that: it may accept another one before six
    /// hours have passed.
    fn forget_cooldown(&self, id: &str, record: &RecordedInstance<'_>, meaning: &Meaning) {
        if record.phase == Some(STORAGE_OPTIMIZATION) && meaning.accepts == Accepts::All {
            self.requested.forget_cooldown(id);
        }
    }

    /// Returns the recorded changes, as RDS shows them now. What is known of those that RDS has not accepted is forgotten until
    /// the requests of this reconciliation have ended.
    fn reviewed(
        &self,
        id: &str,
        comparison: &Comparison<'_>,
        record: &RecordedInstance<'_>,
        is_requested: bool,
    ) -> Review {
        let unaccepted = self.unaccepted.take(id);
        let reviewed = comparison.review(&record.accepted_changes, &unaccepted, is_requested);
        let failed = reviewed.settled.iter().filter(|change| change.failed);
        let failed: Vec<_> = failed.map(|change| change.field.as_str()).collect();
        let was_failed = |field: &str| {
            let mut before = record.accepted_changes.iter();
            before.any(|it| it.failed && it.field == field)
        };
        let newly: Vec<_> = failed.into_iter().filter(|it| !was_failed(it)).collect();
        self.requested.forget_accepted(id, &newly);
        reviewed
    }

    /// Returns the status field that records changes after the requests of this reconciliation, and remembers what the status does
    /// not contain of them.
    fn recorded(
        &self,
        id: &str,
        comparison: &Comparison<'_>,
        reviewed: Review,
        outcomes: &Outcomes,
    ) -> Map<String, Value> {
        let Records { stored, unaccepted } = comparison.records(reviewed, outcomes);
        self.unaccepted.set(id, unaccepted);
        let stored = Some(stored).filter(|stored| !stored.is_empty());
        instance_fields([("acceptedChanges", json!(stored))])
    }

    /// Requests the promotion of a replica, or what else differs.
    async fn request_changes(
        &self,
        target: &Target<'_>,
        object: &CloudDatabase,
        instance: &DbInstance,
        replication: &Replication<'_>,
        change: Modification,
        outcomes: &mut Outcomes,
    ) {
        match replication {
            // Other modifications would have to wait until it is promoted.
            Replication::ToPromote(_) => {
                self.promote(target.id, object, instance, outcomes).await;
                if !outcomes.has_requested(REPLICA_OF) {
                    // Full storage, for example, may be what keeps RDS from promoting it.
                    let [access, storage, _, tags] = change.requests();
                    let change = Modification::from_parts([access, storage, tags]);
                    self.modify(target, change, outcomes).await;
                }
            }
            Replication::Promoted if meaning_of(instance).serves => {
                outcomes.add_differences([
                    "it replicates no other instance any more; remove `spec.replicaOf`".to_owned(),
                ]);
                self.modify(target, change, outcomes).await;
            }
            _ => self.modify(target, change, outcomes).await,
        }
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
            let is_being_solved = phase == "storage-full" && outcomes.has_accepted(Size::FIELD);
            if !is_being_solved {
                let message = problem.of_instance(id, phase);
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
        notes.extend(without_backups(object, instance));
        let mut output = if meaning.serves {
            if phase != "available" {
                notes.push(format!("RDS reports its status as '{phase}'"));
            }
            notes.insert(0, "the database can be used".to_owned());
            self.available(id, instance, notes.join("; "))
        } else {
            self.waiting(id, phase)
        };
        if outcomes.has_next() {
            output.requeue_after = Duration::ZERO;
        } else if is_in_progress || phase != "available" {
            output.requeue_after = self.shared.config.poll_interval;
        } else if let Some(left) = outcomes.cooldown() {
            output.requeue_after = output.requeue_after.min(left);
        }
        output.status.extend(status);
        output.stalled = outcomes.stalled();
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

impl InstanceReconciler {
    /// Reports in a metric when the certificate of an instance expires.
    fn record_certificate(&self, object: &CloudDatabase, instance: &DbInstance) {
        if let Some(expiry) = certificate::expiry(instance) {
            let metadata = &object.metadata;
            let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref());
            let labels = CertificateLabels::of(namespace, name);
            let gauge = self.shared.certificate_expiry.get_or_create(&labels);
            gauge.set(expiry.as_second());
        }
    }
}

/// Returns when RDS is to apply changes. Full storage does not wait for the maintenance window.
fn time_of_changes(spec: &CloudDatabaseSpec, meaning: &Meaning) -> ApplyChanges {
    match meaning.accepts {
        Accepts::OnlyStorage => ApplyChanges::Immediately,
        _ => spec.apply_changes,
    }
}

/// Returns the fields whose change waits for the maintenance window, but for those of the storage.
fn waiting_for_window(instance: &DbInstance) -> impl Iterator<Item = String> {
    let waiting = drift::pending(instance).into_iter();
    // The log volume waits for a restart in any case.
    let waiting = waiting.filter(|field| field != Password::FIELD && field != "dedicatedLogVolume");
    waiting.filter(|field| !field.starts_with("storage."))
}

/// Returns the status fields that record what RDS has accepted in this reconciliation.
fn accepted_changes(object: &CloudDatabase, outcomes: &Outcomes) -> Map<String, Value> {
    let mut status = Map::new();
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let changed = outcomes.requested_fields();
    if !changed.is_empty() {
        let change = LastChange {
            time: now.clone(),
            fields: changed.clone(),
        };
        status.insert("lastChange".to_owned(), json!(change));
    }
    // A maximum alone does not change the storage.
    let is_of_storage = |field: &String| field.starts_with("storage.") && *field != MaxSize::FIELD;
    if changed.iter().any(is_of_storage) {
        status.insert("storageModifiedAt".to_owned(), json!(now));
    }
    if outcomes.has_requested(Size::FIELD) {
        let size = json!(object.spec.storage.size_gib);
        status.insert("acceptedStorageGib".to_owned(), size);
    }
    status
}

/// Returns a status field that forgets an accepted size of the storage, if RDS does not allocate it any more: a client has
/// cancelled the change. RDS reports a change that it has just accepted only after some time.
fn not_pending(instance: &DbInstance, record: &RecordedInstance<'_>) -> Option<(String, Value)> {
    let accepted = record.accepted_storage_gib?;
    let pending = instance.pending_modified_values();
    let is_pending = pending.is_some_and(|it| it.allocated_storage().is_some());
    let is_allocated = instance.allocated_storage().is_none_or(|it| it >= accepted);
    let is_idle = meaning_of(instance).accepts == Accepts::All;
    let is_cancelled = is_idle && !is_pending && !is_allocated && !is_storage_recent(record);
    is_cancelled.then(|| ("acceptedStorageGib".to_owned(), Value::Null))
}

/// Returns the fields of the spec that RDS has accepted and not applied yet, but for those that are requested now.
fn pending_of_spec(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
    requested: &[&str],
) -> Vec<String> {
    let mut pending = drift::pending(instance);
    pending.retain(|field| !requested.contains(&field.as_str()) && drift::is_of_spec(spec, field));
    pending
}

/// Returns the status fields that record values of the spec that have been in effect, so that they are removed from the
/// instance with the spec.
fn applied_fields(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
    record: &RecordedInstance<'_>,
    outcomes: &Outcomes,
) -> [(String, Value); 2] {
    let is_settled = is_storage_settled(instance, record);
    let before = &record.applied_storage;
    let mut storage = applied_values::storage(spec, instance, before, is_settled);
    applied_values::add_requested(&mut storage, spec, &outcomes.requested_fields());
    let storage = Some(storage).filter(|it| *it != Default::default());
    let tags = applied_values::tags(spec, instance, &record.applied_tags);
    let tags = Some(tags).filter(|it| !it.is_empty());
    [
        ("appliedStorage".to_owned(), json!(storage)),
        ("appliedTags".to_owned(), json!(tags)),
    ]
}

/// Returns true unless RDS may be changing the storage, or may not report a change yet.
fn is_storage_settled(instance: &DbInstance, record: &RecordedInstance<'_>) -> bool {
    let pending = drift::pending(instance);
    let is_pending = pending.iter().any(|it| it.starts_with("storage."));
    meaning_of(instance).accepts == Accepts::All && !is_pending && !is_storage_recent(record)
}

/// Returns true if RDS has accepted a change of the storage a short time ago.
fn is_storage_recent(record: &RecordedInstance<'_>) -> bool {
    let modified = record.storage_modified_at;
    let since = modified.map(|at| Timestamp::now().duration_since(at));
    since.is_some_and(|since| since < SHOWN_AFTER)
}

fn meaning_of(instance: &DbInstance) -> Meaning {
    instance_status::meaning(instance.db_instance_status().unwrap_or_default())
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
