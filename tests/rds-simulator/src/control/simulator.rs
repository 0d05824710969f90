//! Handle of a simulator, through which a test controls it.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::control::injection::Disturbance;
use crate::control::journal::{JournalEntry, Outcome};
use crate::control::service::Service;
use crate::fields::Fields;
use crate::protocol::fault::Fault;
use crate::server::{self, Shared};
use crate::state::config::{Quotas, Timing};
use crate::state::instance::Instance;
use crate::state::phase::{Effect, End, Phase};
use crate::state::place::Place;
use crate::state::region::Region;
use crate::state::reported;

/// Running simulator of RDS and STS. It ends with the last of its clones.
///
/// Methods that concern an instance or a resource act in one account and region: those of [`Simulator::at`], or else
/// [`Simulator::ACCOUNT`] and [`Simulator::REGION`].
///
/// # Panics
///
/// A method panics if it names an instance, snapshot or operation that does not exist. The drop of the last clone panics
/// if the simulator has answered a call as RDS cannot answer it, so that no test relies on such an answer.
#[derive(Clone)]
pub struct Simulator {
    server: Arc<Server>,
    place: Place,
}

struct Server {
    shared: Shared,
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
        let violations = std::mem::take(&mut server::lock(&self.shared).violations);
        if !std::thread::panicking() {
            assert!(violations.is_empty(), "{violations:?}");
        }
    }
}

impl Simulator {
    /// Default account, to which the access key `testing` belongs.
    pub const ACCOUNT: &str = "123456789012";

    /// Default region.
    pub const REGION: &str = "eu-central-1";

    /// Access key of the default account.
    pub const ACCESS_KEY: &str = "testing";

    /// Starts a simulator without any instances on a loopback address.
    pub async fn start() -> io::Result<Self> {
        let mut service = Service::new();
        let account = Self::ACCOUNT.to_owned();
        service
            .accounts
            .insert(Self::ACCESS_KEY.to_owned(), account);
        let shared = Arc::new(Mutex::new(service));
        let (address, serve) = server::listen(shared.clone()).await?;
        let server = Server {
            shared,
            address,
            task: tokio::spawn(serve),
        };
        Ok(Self {
            server: Arc::new(server),
            place: Place {
                account: Self::ACCOUNT.to_owned(),
                name: Self::REGION.to_owned(),
            },
        })
    }

    /// Returns the endpoint of RDS and STS.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Returns a handle of the same simulator for another account and region.
    #[must_use]
    pub fn at(&self, account: &str, region: &str) -> Self {
        Self {
            server: self.server.clone(),
            place: Place {
                account: account.to_owned(),
                name: region.to_owned(),
            },
        }
    }

    /// Adds an access key of an account. Calls with other keys than this and the default one are rejected.
    pub fn add_access_key(&self, access_key: &str, account: &str) {
        let (access_key, account) = (access_key.to_owned(), account.to_owned());
        self.lock().accounts.insert(access_key, account);
    }

    /// Removes an access key, so that calls with it are rejected.
    pub fn remove_access_key(&self, access_key: &str) {
        self.lock().accounts.remove(access_key);
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Timestamp {
        self.lock().clock.now()
    }

    /// Advances the simulated time.
    pub fn advance(&self, by: Duration) {
        self.lock().clock.advance(by);
    }

    /// Sets the simulated seconds per real second. With zero, the time moves only when the test advances it.
    pub fn set_speed(&self, speed: f64) {
        self.lock().clock.set_speed(speed);
    }

    /// Changes durations, of states to come: those that already lie ahead of an instance keep theirs.
    pub fn set_timing(&self, change: impl FnOnce(&mut Timing)) {
        change(&mut self.lock().config.timing);
    }

    /// Changes quotas.
    pub fn set_quotas(&self, change: impl FnOnce(&mut Quotas)) {
        change(&mut self.lock().config.quotas);
    }

    /// Adds an engine version, to which earlier versions can be upgraded.
    pub fn add_engine_version(&self, engine: &str, version: &str) {
        let mut service = self.lock();
        service.config.catalogue.add_version(engine, version);
    }

    /// Lets the next calls of an operation fail or be late.
    pub fn inject(&self, operation: &str, disturbance: Disturbance, times: usize) {
        if let Disturbance::Error(code, message) = &disturbance {
            self.require_documented(operation, &Fault::new(code, message));
        }
        self.require_operation(operation);
        let mut service = self.lock();
        service.injections.add(operation, disturbance, times);
    }

    /// Lets every call of an operation with a parameter fail, until the injections are cleared.
    pub fn refuse(&self, operation: &str, parameter: &str, code: &str, message: &str) {
        let fault = Fault::new(code, message);
        self.require_documented(operation, &fault);
        let mut service = self.lock();
        service.injections.refuse(operation, parameter, fault);
    }

    /// Removes all faults that wait for calls, and all refusals.
    pub fn clear_injections(&self) {
        self.lock().injections.clear();
    }

    fn require_operation(&self, operation: &str) {
        let service = self.lock();
        let is_known = service.model_of(operation).is_some();
        drop(service);
        assert!(is_known, "no model has the operation {operation}");
    }

    fn require_documented(&self, operation: &str, fault: &Fault) {
        self.require_operation(operation);
        let service = self.lock();
        let model = service.model_of(operation).expect("it was just found");
        let status = fault.status(model, operation);
        drop(service);
        let code = &fault.code;
        assert!(status.is_some(), "{operation} documents no error {code}");
    }

    /// Returns all calls since the start or since the journal was cleared.
    pub fn journal(&self) -> Vec<JournalEntry> {
        self.lock().journal.clone()
    }

    /// Returns the calls of an operation, in all regions and accounts.
    pub fn calls(&self, operation: &str) -> Vec<JournalEntry> {
        self.require_operation(operation);
        let journal = self.journal().into_iter();
        journal.filter(|it| it.operation == operation).collect()
    }

    /// Returns the calls that modify something, in all regions and accounts, with their results.
    pub fn writes(&self) -> Vec<(String, Outcome)> {
        let journal = self.journal().into_iter();
        let is_read = |it: &JournalEntry| {
            let reads = ["Describe", "Get", "List"];
            reads.iter().any(|read| it.operation.starts_with(read))
        };
        let writes = journal.filter(|it| !is_read(it));
        writes.map(|it| (it.operation, it.outcome)).collect()
    }

    /// Clears the journal.
    pub fn clear_journal(&self) {
        self.lock().journal.clear();
    }

    /// Returns the identifiers of all instances, listed or not.
    pub fn instance_ids(&self) -> Vec<String> {
        self.in_region(|region, _| {
            let ids = region.instances.iter().map(|it| it.id().to_owned());
            ids.collect()
        })
    }

    /// Returns an instance as RDS reports it, with the names of the API (`DBInstanceStatus`), or `None` if it does not
    /// exist.
    pub fn instance(&self, id: &str) -> Option<Value> {
        self.in_region(|region, now| {
            let instance = region.instance(id).ok()?.clone();
            Some(reported::instance(region, &instance, now))
        })
    }

    /// Returns the password of the master user.
    pub fn password(&self, id: &str) -> Option<String> {
        self.with_instance(id, |instance, _| instance.password.clone())
    }

    /// Returns the snapshots as RDS reports them, listed or not.
    pub fn snapshots(&self) -> Vec<Value> {
        self.in_region(|region, now| {
            let snapshots = region.snapshots.iter();
            let snapshots = snapshots.map(|it| it.reported(&region.place, now));
            snapshots.collect()
        })
    }

    /// Sets the state of an instance, which can be any text, and what ends it. The states that lay ahead of the instance
    /// follow.
    pub fn force_status(&self, id: &str, status: &str, end: End) {
        self.with_instance(id, |instance, now| {
            let phase = Phase {
                status: status.to_owned(),
                end,
                effect: Effect::Nothing,
            };
            instance.interrupt(phase, now);
        });
    }

    /// Ends the present state of an instance, whatever its duration is.
    pub fn release(&self, id: &str) {
        let mut service = self.lock();
        let timing = service.config.timing.clone();
        let (region, _, now) = service.region(&self.place);
        let mut instances = region.instances.iter();
        let index = instances.position(|it| it.id() == id);
        let index = index.unwrap_or_else(|| panic!("there is no instance {id}"));
        if let Some(effect) = region.instances[index].end_phase(now) {
            region.take_effect(index, &timing, &effect, now);
        }
    }

    /// Opens the maintenance window of an instance: the modifications that wait for it are applied.
    pub fn open_maintenance_window(&self, id: &str) {
        let timing = self.lock().config.timing.clone();
        self.with_instance(id, |instance, now| instance.apply_pending(&timing, now));
    }

    /// Changes settings of an instance behind the back of its clients. They have the names of the parameters of
    /// `CreateDBInstance`.
    pub fn change(&self, id: &str, settings: Value) {
        let settings = fields(settings);
        self.with_instance(id, |instance, _| instance.settings.overlay(&settings));
    }

    /// Changes what is reported of an instance, with the names of the members of `DBInstance`.
    pub fn report(&self, id: &str, members: Value) {
        let members = fields(members);
        self.with_instance(id, |instance, _| instance.overrides.overlay(&members));
    }

    /// Replaces the tags of an instance.
    pub fn set_tags(&self, id: &str, tags: &[(&str, &str)]) {
        let tags = tags.iter();
        let tags = tags.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let tags: BTreeMap<_, _> = tags.collect();
        self.with_instance(id, |instance, _| instance.tags = tags);
    }

    /// Removes an instance at once, without a snapshot.
    pub fn remove_instance(&self, id: &str) {
        self.with_instance(id, |_, _| ());
        self.in_region(|region, _| region.instances.retain(|it| it.id() != id));
    }

    /// Adds a pending maintenance action of an instance, such as `system-update`.
    pub fn add_maintenance_action(&self, id: &str, action: &str, description: &str) {
        let action = fields(json!({"Action": action, "Description": description}));
        self.in_region(|region, _| region.maintenance.push((id.to_owned(), action)));
    }

    /// Sets the status of a snapshot.
    pub fn force_snapshot_status(&self, id: &str, status: &str) {
        self.in_region(|region, _| {
            let snapshot = region.snapshot(id);
            let snapshot = snapshot.unwrap_or_else(|_| panic!("there is no snapshot {id}"));
            snapshot.forced = Some(status.to_owned());
        });
    }

    /// Adds a subnet group.
    pub fn add_subnet_group(&self, name: &str) {
        let name = name.to_owned();
        self.in_region(|region, _| region.resources.subnet_groups.insert(name));
    }

    /// Adds a security group.
    pub fn add_security_group(&self, id: &str) {
        let id = id.to_owned();
        self.in_region(|region, _| region.resources.security_groups.insert(id));
    }

    /// Adds a parameter group of a family, such as `postgres17`.
    pub fn add_parameter_group(&self, name: &str, family: &str) {
        let (name, family) = (name.to_owned(), family.to_owned());
        self.in_region(|region, _| region.resources.parameter_groups.insert(name, family));
    }

    /// Adds a KMS key with an alias, such as `alias/databases`, and returns its ARN.
    pub fn add_kms_key(&self, alias: &str) -> String {
        let Place { account, name } = &self.place;
        self.in_region(|region, _| region.resources.add_key(account, name, alias))
    }

    /// Makes a KMS key inaccessible to RDS.
    pub fn remove_kms_key(&self, name: &str) {
        self.in_region(|region, _| region.resources.remove_key(name));
    }

    /// Sets whether there is capacity for an instance class.
    pub fn set_capacity(&self, class: &str, is_available: bool) {
        let class = class.to_owned();
        self.in_region(|region, _| {
            let exhausted = &mut region.resources.exhausted;
            if is_available {
                exhausted.remove(&class)
            } else {
                exhausted.insert(class)
            }
        });
    }

    /// Removes a storage type from those that the region offers.
    pub fn remove_storage_type(&self, name: &str) {
        let name = name.to_owned();
        self.in_region(|region, _| region.resources.missing_storage_types.insert(name));
    }

    fn lock(&self) -> MutexGuard<'_, Service> {
        server::lock(&self.server.shared)
    }

    /// Runs a function on the region of this handle.
    fn in_region<T>(&self, run: impl FnOnce(&mut Region, Timestamp) -> T) -> T {
        let mut service = self.lock();
        let (region, _, now) = service.region(&self.place);
        run(region, now)
    }

    /// Runs a function on an instance.
    fn with_instance<T>(&self, id: &str, run: impl FnOnce(&mut Instance, Timestamp) -> T) -> T {
        let found = self.in_region(|region, now| {
            let instance = region.instance(id).ok();
            instance.map(|instance| run(instance, now))
        });
        found.unwrap_or_else(|| panic!("there is no instance {id}"))
    }
}

fn fields(value: Value) -> Fields {
    match value {
        Value::Object(members) => Fields::from(members),
        value => panic!("{value} has no members"),
    }
}
