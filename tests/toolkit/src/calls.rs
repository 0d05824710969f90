//! Calls to the API server: every one is seen, and one of them can be made to fail.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use control_plane::Cluster;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::{BoxError, Layer, Service};

/// One call to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// As RBAC names it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
    pub verb: &'static str,
    /// As RBAC names it: `configmaps`, `echoes/status`.
    pub resource: String,
    /// The name of the object, where there is one.
    pub name: Option<String>,
}

impl Call {
    fn of(request: &Request<Body>) -> Self {
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

    fn is_write(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch")
    }
}

/// Which half of a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// It does not reach the API server.
    Before,
    /// The API server has done it, and nobody hears of it.
    After,
}

/// The calls of the clients that were made of it.
#[derive(Clone, Default)]
pub struct Calls(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    seen: Vec<Call>,
    failures: Vec<Failure>,
}

struct Failure {
    verb: &'static str,
    resource: String,
    /// How many of these calls get through before it.
    spared: usize,
    when: When,
}

impl Calls {
    /// A client with every right, whose calls are seen.
    ///
    /// # Panics
    ///
    /// If the cluster's own kubeconfig cannot be read.
    pub async fn client(&self, cluster: &Cluster) -> Client {
        let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig()).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options);
        let config = config.await.expect("a configuration");
        let builder = ClientBuilder::try_from(config).expect("a client");
        builder.with_layer(self).build()
    }

    /// Lets the n-th call from now fail, counted from 1, that does this to this resource.
    pub fn fail(&self, verb: &'static str, resource: &str, nth: usize, when: When) {
        self.state().failures.push(Failure {
            verb,
            resource: resource.to_owned(),
            spared: nth.saturating_sub(1),
            when,
        });
    }

    /// Whether every call that was to fail has failed.
    pub fn have_failed(&self) -> bool {
        self.state().failures.is_empty()
    }

    /// What has been written since it was last asked, in order.
    pub fn take_writes(&self) -> Vec<Call> {
        let seen = std::mem::take(&mut self.state().seen);
        seen.into_iter().filter(Call::is_write).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call, and says whether it is to fail.
    fn saw(&self, call: Call) -> Option<When> {
        let mut state = self.state();
        let hit = state.failures.iter_mut().position(|failure| {
            let is_it = failure.verb == call.verb && failure.resource == call.resource;
            let is_due = is_it && failure.spared == 0;
            failure.spared = failure.spared.saturating_sub(usize::from(is_it));
            is_due
        });
        state.seen.push(call);
        hit.map(|at| state.failures.remove(at).when)
    }
}

impl<S> Layer<S> for Calls {
    type Service = Seen<S>;

    fn layer(&self, inner: S) -> Seen<S> {
        Seen {
            inner,
            calls: self.clone(),
        }
    }
}

/// A service whose calls are seen.
pub struct Seen<S> {
    inner: S,
    calls: Calls,
}

impl<S, B> Service<Request<Body>> for Seen<S>
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
        let lost = || BoxError::from("the connection is lost, as the test wants it");
        match self.calls.saw(Call::of(&request)) {
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
    fn calls_are_named_as_rbac_names_them() {
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
        ] {
            let request = Request::builder().method(method).uri(uri);
            let call = Call::of(&request.body(Body::empty()).expect("a request"));
            let found = (call.verb, call.resource.as_str(), call.name.as_deref());
            assert_eq!(found, expected, "{uri}");
        }
    }

    #[test]
    fn the_nth_call_of_a_kind_fails_and_no_other() {
        let calls = Calls::default();
        calls.fail("create", "toys", 2, When::Before);
        let call = |verb| Call {
            verb,
            resource: "toys".to_owned(),
            name: None,
        };
        let failed = ["create", "get", "create", "create"].map(|verb| calls.saw(call(verb)));
        assert_eq!(failed, [None, None, Some(When::Before), None]);
        assert_eq!(calls.take_writes().len(), 3);
        assert_eq!(calls.take_writes(), []);
    }
}
