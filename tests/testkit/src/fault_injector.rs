//! Recording and fault injection of calls to the API server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use lockstep_envtest::Cluster;
use tower::{BoxError, Layer, Service};

/// RBAC verbs of calls on resources.
const VERBS: [&str; 8] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];

/// Call to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// RBAC verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: &'static str,
    /// RBAC resource: `configmaps`, `echoes/status`.
    pub resource: String,
    /// Name of the object; `None` for calls on a collection.
    pub name: Option<String>,
}

impl Call {
    pub(crate) fn of(request: &Request<Body>) -> Self {
        let mut parts = request
            .uri()
            .path()
            .split('/')
            .filter(|part| !part.is_empty());
        // `/api/v1` or `/apis/group/version`.
        let group = if parts.next() == Some("apis") { 2 } else { 1 };
        let mut parts: Vec<_> = parts.skip(group).collect();
        if parts.first() == Some(&"namespaces") && parts.len() > 2 {
            parts.drain(..2);
        }
        let name = parts.get(1).map(|name| (*name).to_owned());
        let mut resource = parts
            .first()
            .map_or(String::new(), |part| (*part).to_owned());
        if let Some(subresource) = parts.get(2) {
            resource = format!("{resource}/{subresource}");
        }
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"));
        let verb = match *request.method() {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if name.is_none() => "deletecollection",
            Method::DELETE => "delete",
            _ if is_watch => "watch",
            _ if name.is_none() => "list",
            _ => "get",
        };
        Self {
            verb,
            resource,
            name,
        }
    }

    pub(crate) fn is_write(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch")
    }
}

/// Point at which an injected failure interrupts a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The call fails before it reaches the API server.
    Before,
    /// The API server executes the call, and the response is lost.
    After,
}

/// Recorder and fault injector for the calls of all clients that it has created.
///
/// ```no_run
/// use lockstep_controller::{Metrics, Reconciler};
/// use lockstep_envtest::Cluster;
/// use lockstep_test::{FaultInjector, When, operator};
///
/// /// Reconciles an object of which the ConfigMap is created without an answer.
/// async fn lose_an_answer(cluster: &Cluster, reconciler: impl Reconciler) {
///     let faults = FaultInjector::default();
///     let client = faults.client(cluster).await;
///     let controller = operator(client, reconciler, &Metrics::default());
///
///     faults.fail("create", "configmaps", 1, When::After);
///     controller.reconcile_once(Some("default"), "a").await.expect("the object is read");
///     assert!(faults.have_failed());
///
///     controller.reconcile_once(Some("default"), "a").await.expect("the object is read");
///     let writes = faults.take_writes().into_iter();
///     let creations = writes.filter(|call| (call.verb, &*call.resource) == ("create", "configmaps"));
///     assert_eq!(creations.count(), 1);
/// }
/// ```
#[derive(Clone, Default)]
pub struct FaultInjector(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    failures: Vec<Failure>,
}

struct Failure {
    verb: &'static str,
    resource: String,
    /// Number of matching calls that succeed before the failing one.
    successes: usize,
    when: When,
}

impl FaultInjector {
    /// Returns a client with cluster-admin rights that records all calls.
    ///
    /// # Panics
    ///
    /// If the kubeconfig of the cluster cannot be read.
    pub async fn client(&self, cluster: &Cluster) -> Client {
        let kubeconfig =
            Kubeconfig::read_from(cluster.kubeconfig()).expect("the kubeconfig is readable");
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options);
        let config = config.await.expect("the kubeconfig is valid");
        let builder = ClientBuilder::try_from(config).expect("the configuration makes a client");
        builder.with_layer(self).build()
    }

    /// Makes the n-th future call (counted from 1) with this verb on this resource fail. Whether that call has occurred is
    /// what [`FaultInjector::have_failed`] returns.
    ///
    /// # Panics
    ///
    /// If no call has this verb.
    pub fn fail(&self, verb: &'static str, resource: &str, nth: usize, when: When) {
        assert!(
            VERBS.contains(&verb),
            "no call has the verb '{verb}': the verbs are {}",
            VERBS.join(", ")
        );
        self.state().failures.push(Failure {
            verb,
            resource: resource.to_owned(),
            successes: nth.saturating_sub(1),
            when,
        });
    }

    /// Returns true if all injected failures have occurred.
    pub fn have_failed(&self) -> bool {
        self.state().failures.is_empty()
    }

    /// Returns the writes since the last call of this function, in order.
    pub fn take_writes(&self) -> Vec<Call> {
        let calls = std::mem::take(&mut self.state().calls);
        calls.into_iter().filter(Call::is_write).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a call and returns where it must fail, if at all.
    fn record(&self, call: Call) -> Option<When> {
        let mut state = self.state();
        let hit = state.failures.iter_mut().position(|failure| {
            let is_it = failure.verb == call.verb && failure.resource == call.resource;
            let is_due = is_it && failure.successes == 0;
            failure.successes = failure.successes.saturating_sub(usize::from(is_it));
            is_due
        });
        state.calls.push(call);
        hit.map(|at| state.failures.remove(at).when)
    }
}

impl<S> Layer<S> for FaultInjector {
    type Service = RecordedService<S>;

    fn layer(&self, inner: S) -> RecordedService<S> {
        RecordedService {
            inner,
            calls: self.clone(),
        }
    }
}

/// HTTP service that records all calls.
pub struct RecordedService<S> {
    inner: S,
    calls: FaultInjector,
}

impl<S, B> Service<Request<Body>> for RecordedService<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let lost = || BoxError::from("connection lost (failure injected by the test)");
        match self.calls.record(Call::of(&request)) {
            Some(When::Before) => async move { Err(lost()) }.boxed(),
            Some(When::After) => self.inner.call(request).map(move |_| Err(lost())).boxed(),
            None => self.inner.call(request).boxed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_rbac_verbs_and_resources() {
        for (method, uri, expected) in [
            (
                Method::GET,
                "/api/v1/configmaps?watch=true",
                ("watch", "configmaps", None),
            ),
            (
                Method::GET,
                "/apis/g/v1/namespaces/n/toys?limit=5",
                ("list", "toys", None),
            ),
            (
                Method::GET,
                "/api/v1/namespaces/n",
                ("get", "namespaces", Some("n")),
            ),
            (
                Method::POST,
                "/apis/g/v1/namespaces/n/toys",
                ("create", "toys", None),
            ),
            (
                Method::PATCH,
                "/apis/g/v1/namespaces/n/toys/a/status",
                ("patch", "toys/status", Some("a")),
            ),
            (
                Method::DELETE,
                "/apis/g/v1/toys/a",
                ("delete", "toys", Some("a")),
            ),
            (
                Method::DELETE,
                "/apis/g/v1/namespaces/n/toys",
                ("deletecollection", "toys", None),
            ),
        ] {
            let request = Request::builder().method(method).uri(uri);
            let call = Call::of(&request.body(Body::empty()).expect("the request is valid"));
            let found = (call.verb, call.resource.as_str(), call.name.as_deref());
            assert_eq!(found, expected, "{uri}");
        }
    }

    #[test]
    #[should_panic(expected = "no call has the verb 'post'")]
    fn a_failure_of_a_verb_that_no_call_has_is_an_error() {
        FaultInjector::default().fail("post", "toys", 1, When::Before);
    }

    #[test]
    fn only_the_nth_matching_call_fails() {
        let calls = FaultInjector::default();
        calls.fail("create", "toys", 2, When::Before);
        let call = |verb| Call {
            verb,
            resource: "toys".to_owned(),
            name: None,
        };
        let failed = ["create", "get", "create", "create"].map(|verb| calls.record(call(verb)));
        assert_eq!(failed, [None, None, Some(When::Before), None]);
        assert_eq!(calls.take_writes().len(), 3);
        assert_eq!(calls.take_writes(), []);
    }
}
