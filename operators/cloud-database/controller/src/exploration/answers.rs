//! Answers to the calls of one step. Each call has a list of answers, and the search tries each of them.

use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use aws_sdk_rds::operation as rds_calls;
use aws_sdk_rds::types::DbInstance;
use tokio::sync::Notify;

use crate::aws::call_error::CallError;
use crate::aws::rds_api::RdsApi;
use crate::aws::rds_client::request::Request;
use crate::exploration::rds::{
    Disruption, Effect, Instance, Phase, Rds, SOURCE_PASSWORD, Snapshot, VERSION,
};
use crate::instance::tags::{OBJECT_TAG, OWNER_TAG};

/// Answer to a call, or the end of a step in place of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Answer {
    /// RDS does what it is asked, or refuses it because of its state.
    Regular,
    /// A description does not show what exists: an empty list, or an error.
    Absent,
    /// A description shows the state before the last effect of a call.
    Outdated,
    /// A refusal because of the object, its surroundings, a status, the rate of calls, or the credentials.
    Refused(&'static str),
    /// The call is carried out, and its answer lost.
    Lost,
    /// The call is carried out some time after its answer was lost.
    LostAndLate,
    /// The call is lost.
    NotCarriedOut,
    /// The process is killed before it sends the call.
    KilledBefore,
    /// The process is killed before it gets the answer.
    KilledAfter,
    /// The credentials are those of another account.
    OtherAccount,
    /// The status after the step is not written.
    StatusNotWritten,
}

use Answer::{
    Absent, KilledAfter, KilledBefore, Lost, LostAndLate, NotCarriedOut, OtherAccount, Outdated,
    Refused, Regular, StatusNotWritten,
};

const THROTTLED: Answer = Refused("Throttling");
const DENIED: Answer = Refused("ExpiredToken");

const OF_DESCRIPTIONS: [Answer; 6] = [Regular, Absent, Outdated, THROTTLED, DENIED, NotCarriedOut];

const OF_CHANGES: [Answer; 11] = [
    Regular,
    Lost,
    LostAndLate,
    NotCarriedOut,
    Refused("InvalidParameterValue"),
    Refused("InstanceQuotaExceeded"),
    Refused("InvalidDBInstanceState"),
    THROTTLED,
    DENIED,
    KilledBefore,
    KilledAfter,
];

const OF_ACCOUNT: [Answer; 2] = [Regular, OtherAccount];

const OF_STATUS: [Answer; 2] = [Regular, StatusNotWritten];

/// Calls of a step, and their answers.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) rds: Rds,
    /// Numbers of the answers to the first calls. The others get a regular one.
    script: Vec<usize>,
    /// Number of answers that each call had, and the one that it got.
    pub(super) taken: Vec<(usize, usize)>,
    /// Number of answers left that are not regular.
    pub(super) faults: u8,
    /// Calls with their answers, for traces.
    pub(super) log: Vec<String>,
    /// Effects that RDS has had, or will have.
    pub(super) effects: Vec<Effect>,
}

impl Session {
    pub(super) fn new(rds: Rds, script: Vec<usize>, faults: u8) -> Self {
        Self {
            rds,
            script,
            taken: Vec::new(),
            faults,
            log: Vec::new(),
            effects: Vec::new(),
        }
    }

    fn choose(&mut self, call: &str, answers: &[Answer]) -> Answer {
        let number = if self.faults == 0 { 1 } else { answers.len() };
        let chosen = self.script.get(self.taken.len()).copied().unwrap_or(0);
        let chosen = chosen.min(number - 1);
        self.taken.push((number, chosen));
        self.faults -= u8::from(chosen > 0);
        let answer = answers[chosen];
        self.log.push(format!("{call}: {answer:?}"));
        answer
    }

    /// Returns true if the credentials are those of the account of the instances.
    pub(super) fn has_account(&mut self) -> bool {
        self.choose("account", &OF_ACCOUNT) == Regular
    }

    /// Returns true if the status after the step is written.
    pub(super) fn writes_status(&mut self) -> bool {
        self.choose("status", &OF_STATUS) == Regular
    }
}

/// RDS in the place of the AWS SDK.
#[derive(Clone, Debug)]
pub(super) struct ModelRds {
    session: Arc<Mutex<Session>>,
    killed: Arc<Notify>,
}

fn refused(code: &str) -> CallError {
    let status = if code == "ExpiredToken" { 403 } else { 400 };
    CallError::answered(Some(code), Some(status), false)
}

fn lost() -> CallError {
    CallError::answered(None, None, true)
}

impl ModelRds {
    pub(super) fn new(session: Session) -> Self {
        Self {
            session: Arc::new(Mutex::new(session)),
            killed: Arc::default(),
        }
    }

    pub(super) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().expect("no panic")
    }

    /// Waits until the process is killed.
    pub(super) async fn killed(&self) {
        self.killed.notified().await;
    }

    /// Returns what a description shows.
    fn describe<T>(
        &self,
        call: &str,
        regular: impl Fn(&Rds, &[Instance]) -> T,
    ) -> Result<T, CallError> {
        let mut session = self.session();
        let answer = session.choose(call, &OF_DESCRIPTIONS);
        let rds = &session.rds;
        match answer {
            Absent => Ok(regular(&Rds::default(), &[])),
            Outdated => Ok(regular(rds, &rds.before)),
            Refused(code) => Err(refused(code)),
            NotCarriedOut => Err(lost()),
            _ => Ok(regular(rds, &rds.instances)),
        }
    }

    /// Carries out a call that changes something.
    async fn change(&self, call: &str, effect: Effect) -> Result<(), CallError> {
        let result = {
            let mut session = self.session();
            let answer = session.choose(call, &OF_CHANGES);
            if answer == LostAndLate {
                session.effects.push(effect.clone());
                session.rds.late.push(effect.clone());
            }
            let is_carried_out = matches!(answer, Regular | Lost | KilledAfter);
            let applied = if is_carried_out {
                session.rds.apply(&effect)
            } else {
                Ok(())
            };
            if is_carried_out && applied.is_ok() {
                session.effects.push(effect);
            }
            match answer {
                Regular => Some(applied.map_err(refused)),
                Refused(code) => Some(Err(refused(code))),
                KilledBefore | KilledAfter => None,
                _ => Some(Err(lost())),
            }
        };
        match result {
            Some(result) => result,
            None => {
                self.killed.notify_one();
                std::future::pending().await
            }
        }
    }

    fn instance(&self, id: &str) -> DbInstance {
        let session = self.session();
        let instance = session.rds.instance(id);
        instance.expect("the call was carried out").described()
    }
}

/// Declares the instance that a request makes, and its identifier. The requests have different types with the same methods.
macro_rules! made_by {
    ($input:expr, $id:expr, $version:expr, $is_encrypted:expr, $password:expr) => {{
        let input = $input;
        let tag = |key: &str| {
            let mut tags = input.get_tags().iter().flatten();
            let found = tags.find(|tag| tag.key() == Some(key))?;
            found.value().map(String::from)
        };
        Instance {
            id: $id.clone().expect("an id"),
            resource_id: String::new(),
            owner: tag(OWNER_TAG),
            object: tag(OBJECT_TAG),
            phase: Phase::Creating,
            class: input.get_db_instance_class().clone().unwrap_or_default(),
            version: $version,
            is_public: *input.get_publicly_accessible() != Some(false),
            is_encrypted: $is_encrypted,
            is_protected: *input.get_deletion_protection() == Some(true),
            password: $password,
            source: None,
            change: Disruption::default(),
            final_snapshot: None,
        }
    }};
}

/// Declares the instance that a request makes from a source, whose version and password it has.
macro_rules! copied_by {
    ($input:expr, $id:expr, $is_encrypted:expr) => {{
        let (version, password) = (VERSION.to_owned(), SOURCE_PASSWORD.to_owned());
        made_by!($input, $id, version, $is_encrypted, password)
    }};
}

/// Returns the name and the effect of a request that creates or modifies an instance.
fn effect_of(request: &Request, rds: &Rds) -> (&'static str, Effect) {
    match request {
        Request::Create(request) => {
            let input = request.as_input();
            let version = input.get_engine_version().clone().unwrap_or_default();
            let is_encrypted = *input.get_storage_encrypted() == Some(true);
            let id = input.get_db_instance_identifier();
            let password = input.get_master_user_password().clone().unwrap_or_default();
            let instance = made_by!(input, id, version, is_encrypted, password);
            ("CreateDBInstance", Effect::Create(Box::new(instance)))
        }
        Request::Modify(request) => {
            let input = request.as_input();
            let effect = Effect::Modify {
                id: input.get_db_instance_identifier().clone().expect("an id"),
                change: Disruption {
                    class: input.get_db_instance_class().clone(),
                    version: input.get_engine_version().clone(),
                },
                is_immediate: *input.get_apply_immediately() == Some(true),
                is_public: *input.get_publicly_accessible(),
                is_protected: *input.get_deletion_protection(),
                password: input.get_master_user_password().clone(),
            };
            ("ModifyDBInstance", effect)
        }
        _ => effect_with_source(request, rds),
    }
}

/// Returns the name and the effect of a request that creates an instance from a snapshot or another instance.
fn effect_with_source(request: &Request, rds: &Rds) -> (&'static str, Effect) {
    match request {
        Request::RestoreSnapshot(request) => {
            let input = request.as_input();
            let name = input.get_db_snapshot_identifier();
            let mut snapshots = rds.snapshots.iter();
            let source = snapshots.find(|snapshot| Some(&snapshot.name) == name.as_ref());
            let is_encrypted = source.is_some_and(|source| source.is_encrypted);
            let id = input.get_db_instance_identifier();
            let instance = copied_by!(input, id, is_encrypted);
            let effect = Effect::Create(Box::new(instance));
            ("RestoreDBInstanceFromDBSnapshot", effect)
        }
        Request::RestorePointInTime(request) => {
            let input = request.as_input();
            let is_encrypted = rds.is_encrypted(input.get_source_db_instance_identifier().as_ref());
            let id = input.get_target_db_instance_identifier();
            let instance = copied_by!(input, id, is_encrypted);
            let effect = Effect::Create(Box::new(instance));
            ("RestoreDBInstanceToPointInTime", effect)
        }
        Request::Replicate(request) => {
            let input = request.as_input();
            let source = input.get_source_db_instance_identifier();
            let is_encrypted = rds.is_encrypted(source.as_ref());
            let id = input.get_db_instance_identifier();
            let mut instance = copied_by!(input, id, is_encrypted);
            instance.source.clone_from(source);
            let effect = Effect::Create(Box::new(instance));
            ("CreateDBInstanceReadReplica", effect)
        }
        Request::Create(_) | Request::Modify(_) => unreachable!("they have no source"),
    }
}

fn name_of(arn: Option<&String>) -> String {
    let arn = arn.map(String::as_str).unwrap_or_default();
    arn.rsplit(':').next().unwrap_or_default().to_owned()
}

#[async_trait]
impl RdsApi for ModelRds {
    async fn send(&self, request: Request) -> Result<DbInstance, CallError> {
        let (call, effect) = effect_of(&request, &self.session().rds);
        let id = match &effect {
            Effect::Create(instance) => instance.id.clone(),
            Effect::Modify { id, .. } => id.clone(),
            _ => unreachable!("a request creates or modifies"),
        };
        self.change(call, effect).await?;
        Ok(self.instance(&id))
    }

    async fn add_tags_to_resource(
        &self,
        request: rds_calls::add_tags_to_resource::builders::AddTagsToResourceFluentBuilder,
    ) -> Result<rds_calls::add_tags_to_resource::AddTagsToResourceOutput, CallError> {
        let input = request.as_input();
        let tag = |key: &str| {
            let mut tags = input.get_tags().iter().flatten();
            let found = tags.find(|tag| tag.key() == Some(key))?;
            found.value().map(String::from)
        };
        let arn = input.get_resource_name().as_ref();
        let name = name_of(arn);
        let effect = if arn.is_some_and(|arn| arn.contains(":snapshot:")) {
            Effect::TagSnapshot { name }
        } else {
            Effect::Tag {
                id: name,
                owner: tag(OWNER_TAG),
                object: tag(OBJECT_TAG),
            }
        };
        self.change("AddTagsToResource", effect).await?;
        Ok(rds_calls::add_tags_to_resource::AddTagsToResourceOutput::builder().build())
    }

    async fn remove_tags_from_resource(
        &self,
        request: rds_calls::remove_tags_from_resource::builders::RemoveTagsFromResourceFluentBuilder,
    ) -> Result<rds_calls::remove_tags_from_resource::RemoveTagsFromResourceOutput, CallError> {
        let input = request.as_input();
        let effect = Effect::Untag {
            id: name_of(input.get_resource_name().as_ref()),
            keys: input.get_tag_keys().clone().unwrap_or_default(),
        };
        self.change("RemoveTagsFromResource", effect).await?;
        Ok(rds_calls::remove_tags_from_resource::RemoveTagsFromResourceOutput::builder().build())
    }

    async fn delete_db_instance(
        &self,
        request: rds_calls::delete_db_instance::builders::DeleteDBInstanceFluentBuilder,
    ) -> Result<rds_calls::delete_db_instance::DeleteDbInstanceOutput, CallError> {
        let input = request.as_input();
        let id = input.get_db_instance_identifier().clone().expect("an id");
        let final_snapshot = input.get_final_db_snapshot_identifier().clone();
        let effect = Effect::Delete { id, final_snapshot };
        self.change("DeleteDBInstance", effect).await?;
        Ok(rds_calls::delete_db_instance::DeleteDbInstanceOutput::builder().build())
    }

    async fn describe_db_instances(
        &self,
        request: rds_calls::describe_db_instances::builders::DescribeDBInstancesFluentBuilder,
    ) -> Result<rds_calls::describe_db_instances::DescribeDbInstancesOutput, CallError> {
        let input = request.as_input();
        let id = input.get_db_instance_identifier().clone();
        let filters = input.get_filters().clone().unwrap_or_default();
        let is_wanted = |instance: &Instance| {
            id.as_ref().is_none_or(|id| *id == instance.id)
                && filters.iter().all(|filter| {
                    let values = filter.values();
                    let value = match filter.name() {
                        Some("dbi-resource-id") => &instance.resource_id,
                        _ => &instance.id,
                    };
                    values.contains(value)
                })
        };
        let found = self.describe("DescribeDBInstances", |_, instances| {
            let found = instances.iter().filter(|instance| is_wanted(instance));
            found.map(Instance::described).collect::<Vec<_>>()
        })?;
        if id.is_some() && found.is_empty() {
            return Err(refused("DBInstanceNotFound"));
        }
        let output = rds_calls::describe_db_instances::DescribeDbInstancesOutput::builder();
        Ok(output.set_db_instances(Some(found)).build())
    }

    async fn describe_db_snapshots(
        &self,
        request: rds_calls::describe_db_snapshots::builders::DescribeDBSnapshotsFluentBuilder,
    ) -> Result<rds_calls::describe_db_snapshots::DescribeDbSnapshotsOutput, CallError> {
        let input = request.as_input();
        let instance = input.get_db_instance_identifier().clone();
        let name = input.get_db_snapshot_identifier().clone();
        let found = self.describe("DescribeDBSnapshots", |rds, _| {
            let found = rds.snapshots.iter().filter(|snapshot| {
                let is = |wanted: &Option<String>, has: &String| {
                    wanted.as_ref().is_none_or(|wanted| wanted == has)
                };
                is(&instance, &snapshot.instance) && is(&name, &snapshot.name)
            });
            found.map(Snapshot::described).collect::<Vec<_>>()
        })?;
        if name.is_some() && found.is_empty() {
            return Err(refused("DBSnapshotNotFound"));
        }
        let output = rds_calls::describe_db_snapshots::DescribeDbSnapshotsOutput::builder();
        Ok(output.set_db_snapshots(Some(found)).build())
    }

    async fn describe_db_instance_automated_backups(
        &self,
        _: rds_calls::describe_db_instance_automated_backups::builders::DescribeDBInstanceAutomatedBackupsFluentBuilder,
    ) -> Result<
        rds_calls::describe_db_instance_automated_backups::DescribeDbInstanceAutomatedBackupsOutput,
        CallError,
    > {
        self.describe("DescribeDBInstanceAutomatedBackups", |_, _| {
            rds_calls::describe_db_instance_automated_backups::DescribeDbInstanceAutomatedBackupsOutput::builder().build()
        })
    }

    async fn describe_db_engine_versions(
        &self,
        _: rds_calls::describe_db_engine_versions::builders::DescribeDBEngineVersionsFluentBuilder,
    ) -> Result<rds_calls::describe_db_engine_versions::DescribeDbEngineVersionsOutput, CallError>
    {
        unreachable!("what RDS offers is not read")
    }

    async fn describe_orderable_db_instance_options(
        &self,
        _: rds_calls::describe_orderable_db_instance_options::builders::DescribeOrderableDBInstanceOptionsFluentBuilder,
    ) -> Result<
        rds_calls::describe_orderable_db_instance_options::DescribeOrderableDbInstanceOptionsOutput,
        CallError,
    > {
        unreachable!("what RDS offers is not read")
    }

    async fn promote_read_replica(
        &self,
        request: rds_calls::promote_read_replica::builders::PromoteReadReplicaFluentBuilder,
    ) -> Result<rds_calls::promote_read_replica::PromoteReadReplicaOutput, CallError> {
        let input = request.as_input();
        let id = input.get_db_instance_identifier().clone().expect("an id");
        let effect = Effect::Promote { id: id.clone() };
        self.change("PromoteReadReplica", effect).await?;
        let output = rds_calls::promote_read_replica::PromoteReadReplicaOutput::builder();
        Ok(output.db_instance(self.instance(&id)).build())
    }
}
