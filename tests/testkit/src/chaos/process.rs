//! Process of the operator, as its author's constructor sees it.

use std::any::{Any, type_name};
use std::sync::Arc;

use kube::Client;
use lockstep_controller::Leadership;

use crate::chaos::external_system::ExternalSystem;
use crate::chaos::fault_plan::Side;
use crate::chaos::process_state::{CallRecord, InjectedAnswer, ProcessState};

/// Process of the operator under chaos. The constructor of the reconciler gets one at each start: nothing of an earlier
/// process is left in memory.
///
/// ```
/// use lockstep_controller::Leadership;
/// use lockstep_test::chaos::Process;
///
/// /// Client of the external system.
/// struct Storage {
///     url: String,
///     leadership: Leadership,
/// }
///
/// fn storage(process: &Process) -> Storage {
///     Storage {
///         url: process.external_url().to_owned(),
///         leadership: process.leadership(),
///     }
/// }
/// ```
pub struct Process {
    pub(crate) client: Client,
    pub(crate) leadership: Leadership,
    pub(crate) external_url: String,
    pub(crate) state: Arc<ProcessState>,
}

impl Process {
    /// Returns the client for the API server.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the time until which this process is the leader.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Returns the URL of the external system, without a slash at the end; empty if it has no HTTP server.
    pub fn external_url(&self) -> &str {
        &self.external_url
    }

    /// Returns the simulator of this trial, which the operator's own client trait calls in a test.
    ///
    /// # Panics
    ///
    /// If the simulator is of another type than the one in [`Chaos::external`](crate::chaos::Chaos::external).
    pub fn external_system<S: ExternalSystem>(&self) -> Arc<S> {
        let system: Arc<dyn Any + Send + Sync> = Arc::clone(&self.state.trial.system) as _;
        let system = system.downcast();
        system.unwrap_or_else(|_| {
            let wanted = type_name::<S>();
            panic!("the simulator of the chaos test is not a {wanted}; pass one to `external`")
        })
    }

    /// Returns the calls to an external system that is not called by HTTP.
    pub fn external_calls(&self) -> ExternalCalls {
        ExternalCalls(Arc::clone(&self.state))
    }
}

/// Calls to an external system that is not called by HTTP: the implementation of the operator's own client trait passes each
/// call through [`ExternalCalls::call`].
///
/// ```
/// use std::sync::Arc;
///
/// use lockstep_test::chaos::{ExternalCalls, ExternalFault, Process};
/// # use lockstep_test::chaos::ExternalSystem;
/// # use serde_json::Value;
///
/// # #[derive(Default)]
/// # struct Queues;
/// # impl Queues { fn insert(&self, _: &str) {} }
/// # impl ExternalSystem for Queues {
/// #     fn resources(&self) -> std::collections::BTreeMap<String, Value> { Default::default() }
/// #     fn set(&self, _: &str, _: Option<Value>) {}
/// # }
/// /// Client of the operator in its tests.
/// struct FaultyQueues {
///     queues: Arc<Queues>,
///     calls: ExternalCalls,
/// }
///
/// impl FaultyQueues {
///     async fn create(&self, name: &str) -> Result<(), ExternalFault> {
///         let (queues, name) = (Arc::clone(&self.queues), name.to_owned());
///         let execute = async move { queues.insert(&name) };
///         self.calls.call("create", true, execute).await
///     }
/// }
///
/// fn client(process: &Process) -> FaultyQueues {
///     FaultyQueues {
///         queues: process.external_system(),
///         calls: process.external_calls(),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct ExternalCalls(Arc<ProcessState>);

/// Fault that chaos has injected into a call to the external system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExternalFault {
    /// There was no answer. The call may have been executed.
    #[error("connection lost (fault injected by chaos)")]
    NoAnswer,
    /// The system refused the call, or failed after it has executed it.
    #[error("status {0} (fault injected by chaos)")]
    Status(u16),
}

impl ExternalCalls {
    /// Executes a call, or injects a fault. `operation` says what is called, such as `create`.
    ///
    /// # Errors
    ///
    /// The injected fault. The call may have been executed.
    pub async fn call<T: Send + 'static>(
        &self,
        operation: &str,
        is_write: bool,
        execute: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ExternalFault> {
        let record = CallRecord {
            side: Side::External,
            text: operation.to_owned(),
            key: operation.to_owned(),
            object: None,
            is_write,
        };
        let answer = self.0.call(record, execute).await;
        answer.map_err(|injected| match injected {
            InjectedAnswer::ConnectionLost => ExternalFault::NoAnswer,
            InjectedAnswer::Status(status) => ExternalFault::Status(status),
        })
    }
}
