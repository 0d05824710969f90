//! Reconciler of CloudDatabase: selects the region and the role of an object, and lets their
//! [`InstanceReconciler`] do the rest.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kube::Client;
use lockstep_cloud_database_api::{CloudDatabase, CloudDatabaseStatus, FINALIZER};
use lockstep_controller::{
    ControllerRegistry, DeletionEffect, FinalizeOutcome, FinalizeRequest, NamedConfigMap,
    OperatorCondition, OwnedType, ReconcileError, ReconcileOutput, Reconciler, RelatedObjects,
    SecretAccess, SuspendedRequest, SyncRequest, Watch, read_status, replace_status,
};
use serde_json::{Map, Value, json};

use crate::aws::access::NamespaceAccess;
use crate::aws::access_pool::AccessPool;
use crate::aws::external_ids::ExternalIds;
use crate::aws::namespaces;
use crate::aws::rds_clients::RdsClients;
use crate::aws::rds_events::RdsEvents;
use crate::aws::rds_events::changed_instances::{Change, Owner};
use crate::credentials;
use crate::credentials::master_user::Credentials;
use crate::credentials::owned_secrets;
use crate::credentials::secrets::Secrets;
use crate::deletion::deleted::Deleted;
use crate::deletion::deletion_policy;
use crate::deletion::release;
use crate::instance::certificate::CertificateExpiry;
use crate::instance::enqueue::Enqueue;
use crate::instance::identity::Identity;
use crate::instance::instance_reconciler::{InstanceReconciler, RdsConfig, Shared};
use crate::instance::modification::outcomes::SYNCED;
use crate::instance::record::Record;
use crate::instance::step_error::StepError;
use crate::instance::suspension;
use crate::instance::sync::Subject;
use crate::offers::OfferRefresh;
use crate::origin::replica_source;
use crate::origin::source_policy::SourcePolicy;
use crate::quota::ledger::Ledger;

/// Reconciler of CloudDatabase.
///
/// # Guarantees
///
/// Each object has at most one instance, even if calls are lost or repeated: the identifier contains the UID of
/// the object or is in its spec, and the instance has the UID as a tag. An instance without this tag is never modified. An instance
/// in another region or account is not searched for here. An instance that RDS has listed before and no longer
/// finds is not replaced unless a user requests it.
pub struct CloudDatabaseReconciler {
    pub(crate) shared: Shared,
    pub(crate) reconcilers: AccessPool<Owner, Arc<InstanceReconciler>>,
    external_ids: ExternalIds,
    /// Refresh of the catalogue of what RDS offers, unless it is disabled.
    offers: Option<OfferRefresh>,
}

impl CloudDatabaseReconciler {
    /// Creates a reconciler that reads Secrets with `client` and manages instances with `clients`. It reports when their
    /// certificates expire in `certificate_expiry`.
    pub fn new(
        client: Client,
        clients: RdsClients,
        config: RdsConfig,
        certificate_expiry: CertificateExpiry,
    ) -> Self {
        Self {
            shared: Shared {
                client,
                secret_access: SecretAccess::default(),
                config,
                ca_bundle: None,
                certificate_expiry,
                source_policy: SourcePolicy::default(),
                enqueue: Enqueue::default(),
                quotas: Ledger::default(),
                events: RdsEvents::default(),
                clients,
                watches_namespaces: true,
            },
            reconcilers: AccessPool::new(),
            external_ids: ExternalIds::default(),
            offers: None,
        }
    }

    /// Sets the names by which an administrator grants the rights on Secrets.
    #[must_use]
    pub fn with_secret_access(mut self, access: SecretAccess) -> Self {
        self.shared.secret_access = access;
        self
    }

    /// Sets the CA certificates of RDS, in PEM format, which applications get with the Secret to connect.
    #[must_use]
    pub fn with_ca_bundle(mut self, ca_bundle: Option<Arc<str>>) -> Self {
        self.shared.ca_bundle = ca_bundle;
        self
    }

    /// Sets the sources of data that objects may use.
    #[must_use]
    pub fn with_source_policy(mut self, source_policy: SourcePolicy) -> Self {
        self.shared.source_policy = source_policy;
        self
    }

    /// Sets the refresh of the catalogue of what RDS offers.
    #[must_use]
    pub fn with_offer_refresh(mut self, offers: Option<OfferRefresh>) -> Self {
        self.offers = offers;
        self
    }

    /// Sets the events that report changes by other clients. What was known of them in earlier terms is forgotten.
    #[must_use]
    pub fn with_events(mut self, events: RdsEvents) -> Self {
        events.changed.clear();
        self.shared.events = events;
        self
    }

    /// Sets the record of the Namespaces that use the external IDs of their annotations.
    #[must_use]
    pub fn with_external_ids(mut self, record: NamedConfigMap) -> Self {
        self.external_ids = ExternalIds::new(record);
        self
    }

    /// Sets the running controllers, which reconcile objects whose deletion may have become possible.
    #[must_use]
    pub fn with_controllers(mut self, controllers: ControllerRegistry) -> Self {
        self.shared.enqueue = Enqueue::in_controllers(controllers);
        self
    }

    /// Ignores the annotations of Namespaces, which a controller with permissions in some namespaces only cannot watch.
    /// Objects cannot choose a role then.
    #[must_use]
    pub fn without_namespaces(mut self) -> Self {
        self.shared.watches_namespaces = false;
        self
    }

    async fn credentials(&self, request: &SyncRequest<'_, CloudDatabase>) -> Credentials {
        let secrets = Secrets {
            client: &self.shared.client,
            access: &self.shared.secret_access,
            needed: owned_secrets::needed_rights(request.raw_parent()),
        };
        credentials::read(secrets, request.parent()).await
    }

    /// Returns the reconciler for the region and the role of an object.
    async fn reconciler_of(
        &self,
        object: &Value,
        related: RelatedObjects<'_>,
    ) -> Result<Arc<InstanceReconciler>, ReconcileError> {
        let rules = self.shared.clients.access_rules();
        let access = if self.shared.watches_namespaces {
            namespaces::access(object, related, rules, &self.external_ids).await?
        } else {
            NamespaceAccess::default().for_object(object, rules)?
        };
        let access = self.shared.clients.normalized(&access);
        let owner = Owner::from_object(object);
        if let Some(reconciler) = self.reconcilers.get(&owner, &access) {
            return Ok(reconciler);
        }
        let client = self.shared.clients.client(&access).await;
        let created = Arc::new(InstanceReconciler::new(
            self.shared.clone(),
            access.clone(),
            client,
        ));
        Ok(self.reconcilers.add(&owner, access, created))
    }
}

fn is_transient(error: &ReconcileError) -> bool {
    match error {
        ReconcileError::RequeueAfter { error, .. } | ReconcileError::Inconclusive(error) => {
            is_transient(error)
        }
        error => matches!(error, ReconcileError::Transient { .. }),
    }
}

/// Returns the result of a step with the status after it.
pub(crate) fn with_status(
    output: ReconcileOutput,
    before: &Record,
    after: &CloudDatabaseStatus,
) -> ReconcileOutput {
    match replace_status::<CloudDatabaseStatus>(before, after) {
        Ok(status) => ReconcileOutput { status, ..output },
        Err(error) => ReconcileOutput {
            error: Some(error),
            ..output
        },
    }
}

#[async_trait]
impl Reconciler for CloudDatabaseReconciler {
    type Kind = CloudDatabase;

    fn finalizer(&self) -> Option<&'static str> {
        Some(FINALIZER)
    }

    fn initial_status(&self, object: &Value) -> Map<String, Value> {
        let uid = object["metadata"]["uid"].as_str();
        let uid = uid.map(|uid| ("completeFor".to_owned(), json!(uid)));
        uid.into_iter().collect()
    }

    async fn status_identity(
        &self,
        request: &SyncRequest<'_, CloudDatabase>,
    ) -> Result<Map<String, Value>, ReconcileError> {
        let id = Identity::of(request.parent())?.id;
        let reconciler = self.reconciler_of(request.raw_parent(), request.related());
        let record = Record::from_object(request.raw_parent(), &id);
        reconciler.await?.locate(&id, &record).await?;
        let before: CloudDatabaseStatus = read_status(&request.raw_parent()["status"]);
        let is_copied = before
            .instance_id
            .as_ref()
            .is_some_and(|recorded| *recorded != id);
        let after = CloudDatabaseStatus {
            instance_id: Some(id),
            complete_for: before.complete_for.clone(),
            ..CloudDatabaseStatus::default()
        };
        // Nothing of a status that was copied from another object is true.
        let before = if is_copied { before } else { after.clone() };
        replace_status(&before, &after)
    }

    async fn observe_suspended(&self, suspended: &SuspendedRequest<'_>) -> Option<ReconcileOutput> {
        let object = suspended.object;
        let identity = Identity::of_stored(object, suspended.last_validated).ok()?;
        let record = Record::from_object(object, &identity.id);
        // There is nothing to observe before.
        record.listed_id()?;
        let owner = Owner::from_object(object);
        let change = self.shared.events.changed.take(&owner);
        let reconciler = match self.reconciler_of(object, suspended.related).await {
            Ok(reconciler) => reconciler,
            Err(error) => {
                let period = self.shared.config.resync_period;
                return Some(suspension::not_described(&error, period));
            }
        };
        let max_age = change.as_ref().map_or(Duration::MAX, Change::max_age);
        let uid = object["metadata"]["uid"].as_str();
        let mut status = record.next(&identity.id);
        let observed = reconciler.observe_suspended(&identity, &record, uid, max_age, &mut status);
        let output = with_status(Box::pin(observed).await, &record, &status);
        let is_described = output.readiness.is_some();
        if let Some(mut change) = change.filter(|_| is_described) {
            change.set_seen();
        }
        Some(output)
    }

    async fn reconcile(
        &self,
        request: &SyncRequest<'_, CloudDatabase>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        let object = request.parent();
        if let Some(offers) = &self.offers {
            offers.of_engine(object.spec.engine);
        }
        let identity = Identity::of(object)?;
        let reconciler = self.reconciler_of(request.raw_parent(), request.related());
        let reconciler = reconciler.await?;
        let record = Record::from_object(request.raw_parent(), &identity.id);
        // The annotations may have changed since the identity was recorded: an instance in another region must not be created.
        let location = reconciler.locate(&identity.id, &record).await?;
        let credentials = self.credentials(request).await;
        let is_stored = credentials.is_stored();
        let mut reads = credentials.reads;
        let (source, read) = match &object.spec.replica_of {
            Some(named) => {
                let client = &self.shared.client;
                let (source, read) = replica_source::read(client, object, named, &location).await;
                (Some(source), read)
            }
            None => (None, None),
        };
        reads.extend(read);
        let owner = Owner::from_object(request.raw_parent());
        let changed = &self.shared.events.changed;
        changed.set_owner(&location.instance(&identity.id), &owner);
        let change = changed.take(&owner);
        let subject = Subject {
            identity: &identity,
            request,
            record: &record,
            user: credentials.user,
            source,
        };
        let mut status = record.next(&identity.id);
        let done = Box::pin(reconciler.sync(subject, change, &mut status)).await;
        let mut output = done.unwrap_or_else(|error| reconciler.output_of(error, &mut status));
        if output.error.is_none()
            && let Err(error) =
                owned_secrets::add(&mut output, &mut status, request, credentials.secret)
        {
            output = reconciler.output_of(error.into(), &mut status);
        }
        if status.region.is_none() {
            // Nothing was requested, or RDS has rejected it.
            let woken = self.shared.quotas.revoke(&owner);
            self.shared.enqueue.all(&woken);
        }
        // What was requested is recorded in any case.
        let mut output = with_status(output, &record, &status);
        reads.append(&mut output.reads);
        Ok(ReconcileOutput {
            reads,
            // A generated password is used by the next reconciliation, once it is stored.
            reads_children: !is_stored,
            ..output
        })
    }

    fn owns(&self) -> Vec<OwnedType> {
        vec![owned_secrets::owned_type()]
    }

    fn watches(&self) -> Vec<Watch> {
        if !self.shared.watches_namespaces {
            return Vec::new();
        }
        let (offers, clients) = (self.offers.clone(), self.shared.clients.clone());
        let rules = self.shared.clients.access_rules().clone();
        let namespaces = namespaces::watch(rules, move |access| {
            if let Some(offers) = &offers {
                offers.add_access(&clients.normalized(access));
            }
        });
        vec![namespaces]
    }

    fn rbac_rules(&self) -> Vec<Value> {
        crate::rbac_rules()
    }

    fn conditions_on_error(&self, error: &ReconcileError) -> Vec<OperatorCondition> {
        vec![OperatorCondition {
            type_: SYNCED,
            is_true: false,
            reason: error.reason(),
            message: error.to_string(),
        }]
    }

    async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        let owner = Owner::from_object(deleted.object);
        let changed = &self.shared.events.changed;
        let change = changed.take(&owner);
        let identity = Identity::of_deleted(deleted)?;
        let record = Record::from_object(deleted.object, &identity.id);
        let mut status = record.next(&identity.id);
        let done = match self.reconciler_of(deleted.object, deleted.related).await {
            Ok(reconciler) => {
                let step = reconciler.finalize(deleted, &identity, &record, &mut status);
                let step = step.await;
                reconciler.retry_refused(&owner, step, &mut status)
            }
            Err(error) => {
                let deleted = Deleted::new(deleted, &identity, &record);
                let is_over = || {
                    release::deletion_age(deleted.request)
                        >= self.shared.config.not_found_grace_period
                };
                // What passes by itself, such as a Namespace that the watch has not delivered, is waited for.
                let done = (!is_transient(&error) || is_over())
                    .then(|| release::without_access(&deleted, &error))
                    .flatten();
                done.unwrap_or_else(|| {
                    FinalizeOutcome::Waiting(StepError::from(error).into_output(&mut status))
                })
            }
        };
        // Each step describes the instance anew.
        if let Some(mut change) = change {
            change.set_seen();
        }
        Ok(match done {
            FinalizeOutcome::Waiting(output) => {
                FinalizeOutcome::Waiting(with_status(output, &record, &status))
            }
            done => {
                changed.remove_owner(&owner);
                self.reconcilers.remove(&owner);
                self.shared.enqueue.all(&self.shared.quotas.release(&owner));
                done
            }
        })
    }

    fn forget(&self, uid: &str) {
        self.shared.certificate_expiry.forget(uid);
    }

    fn deletion_effect(deleted: &FinalizeRequest<'_>) -> Option<DeletionEffect> {
        Some(deletion_policy::effect(deleted))
    }
}
