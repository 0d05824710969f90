//! Variant of the operator with a planted fault.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, Leadership, OperatorEvent, OwnedType, Readiness,
    ReconcileError, ReconcileOutput, Reconciler, SyncRequest,
};
use sample_dns_record::{
    DnsApi, DnsError, DnsRecord, RESYNC, RecordContent, StoredRecord, config_map, desired,
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::fault::Fault;

/// Token of the API, which belongs to no status.
pub const TOKEN: &str = "dns-token-4711";

/// Variant of the operator with a planted fault.
pub struct FaultyDnsRecords {
    pub api: DnsApi,
    pub client: Client,
    pub leadership: Leadership,
    pub fault: Fault,
    pub memory: Mutex<Memory>,
}

/// Memory of a process.
#[derive(Default)]
pub struct Memory {
    ids: BTreeMap<String, String>,
    records: BTreeMap<String, StoredRecord>,
    taken: BTreeSet<String>,
    current: Option<RecordContent>,
}

fn transient(reason: &'static str, message: impl Into<String>) -> ReconcileError {
    let message = message.into();
    ReconcileError::Transient { reason, message }
}

fn not_leading() -> ReconcileError {
    let error = transient("NotLeading", "another process is or becomes the leader");
    ReconcileError::Inconclusive(Box::new(error))
}

fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_nanos().to_string()
}

fn is_same(content: &RecordContent, desired: &RecordContent) -> bool {
    (&content.name, &content.r#type) == (&desired.name, &desired.r#type)
}

impl FaultyDnsRecords {
    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn must_lead(&self) -> Result<(), ReconcileError> {
        let is_leader = self.leadership.outlasts(self.api.timeout());
        is_leader.then_some(()).ok_or_else(not_leading)
    }

    fn objects(&self, record: &DnsRecord) -> Api<DnsRecord> {
        let namespace = record.namespace().unwrap_or_default();
        Api::namespaced(self.client.clone(), &namespace)
    }

    async fn must_exist(&self, record: &DnsRecord) -> Result<(), ReconcileError> {
        let found = self
            .objects(record)
            .get_metadata_opt(&record.name_any())
            .await;
        match found {
            Ok(Some(found))
                if found.metadata.uid == record.metadata.uid
                    && found.metadata.deletion_timestamp.is_none() =>
            {
                Ok(())
            }
            Ok(_) => Err(transient("Deleted", "the object was deleted")),
            Err(error) => Err(transient("ApiServerFailed", error.to_string())),
        }
    }

    /// Translates an error of the API.
    fn error(&self, error: DnsError) -> ReconcileError {
        if let DnsError::Failed(why) = &error {
            assert!(
                !(self.has(Fault::PanicsOnServerError) && why.starts_with("500")),
                "unexpected status {why}"
            );
            if self.has(Fault::ReportsToken) {
                return transient("DnsApiFailed", format!("GET with token {TOKEN}: {why}"));
            }
            if self.has(Fault::NeverRetries) {
                let (reason, message) = ("DnsApiFailed", why.clone());
                return ReconcileError::Permanent { reason, message };
            }
        }
        let error = Box::new(ReconcileError::from(error));
        if self.has(Fault::RetriesWithoutBackoff) {
            let after = Duration::ZERO;
            return ReconcileError::RequeueAfter { after, error };
        }
        *error
    }

    /// Returns the record that an object wants.
    async fn wanted(&self, record: &DnsRecord) -> RecordContent {
        let mut wanted = desired(record);
        if self.has(Fault::MarksWithNameInsteadOfUid) {
            wanted.owner = record.name_any();
        }
        if self.has(Fault::SharesMutableState) {
            self.memory.lock().await.current = Some(wanted.clone());
        }
        wanted
    }

    async fn check_name(&self, wanted: &RecordContent) -> Result<(), ReconcileError> {
        let taken = || {
            let (reason, message) = ("NameTaken", "the name is taken".to_owned());
            ReconcileError::Permanent { reason, message }
        };
        if self.memory.lock().await.taken.contains(&wanted.name) {
            return Err(taken());
        }
        let named = loop {
            match self.api.with_name(&wanted.name).await {
                Ok(named) => break named,
                Err(_) if self.has(Fault::RetriesWithoutBound) => {}
                Err(error) => return Err(self.error(error)),
            }
        };
        let mut named = named
            .into_iter()
            .filter(|it| it.content.r#type == wanted.r#type);
        let Some(other) = named.find(|it| it.content.owner != wanted.owner) else {
            return Ok(());
        };
        match self.fault {
            Fault::IgnoresForeignRecord | Fault::ReadyDespiteTakenName => Ok(()),
            Fault::AdoptsForeignRecord => {
                let adopted = self.api.update(&other, wanted).await;
                adopted.map_err(|error| self.error(error)).map(drop)
            }
            Fault::RemembersTakenNames => {
                self.memory.lock().await.taken.insert(wanted.name.clone());
                Err(taken())
            }
            _ => Err(taken()),
        }
    }

    /// Returns the records of an object, as far as this variant finds them.
    async fn own(
        &self,
        record: &DnsRecord,
        wanted: &RecordContent,
    ) -> Result<Vec<StoredRecord>, ReconcileError> {
        let uid = &wanted.owner;
        if self.has(Fault::CachesActualState)
            && let Some(cached) = self.memory.lock().await.records.get(uid)
        {
            return Ok(vec![cached.clone()]);
        }
        let mut own = match self.api.of_owner(uid).await {
            Err(_) if self.has(Fault::TakesErrorForAbsence) => Vec::new(),
            own => own.map_err(|error| self.error(error))?,
        };
        match self.fault {
            Fault::KnowsOnlyTheIdInTheStatus => {
                let status = record.status.as_ref();
                let id = status.and_then(|status| status.record_id.as_deref());
                own.retain(|it| Some(it.id.as_str()) == id);
            }
            Fault::KnowsOnlyTheIdInMemory => {
                let memory = self.memory.lock().await;
                own.retain(|it| memory.ids.get(uid) == Some(&it.id));
            }
            _ => {}
        }
        Ok(own)
    }

    async fn create(
        &self,
        record: &DnsRecord,
        wanted: &RecordContent,
    ) -> Result<StoredRecord, ReconcileError> {
        if !self.has(Fault::CreatesWithoutLeadership) {
            self.must_exist(record).await?;
            self.must_lead()?;
        }
        if self.has(Fault::MarksOwnerAfterCreation) {
            let unmarked = RecordContent {
                owner: String::new(),
                ..wanted.clone()
            };
            let created = self.api.create(&unmarked).await;
            let created = created.map_err(|error| self.error(error))?;
            let marked = self.api.update(&created, wanted).await;
            return marked.map_err(|error| self.error(error));
        }
        if self.has(Fault::RepeatsCreationBlindly)
            && let Ok(created) = self.api.create(wanted).await
        {
            return Ok(created);
        }
        let created = self.api.create(wanted).await;
        let created = created.map_err(|error| self.error(error))?;
        let mut memory = self.memory.lock().await;
        memory.ids.insert(wanted.owner.clone(), created.id.clone());
        Ok(created)
    }

    async fn update(
        &self,
        stored: StoredRecord,
        wanted: &RecordContent,
    ) -> Result<StoredRecord, ReconcileError> {
        let path = format!("/records/{}", stored.id);
        let change = |fields: Value| {
            self.api
                .call(http::Method::PATCH, &path, Some(fields), None)
        };
        let assumed = StoredRecord {
            content: wanted.clone(),
            ..stored.clone()
        };
        let updated = match self.fault {
            Fault::OverwritesAsFormerLeader => {
                let content = serde_json::to_value(wanted).ok();
                let put = self.api.call(http::Method::PUT, &path, content, None).await;
                put.map(|_| assumed.clone())
            }
            Fault::UpdatesPartially => change(json!({"ttl": wanted.ttl}))
                .await
                .map(|_| assumed.clone()),
            Fault::LosesLabel => {
                let content = RecordContent {
                    label: String::new(),
                    ..wanted.clone()
                };
                self.api.update(&stored, &content).await
            }
            _ => {
                self.must_lead()?;
                self.api.update(&stored, wanted).await
            }
        };
        match updated {
            Ok(updated) => Ok(updated),
            Err(_) if self.has(Fault::SwallowsUpdateErrors) => Ok(assumed),
            Err(DnsError::Failed(why))
                if self.has(Fault::TakesTimeoutForSuccess)
                    && (why.starts_with("504") || why.contains("SendRequest")) =>
            {
                Ok(assumed)
            }
            Err(error) => Err(self.error(error)),
        }
    }

    /// Brings the records of an object to the desired state and returns the one that is left.
    async fn bring(&self, record: &DnsRecord) -> Result<StoredRecord, ReconcileError> {
        let mut wanted = self.wanted(record).await;
        self.check_name(&wanted).await?;
        if self.has(Fault::SharesMutableState)
            && let Some(current) = self.memory.lock().await.current.clone()
        {
            wanted = current;
        }
        let mut own = self.own(record, &wanted).await?;
        let kept = own.iter().position(|it| is_same(&it.content, &wanted));
        let stored = match kept.map(|at| own.swap_remove(at)) {
            Some(stored) if stored.content == wanted && !self.has(Fault::UpdatesEachTime) => stored,
            Some(stored) if self.has(Fault::IgnoresSpecChanges) => stored,
            Some(stored) if self.has(Fault::LosesLabel) && stored.content.label.is_empty() => {
                stored
            }
            Some(stored) => self.update(stored, &wanted).await?,
            None => self.create(record, &wanted).await?,
        };
        for surplus in own {
            if self.has(Fault::LeavesOldName) {
                continue;
            }
            self.must_lead()?;
            let wrong = self.has(Fault::DeletesWrongRecordAfterRename);
            let id = if wrong { &stored.id } else { &surplus.id };
            let deleted = self.api.delete(id).await;
            deleted.map_err(|error| self.error(error))?;
        }
        let mut memory = self.memory.lock().await;
        memory.records.insert(wanted.owner, stored.clone());
        Ok(stored)
    }

    /// Does what some variants do before the record is brought to its desired state.
    async fn before(&self, request: &SyncRequest<'_, DnsRecord>) -> Result<(), ReconcileError> {
        let record = request.parent();
        let (api, name) = (self.objects(record), record.name_any());
        let generation = record.metadata.generation.unwrap_or_default();
        let params = PatchParams::default();
        let failed = |error: kube::Error| transient("ApiServerFailed", error.to_string());
        match self.fault {
            Fault::WritesSpecBack => {
                let patch = json!({"spec": record.spec});
                let written = api.patch(&name, &params, &Patch::Merge(patch)).await;
                written.map_err(failed)?;
            }
            Fault::LeavesSecondFinalizer => {
                let own = request.raw_parent()["metadata"]["finalizers"].as_array();
                let mut all = own.cloned().unwrap_or_default();
                let second = json!("dns.example.com/second");
                if !all.contains(&second) {
                    all.push(second);
                    let patch = json!({"metadata": {"finalizers": all}});
                    let written = api.patch(&name, &params, &Patch::Merge(patch)).await;
                    written.map_err(failed)?;
                }
            }
            Fault::ReportsReadyTooEarly => {
                let ready = json!({
                    "type": "Ready", "status": "True", "reason": "Available", "message": "",
                    "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z",
                });
                let patch = json!({"status": {"conditions": [ready]}});
                let written = api.patch_status(&name, &params, &Patch::Merge(patch)).await;
                written.map_err(failed)?;
            }
            Fault::ReportsWrongGeneration => {
                let patch = json!({"status": {"observedGeneration": generation - 1}});
                let written = api.patch_status(&name, &params, &Patch::Merge(patch)).await;
                written.map_err(failed)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Creates the `ConfigMap` without the runtime, where a variant does that.
    async fn create_config_map(
        &self,
        record: &DnsRecord,
        content: &Value,
    ) -> Result<(), ReconcileError> {
        let failed = |error: kube::Error| transient("ApiServerFailed", error.to_string());
        let mut content = content.clone();
        if self.has(Fault::DoesNotWatchOwnedObject) {
            content["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "dns.example.com/v1", "kind": "DnsRecord", "controller": true,
                "name": record.name_any(), "uid": record.uid(),
            }]);
        }
        let namespace = record.namespace().unwrap_or_default();
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &namespace);
        let name = content["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let wanted: ConfigMap = serde_json::from_value(content).expect("a ConfigMap");
        match maps.get_opt(&name).await.map_err(failed)? {
            Some(found) if found.data == wanted.data => {}
            Some(found) => {
                let mut changed = wanted;
                changed.metadata.resource_version = found.resource_version();
                let replaced = maps.replace(&name, &PostParams::default(), &changed).await;
                replaced.map_err(failed)?;
            }
            None => {
                let created = maps.create(&PostParams::default(), &wanted).await;
                created.map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Returns the output for a record in its desired state.
    async fn output(
        &self,
        request: &SyncRequest<'_, DnsRecord>,
        stored: &StoredRecord,
    ) -> Result<ReconcileOutput, ReconcileError> {
        let record = request.parent();
        let before = record
            .status
            .as_ref()
            .and_then(|status| status.served_name.as_deref());
        let mut served = stored.content.name.as_str();
        if self.has(Fault::WritesStatusOnce) {
            served = before.unwrap_or(served);
        }
        let mut status = json!({"recordId": stored.id, "servedName": served});
        if self.has(Fault::HasUnstableStatus) {
            status["recordId"] = now().into();
        }
        let child_name = match self.fault {
            Fault::MakesOwnedObjectFromStatus => before.unwrap_or_default(),
            _ => &stored.content.name,
        };
        let mut child = config_map(&record.name_any(), child_name);
        if self.has(Fault::HasUnstableOwnedObject) {
            child["data"]["at"] = now().into();
        }
        let is_own = matches!(
            self.fault,
            Fault::ForgetsOwnerReference | Fault::DoesNotWatchOwnedObject
        );
        if is_own {
            self.create_config_map(record, &child).await?;
        }
        let events = self
            .has(Fault::PublishesEventEachTime)
            .then(|| OperatorEvent {
                is_warning: false,
                reason: "Reconciled",
                note: format!("reconciled at {}", now()),
            });
        Ok(ReconcileOutput {
            status: status.as_object().cloned().unwrap_or_default(),
            children: if is_own { Vec::new() } else { vec![child] },
            requeue_after: match self.fault {
                Fault::RequeuesForEver => Duration::from_secs(1),
                _ => RESYNC,
            },
            events: events.into_iter().collect(),
            ..ReconcileOutput::default()
        })
    }

    /// Returns the output of variants that do not look at the record.
    async fn shortcut(
        &self,
        request: &SyncRequest<'_, DnsRecord>,
    ) -> Result<Option<ReconcileOutput>, ReconcileError> {
        let object = request.raw_parent();
        let conditions = object["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten();
        let mut ready = conditions.filter(|it| it["type"] == "Ready" && it["status"] == "True");
        let is_ready = ready.any(|it| it["observedGeneration"] == object["metadata"]["generation"]);
        let record = request.parent();
        let assumed = StoredRecord {
            id: object["status"]["recordId"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            version: 0,
            content: desired(record),
        };
        match self.fault {
            Fault::TrustsItsStatus if is_ready => Ok(Some(self.output(request, &assumed).await?)),
            Fault::WritesInBackground => {
                let api = DnsApi::new(self.api.url(), self.api.timeout());
                let wanted = desired(record);
                self.check_name(&wanted).await?;
                self.must_exist(record).await?;
                self.must_lead()?;
                tokio::spawn(async move {
                    let own = api.of_owner(&wanted.owner).await.unwrap_or_default();
                    match own.first() {
                        Some(stored) if stored.content == wanted => {}
                        Some(stored) => drop(api.update(stored, &wanted).await),
                        None => drop(api.create(&wanted).await),
                    }
                });
                Ok(Some(self.output(request, &assumed).await?))
            }
            _ => Ok(None),
        }
    }
}

#[async_trait]
impl Reconciler for FaultyDnsRecords {
    type Kind = DnsRecord;

    fn finalizer(&self) -> Option<&'static str> {
        (!self.has(Fault::HasNoFinalizer)).then_some("dns.example.com/record")
    }

    fn owns(&self) -> Vec<OwnedType> {
        vec![OwnedType::namespaced::<ConfigMap>()]
    }

    async fn reconcile(
        &self,
        request: &SyncRequest<'_, DnsRecord>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        self.before(request).await?;
        if let Some(output) = self.shortcut(request).await? {
            return Ok(output);
        }
        match self.bring(request.parent()).await {
            Ok(stored) => {
                let mut output = self.output(request, &stored).await?;
                if self.has(Fault::ReadyDespiteTakenName) {
                    output.readiness = Some(Readiness {
                        ready: true,
                        reason: "Available",
                        message: "the record is served".to_owned(),
                    });
                }
                Ok(output)
            }
            Err(error) => Err(error),
        }
    }

    async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        let object = deleted.object;
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let mut owner = text("/metadata/uid");
        let conditions = object["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten();
        let mut ready = conditions.filter(|it| it["type"] == "Ready" && it["status"] == "True");
        match self.fault {
            Fault::IgnoresDeletion => return Ok(FinalizeOutcome::Done),
            Fault::DeletesOnlyIfReady if ready.next().is_none() => {
                return Ok(FinalizeOutcome::Done);
            }
            Fault::PanicsWithoutStatus => {
                let id = object.pointer("/status/recordId").and_then(Value::as_str);
                let id = id.expect("the record was created");
                let deleted = self.api.delete(id).await;
                deleted.map_err(|error| self.error(error))?;
            }
            Fault::NeedsRecordToDelete => {
                let id = text("/status/recordId");
                if !id.is_empty() {
                    let path = format!("/records/{id}");
                    let deleted = self.api.call(http::Method::DELETE, &path, None, None).await;
                    deleted.map_err(|error| self.error(error))?;
                }
            }
            Fault::MarksWithNameInsteadOfUid => owner = text("/metadata/name"),
            _ => {}
        }
        let found = match self.fault {
            Fault::DeletesByName => self.api.with_name(text("/spec/name")).await,
            _ => self.api.of_owner(owner).await,
        };
        let found = match found {
            Err(_) if self.has(Fault::TakesErrorForAbsenceOnDeletion) => Vec::new(),
            found => found.map_err(|error| self.error(error))?,
        };
        for record in found {
            self.must_lead()?;
            match self.api.delete(&record.id).await {
                Err(_) if self.has(Fault::RemovesFinalizerOnError) => {}
                deleted => deleted.map_err(|error| self.error(error))?,
            }
        }
        if self.has(Fault::NeverFinishesDeletion) {
            return Ok(FinalizeOutcome::Waiting(ReconcileOutput {
                requeue_after: Duration::from_secs(30),
                ..ReconcileOutput::default()
            }));
        }
        Ok(FinalizeOutcome::Done)
    }
}
