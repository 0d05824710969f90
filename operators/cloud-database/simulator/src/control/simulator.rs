//! Handle of a simulator, through which a test controls it.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::control::authorization::Policy;
use crate::control::injection::{Disturbance, is_description};
use crate::control::journal::{JournalEntry, Outcome};
use crate::control::roles::Role;
use crate::control::service::Service;
use crate::protocol::fault::Fault;
use crate::server::{self, Shared};
use crate::state::config::{Quotas, Timing};
use crate::state::place::Place;
use crate::state::region::Region;

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
    pub(crate) place: Place,
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

    /// Access key of the default account with which a test calls RDS as the console does.
    pub const CONSOLE_ACCESS_KEY: &str = "console";

    /// Starts a simulator without any instances on a loopback address.
    pub async fn start() -> io::Result<Self> {
        let mut service = Service::new();
        for access_key in [Self::ACCESS_KEY, Self::CONSOLE_ACCESS_KEY] {
            let account = Self::ACCOUNT.to_owned();
            service.accounts.insert(access_key.to_owned(), account);
        }
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

    /// Adds an access key of an account. Calls with unknown keys are rejected.
    pub fn add_access_key(&self, access_key: &str, account: &str) {
        let (access_key, account) = (access_key.to_owned(), account.to_owned());
        self.lock().accounts.insert(access_key, account);
    }

    /// Removes an access key, so that calls with it are rejected.
    pub fn remove_access_key(&self, access_key: &str) {
        self.lock().accounts.remove(access_key);
    }

    /// Sets the IAM policy of an access key. Calls that it does not allow are rejected, and the drop of the last clone of
    /// the simulator reports them. Only statements that allow something are supported, with conditions about tags that a resource has.
    pub fn set_policy(&self, access_key: &str, document: &Value) {
        let policy = Policy::parse(document);
        self.lock().policies.insert(access_key.to_owned(), policy);
    }

    /// Returns the errors of the tested program or of the simulator so far, for example calls that a policy did not allow. The drop of
    /// the last clone does not report them then.
    pub fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().violations)
    }

    /// Adds an IAM role, or replaces it: its account is that of its ARN, its trust policy demands the external ID, and its
    /// sessions have the permissions of the policy, or all without one.
    pub fn add_role(&self, arn: &str, external_id: &str, policy: Option<&Value>) {
        let role = Role {
            external_id: external_id.to_owned(),
            policy: policy.map(Policy::parse),
        };
        self.lock().roles.by_arn.insert(arn.to_owned(), role);
    }

    /// Returns the actions that callers with a policy have needed, each with a resource.
    pub fn needed_permissions(&self) -> Vec<(String, String)> {
        self.lock().needed.iter().cloned().collect()
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

    /// Deprecates an engine version, which is not offered any more.
    pub fn deprecate_engine_version(&self, engine: &str, version: &str) {
        let mut service = self.lock();
        service.config.catalogue.deprecate(engine, version);
    }

    /// Lets the next calls of an operation fail or be late.
    pub fn inject(&self, operation: &str, disturbance: Disturbance, times: usize) {
        if matches!(disturbance, Disturbance::Nothing | Disturbance::EmptyList) {
            assert!(
                is_description(operation),
                "{operation} describes no resources"
            );
        }
        if let Disturbance::Error(code, message) = &disturbance {
            self.require_documented(operation, &Fault::new(code, message));
        }
        self.require_operation(operation);
        let mut service = self.lock();
        service.injections.add(operation, disturbance, times);
    }

    /// Lets a percentage of the calls of an access key that describe instances, snapshots or automated backups answer as if
    /// nothing of that existed, as an eventually consistent service can. Zero ends it.
    pub fn set_lapses(&self, access_key: &str, percentage: u32, seed: u64) {
        let mut service = self.lock();
        service.injections.set_lapses(access_key, percentage, seed);
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

    /// Returns the calls of an operation in all regions and accounts, except those of the console.
    pub fn calls(&self, operation: &str) -> Vec<JournalEntry> {
        self.require_operation(operation);
        let calls = self.without_console();
        calls.filter(|it| it.operation == operation).collect()
    }

    /// Returns the calls that modify something in all regions and accounts, except those of the console, with their
    /// results.
    pub fn writes(&self) -> Vec<(String, Outcome)> {
        let journal = self.without_console();
        let is_read = |it: &JournalEntry| {
            let reads = ["AssumeRole", "Describe", "Get", "List"];
            reads.iter().any(|read| it.operation.starts_with(read))
        };
        let writes = journal.filter(|it| !is_read(it));
        writes.map(|it| (it.operation, it.outcome)).collect()
    }

    fn without_console(&self) -> impl Iterator<Item = JournalEntry> {
        let journal = self.journal().into_iter();
        journal.filter(|it| it.access_key != Self::CONSOLE_ACCESS_KEY)
    }

    /// Clears the journal.
    pub fn clear_journal(&self) {
        self.lock().journal.clear();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Service> {
        server::lock(&self.server.shared)
    }

    /// Runs a function on the region of this handle.
    pub(crate) fn in_region<T>(&self, run: impl FnOnce(&mut Region, Timestamp) -> T) -> T {
        let mut service = self.lock();
        let (region, _, now) = service.region(&self.place);
        run(region, now)
    }
}
