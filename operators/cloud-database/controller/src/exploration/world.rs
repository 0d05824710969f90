//! Everything that the steps of a reconciliation depend on: the object, RDS, the memory of the process, and the time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use lockstep_cloud_database_api::CloudDatabase;
use lockstep_controller::{
    Children, FinalizeOutcome, FinalizeRequest, Leadership, ReconcileError, ReconcileOutput,
    RelatedObjects, SyncRequest,
};
use serde_json::{Map, Value, json};

use crate::aws::access::Access;
use crate::aws::metrics::AwsRequests;
use crate::aws::rate_limits::RateLimits;
use crate::aws::rds_client::RdsClient;
use crate::aws::rds_clients::RdsClients;
use crate::aws::recent::tests::config_at;
use crate::clock::virtual_time::{self, Time};
use crate::credentials::master_user::{KnownPassword, MasterPassword, MasterUser};
use crate::exploration::answers::{ModelRds, Session};
use crate::exploration::memory::Memory;
use crate::exploration::rds::{ACCOUNT, Effect, Rds};
use crate::instance::identity::Identity;
use crate::instance::instance_reconciler::{InstanceReconciler, RdsConfig, Shared};
use crate::instance::record::Record;
use crate::instance::sync::Subject;
use crate::reconciler::{CloudDatabaseReconciler, with_status};

/// Time that RDS needs for anything. It is longer than the grace periods and the time after which RDS shows a change.
pub(super) const TICK: Duration = Duration::from_mins(11);

/// Step of the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Reconciliation or finalization, whose calls get the answers with these numbers.
    Reconcile(Vec<usize>),
    /// Some seconds pass, in which a call takes effect whose answer was lost.
    Land,
    /// Time passes, and RDS ends what it is doing. If true, it takes changes back.
    Pass(bool),
    /// A user makes the next change of the scenario.
    Edit,
    /// A user deletes the object.
    Delete,
    /// The process ends, and another one takes over.
    TakeOver,
    /// The status of the object is erased.
    EraseStatus,
    /// Another client deletes the instance.
    DeleteElsewhere,
    /// Another client makes the instance public.
    PublishElsewhere,
    /// The Secret with the password is deleted.
    LoseSecret,
    /// A user changes the password in the Secret.
    ChangePassword,
    /// The data of the API server is restored from a backup: the object as it was before the last change of its status.
    RestoreStored,
    /// The object is created anew from a backup, with another UID. That of before, and the process, are gone.
    CreateAnew,
}

/// Events of a scenario in addition to those that each has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extras {
    pub(super) password_changes: bool,
    pub(super) backups: bool,
}

/// State of the object as the last reconciliation told it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Told {
    pub(super) is_ready: bool,
    pub(super) is_synced: bool,
    /// Reason of the condition `Synced`.
    pub(super) synced: &'static str,
    /// Reason of the error, or of the condition `Stalled`.
    pub(super) problem: Option<String>,
    /// If true, only a person can go on.
    pub(super) is_stalled: bool,
}

#[derive(Clone)]
pub(super) struct World {
    pub(super) rds: Rds,
    /// UID of the object.
    pub(super) uid: &'static str,
    /// Object as stored, unless it is gone.
    pub(super) object: Option<Value>,
    memory: Memory,
    pub(super) time: Time,
    pub(super) faults: u8,
    /// Number of changes of the user that were made.
    pub(super) edits: usize,
    pub(super) told: Told,
    /// Reason why the object went without the deletion of its instance.
    pub(super) retained: Option<String>,
    /// Number of disruptive changes that RDS has carried out since the last change of the user.
    pub(super) disruptions: usize,
    /// If true, what the status recorded was lost.
    pub(super) has_lost_status: bool,
    pub(super) has_secret: bool,
    /// True once the Secret has another password than at the beginning.
    pub(super) is_password_changed: bool,
    pub(super) extras: Extras,
    /// Object before the last change of its status, if it can be restored.
    pub(super) backup: Option<Value>,
    /// Effects of the last step.
    pub(super) effects: Vec<Effect>,
}

/// UIDs of the object, and of the one that is created anew from its backup.
pub(super) const UID: &str = "uid-1";
pub(super) const UID_ANEW: &str = "uid-2";

/// Passwords in the Secret, before and after it is changed.
pub(super) const PASSWORDS: [&str; 2] = ["correct-horse", "battery-staple"];

/// Parts of the reconciler that no step changes.
pub(super) struct Surroundings {
    shared: Shared,
    client: RdsClient,
    /// Object as the API server returns it.
    stored: Arc<Mutex<Option<Value>>>,
}

impl Surroundings {
    pub(super) async fn new() -> Self {
        let stored = Arc::<Mutex<Option<Value>>>::default();
        let config = config_at("http://127.0.0.1:9").await;
        let limits = RateLimits::unlimited();
        let requests = AwsRequests::default();
        let clients = RdsClients::of(config, Leadership::always(), limits, None, requests);
        let client = clients.default_client().await;
        let api_server = api_server(Arc::clone(&stored));
        let config = RdsConfig::default();
        let reconciler =
            CloudDatabaseReconciler::new(api_server, clients, config, Default::default());
        Self {
            shared: reconciler.without_namespaces().shared,
            client,
            stored,
        }
    }
}

fn api_server(stored: Arc<Mutex<Option<Value>>>) -> Client {
    let server = tower::service_fn(move |request: Request<Body>| {
        let mut object = stored.lock().expect("no panic").clone();
        if request.uri().path().ends_with("/clouddatabases") {
            object = Some(json!({
                "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabaseList",
                "metadata": {}, "items": Vec::from_iter(object),
            }));
        }
        let missing = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "message": "",
            "reason": "NotFound",
        });
        let (code, body) = object.map_or((404, missing), |object| (200, object));
        let body = Body::from(body.to_string().into_bytes());
        let response = Response::builder().status(code).body(body);
        async { Ok::<_, std::io::Error>(response.expect("an answer")) }
    });
    Client::new(server, "shop")
}

/// Result of a step of the operator.
enum Done {
    Output(Box<ReconcileOutput>),
    Gone,
    Retained(String),
}

impl World {
    /// Returns a world with an object that was just created.
    pub(super) fn new(spec: &Value, rds: Rds, time: Time, faults: u8, extras: Extras) -> Self {
        Self {
            rds,
            uid: UID,
            object: Some(created(UID, spec, time)),
            memory: Memory::default(),
            time,
            faults,
            edits: 0,
            told: Told::default(),
            retained: None,
            disruptions: 0,
            has_lost_status: false,
            has_secret: true,
            is_password_changed: false,
            extras,
            backup: None,
            effects: Vec::new(),
        }
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.object.as_ref().is_some_and(is_deleting)
    }

    /// Returns true if a user can change the password in the Secret. An instance is adopted with the password that is
    /// recorded together with the region.
    pub(super) fn can_change_password(&self) -> bool {
        let Some(object) = &self.object else {
            return false;
        };
        let is_recorded = object["status"]["region"].is_string();
        self.extras.password_changes
            && self.has_secret
            && !self.is_password_changed
            && (object["spec"]["adopt"].is_null() || is_recorded)
    }

    /// Returns the password in the Secret.
    pub(super) fn password(&self) -> &'static str {
        PASSWORDS[usize::from(self.is_password_changed)]
    }

    pub(super) fn spec(&self) -> Option<CloudDatabase> {
        let object = self.object.clone()?;
        Some(serde_json::from_value(object).expect("a database"))
    }

    /// Returns a text that is equal for worlds from which the same follows. Longer ages than `oldest` are not distinguished.
    pub(super) fn digest(&self, oldest: Duration) -> String {
        let text = |object: &Value| {
            let mut status = object["status"].clone();
            self.replace_times(&mut status, oldest.as_secs());
            format!("{}{status}{}", object["spec"], is_deleting(object))
        };
        format!(
            "{}|{:?}|{:?}|{:?}|{}|{}|{}|{:?}|{:?}|{}|{}|{}|{}",
            self.uid,
            self.object.as_ref().map(text),
            self.backup.as_ref().map(text),
            self.rds,
            self.memory.digest(self.time.instant, oldest.as_secs()),
            self.faults,
            self.edits,
            self.told,
            self.retained,
            self.disruptions,
            self.has_lost_status,
            self.has_secret,
            self.is_password_changed,
        )
    }

    /// Replaces times by ages.
    fn replace_times(&self, value: &mut Value, oldest: u64) {
        match value {
            Value::String(text) => {
                if let Ok(time) = text.parse::<k8s_openapi::jiff::Timestamp>() {
                    let age = self.time.timestamp.duration_since(time).as_secs();
                    *text = age.unsigned_abs().min(oldest).to_string();
                }
            }
            Value::Array(values) => values
                .iter_mut()
                .for_each(|value| self.replace_times(value, oldest)),
            Value::Object(fields) => fields
                .values_mut()
                .for_each(|value| self.replace_times(value, oldest)),
            _ => {}
        }
    }

    /// Makes a step that no call is part of.
    pub(super) fn step(&mut self, step: &Step, edits: &[Value]) {
        self.effects.clear();
        match step {
            Step::Reconcile(_) => unreachable!("it has calls"),
            Step::Land => {
                self.effects.clone_from(&self.rds.late);
                self.rds.land();
                self.time = self.time.after(Duration::from_secs(5));
            }
            Step::Pass(reverts) => {
                self.faults -= u8::from(*reverts);
                self.rds.progress(*reverts);
                self.time = self.time.after(TICK);
            }
            Step::Edit => {
                let object = self.object.as_mut().expect("an object");
                for (field, value) in edits[self.edits].as_object().into_iter().flatten() {
                    object["spec"][field] = value.clone();
                }
                self.edits += 1;
                self.disruptions = 0;
            }
            Step::Delete => {
                let object = self.object.as_mut().expect("an object");
                object["metadata"]["deletionTimestamp"] = json!(self.time.timestamp.to_string());
            }
            Step::TakeOver => {
                self.faults -= 1;
                self.memory = Memory::default();
            }
            Step::EraseStatus => {
                self.faults -= 1;
                self.has_lost_status = true;
                let object = self.object.as_mut().expect("an object");
                let id = id_of(self.uid, &object["spec"]);
                object["status"] = json!({"instanceId": id});
            }
            Step::PublishElsewhere => {
                self.faults -= 1;
                let instances = self.rds.instances.iter_mut();
                instances.for_each(|instance| instance.is_public = true);
            }
            Step::LoseSecret => {
                self.faults -= 1;
                self.has_secret = false;
            }
            Step::ChangePassword => self.is_password_changed = true,
            Step::RestoreStored => {
                self.faults -= 1;
                self.has_lost_status = true;
                self.object = self.backup.take();
                self.told = Told::default();
                self.retained = None;
            }
            Step::CreateAnew => self.create_anew(),
            Step::DeleteElsewhere => {
                self.faults -= 1;
                self.rds.instances.clear();
                self.rds.before.clear();
            }
        }
    }

    fn create_anew(&mut self) {
        let object = self.object.take().expect("an object");
        self.uid = UID_ANEW;
        self.object = Some(created(self.uid, &object["spec"], self.time));
        self.memory = Memory::default();
        self.backup = None;
        self.told = Told::default();
        self.disruptions = 0;
    }

    /// Reconciles or finalizes the object. Returns how many answers each call had, and which it got, with a description of each.
    pub(super) async fn reconcile(
        &mut self,
        surroundings: &Surroundings,
        script: Vec<usize>,
    ) -> (Vec<(usize, usize)>, Vec<String>) {
        virtual_time::set(self.time);
        let object = self.object.clone().expect("an object");
        *surroundings.stored.lock().expect("no panic") = Some(object.clone());
        let rds = ModelRds::new(Session::new(self.rds.clone(), script, self.faults));
        let client = surroundings.client.answered_by(Arc::new(rds.clone()));
        client.know_account(if rds.session().has_account() {
            ACCOUNT
        } else {
            "210987654321"
        });
        let shared = surroundings.shared.clone();
        let mut reconciler = InstanceReconciler::new(shared, Access::default(), client);
        std::mem::take(&mut self.memory).restore(&mut reconciler);
        let done = tokio::select! {
            biased;
            done = Box::pin(run(&reconciler, &object, self.user())) => Some(done),
            () = rds.killed() => None,
        };
        let mut session = rds.session();
        let is_written = done.is_some() && session.writes_status();
        self.rds.clone_from(&session.rds);
        self.faults = session.faults;
        self.effects.clone_from(&session.effects);
        let is_disruption = |effect: &&Effect| matches!(effect, Effect::Modify { change, .. } if *change != Default::default());
        self.disruptions += self.effects.iter().filter(is_disruption).count();
        if done.is_some() {
            self.memory = Memory::from_reconciler(&reconciler);
        }
        if is_written && self.extras.backups && self.uid == UID {
            self.backup = Some(object).filter(|object| !is_deleting(object));
        }
        match done {
            Some(Done::Output(output)) => {
                if is_written {
                    self.write(*output);
                }
            }
            Some(Done::Gone) if is_written => self.object = None,
            Some(Done::Retained(why)) if is_written => {
                self.object = None;
                self.retained = Some(why);
            }
            Some(Done::Gone | Done::Retained(_)) | None => {}
        }
        (session.taken.clone(), session.log.clone())
    }

    /// Returns the master user, or why its password is not known.
    fn user(&self) -> Result<MasterUser, ReconcileError> {
        if !self.has_secret {
            return Err(ReconcileError::Transient {
                reason: "SecretMissing",
                message: "the Secret does not exist".to_owned(),
            });
        }
        Ok(MasterUser {
            name: "app".to_owned(),
            password: MasterPassword::Known(KnownPassword {
                text: self.password().to_owned(),
                version: format!("s/{}", u8::from(self.is_password_changed)),
            }),
        })
    }

    fn write(&mut self, output: ReconcileOutput) {
        let mut conditions = output.conditions.iter();
        let synced = conditions.find(|condition| condition.type_ == "Synced");
        let error = output.error.as_ref();
        let stalled = output.stalled.as_ref().map(|stalled| stalled.reason);
        self.told = Told {
            is_ready: error.is_none() && output.readiness.is_some_and(|ready| ready.ready),
            is_synced: error.is_none() && synced.is_some_and(|synced| synced.is_true),
            synced: synced.map_or("", |synced| synced.reason),
            problem: error
                .map(ReconcileError::reason)
                .or(stalled)
                .map(String::from),
            is_stalled: stalled.is_some() || error.is_some_and(needs_a_person),
        };
        let object = self.object.as_mut().expect("an object");
        merge(&mut object["status"], output.status);
    }
}

fn needs_a_person(error: &ReconcileError) -> bool {
    match error {
        ReconcileError::RequeueAfter { error, .. } => needs_a_person(error),
        ReconcileError::Permanent { .. } | ReconcileError::Invalid(_) => true,
        _ => false,
    }
}

fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

fn id_of(uid: &str, spec: &Value) -> String {
    let adopted = spec["adopt"]["identifier"].as_str();
    adopted.map_or(format!("cdb-{uid}"), String::from)
}

/// Returns an object that was just created.
fn created(uid: &str, spec: &Value, time: Time) -> Value {
    json!({
        "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabase",
        "metadata": {
            "name": "orders", "namespace": "shop", "uid": uid, "resourceVersion": "1",
            "creationTimestamp": time.timestamp.to_string(),
        },
        "spec": spec,
        // The runtime writes both before the first step.
        "status": {"completeFor": uid, "instanceId": id_of(uid, spec)},
    })
}

/// Applies a merge patch, which removes what is null.
fn merge(status: &mut Value, changes: Map<String, Value>) {
    for (field, value) in changes {
        status[&field] = value;
    }
    if let Some(fields) = status.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
}

async fn run(
    reconciler: &InstanceReconciler,
    object: &Value,
    user: Result<MasterUser, ReconcileError>,
) -> Done {
    if is_deleting(object) {
        return finalize(reconciler, object).await;
    }
    let database: CloudDatabase = serde_json::from_value(object.clone()).expect("a database");
    let identity = Identity::of(&database).expect("an identity");
    let record = Record::from_object(object, &identity.id);
    let request = SyncRequest::of(&database, object);
    let replica_of = database.spec.replica_of.as_ref();
    let source = replica_of.and_then(|source| source.identifier.clone());
    let mut status = record.next(&identity.id);
    let subject = Subject {
        identity: &identity,
        request: &request,
        record: &record,
        user,
        source: source.map(Ok),
    };
    let located = reconciler.locate(&identity.id, &record).await;
    let done = match located {
        Ok(_) => reconciler.sync(subject, None, &mut status).await,
        Err(error) => Err(error.into()),
    };
    let output = done.unwrap_or_else(|error| reconciler.output_of(error, &mut status));
    Done::Output(Box::new(with_status(output, &record, &status)))
}

async fn finalize(reconciler: &InstanceReconciler, object: &Value) -> Done {
    let request = FinalizeRequest {
        object,
        last_validated: None,
        is_valid: true,
        children: Children::default(),
        related: RelatedObjects::default(),
    };
    let identity = Identity::of_deleted(&request).expect("an identity");
    let record = Record::from_object(object, &identity.id);
    let mut status = record.next(&identity.id);
    let done = reconciler.finalize(&request, &identity, &record, &mut status);
    match done.await {
        Ok(FinalizeOutcome::Done) => Done::Gone,
        Ok(FinalizeOutcome::Retained(why)) => Done::Retained(why),
        Ok(FinalizeOutcome::Waiting(output)) => {
            Done::Output(Box::new(with_status(output, &record, &status)))
        }
        Err(error) => {
            let output = reconciler.output_of(error, &mut status);
            Done::Output(Box::new(with_status(output, &record, &status)))
        }
    }
}
