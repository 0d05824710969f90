//! Proxy in front of AWS or the API server: it records every call, and can stop at one of them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures::stream;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use lockstep_envtest::{Cluster, Moto};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// Position, relative to a call, at which the trap is triggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The call has not reached its server.
    Before,
    /// The server has processed the call, and the caller has no response.
    After,
    /// The call reaches its server only after its release, when its caller may have exited.
    Late,
}

/// Returns the name under which a call is recorded, or None if the call is ignored.
type Naming = fn(method: &str, path: &str, body: &[u8]) -> Option<String>;

/// Name of a call, and the number of earlier calls with that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub call: String,
    pub nth: usize,
}

/// Receives a message when a trap is triggered. The sender in the message releases the call, without a response.
pub type Triggered = mpsc::UnboundedReceiver<oneshot::Sender<()>>;

/// Trap that the proxies of one test share, so that the calls to different servers are one sequence.
#[derive(Clone, Default)]
pub struct Trap(Arc<Mutex<TrapState>>);

#[derive(Default)]
struct TrapState {
    calls: Vec<String>,
    trap: Option<(Step, When, mpsc::UnboundedSender<oneshot::Sender<()>>)>,
}

impl Trap {
    /// Sets the trap to a step, counted from now.
    pub fn set(&self, step: &Step, when: When) -> Triggered {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = self.0.lock().expect("no panic under the lock");
        *state = TrapState {
            calls: Vec::new(),
            trap: Some((step.clone(), when, sender)),
        };
        receiver
    }

    /// Removes the trap and restarts the count.
    pub fn clear(&self) {
        *self.0.lock().expect("no panic under the lock") = TrapState::default();
    }

    /// Calls recorded since the last `set` or `clear`.
    pub fn calls(&self) -> Vec<String> {
        self.0
            .lock()
            .expect("no panic under the lock")
            .calls
            .clone()
    }

    /// The recorded calls as steps.
    pub fn steps(&self) -> Vec<Step> {
        let calls = self.calls();
        let nth = |i: usize| calls[..i].iter().filter(|call| **call == calls[i]).count();
        (0..calls.len())
            .map(|i| Step {
                call: calls[i].clone(),
                nth: nth(i),
            })
            .collect()
    }

    /// Records a call, and returns the trap if the call triggers it.
    fn step_on(&self, call: String) -> Option<(When, mpsc::UnboundedSender<oneshot::Sender<()>>)> {
        let mut state = self.0.lock().expect("no panic under the lock");
        let nth = state
            .calls
            .iter()
            .filter(|earlier| **earlier == call)
            .count();
        state.calls.push(call.clone());
        let step = Step { call, nth };
        if state.trap.as_ref().is_some_and(|(trap, ..)| *trap == step) {
            state.trap.take().map(|(_, when, sender)| (when, sender))
        } else {
            None
        }
    }
}

/// Running proxy.
pub struct Proxy {
    url: String,
    trap: Trap,
}

struct Upstream {
    client: Client,
    naming: Naming,
    trap: Trap,
    /// If true, the responses are those of RDS.
    is_aws: bool,
}

impl Proxy {
    pub async fn before_aws(moto: &Moto) -> Self {
        Self::before_aws_with(moto, Trap::default()).await
    }

    pub async fn before_aws_with(moto: &Moto, trap: Trap) -> Self {
        Self::start(towards_aws(moto), aws_action, trap, true).await
    }

    /// Proxy in front of the API server; the credentials of the caller are passed on.
    pub async fn before_apiserver_with(cluster: &Cluster, trap: Trap) -> Self {
        Self::start(
            towards_apiserver(cluster).await,
            database_write,
            trap,
            false,
        )
        .await
    }

    async fn start(config: Config, naming: Naming, trap: Trap, is_aws: bool) -> Self {
        let client = Client::try_from(config).expect("a client");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let upstream = Arc::new(Upstream {
            client,
            naming,
            trap: trap.clone(),
            is_aws,
        });
        let routes = Router::new().fallback(pass).with_state(upstream);
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, trap }
    }

    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Names of the recorded calls.
    pub fn calls(&self) -> Vec<String> {
        self.trap.calls()
    }
}

/// Configuration of a client for moto.
pub fn towards_aws(moto: &Moto) -> Config {
    Config::new(moto.endpoint().parse().expect("a URL"))
}

/// Configuration of a client for the API server, without credentials: each request has those of its caller.
pub async fn towards_apiserver(cluster: &Cluster) -> Config {
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig()).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options);
    let mut config = config.await.expect("a config");
    config.auth_info = AuthInfo::default();
    config
}

async fn pass(State(upstream): State<Arc<Upstream>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let trap = (upstream.naming)(parts.method.as_str(), parts.uri.path(), &body)
        .and_then(|name| upstream.trap.step_on(name));
    if let Some((When::Before, sender)) = &trap {
        wait_for_release(sender).await;
        return cut_off();
    }
    let call = http::Request::from_parts(parts, kube::client::Body::from(body.to_vec()));
    if let Some((When::Late, sender)) = trap {
        // In a task of its own: this future is dropped when its caller's connection ends.
        let late = tokio::spawn(async move {
            wait_for_release(&sender).await;
            let _ = upstream.client.send(call).await;
        });
        let _ = late.await;
        return cut_off();
    }
    let response = upstream.client.send(call).await;
    if let Some((When::After, sender)) = &trap {
        wait_for_release(sender).await;
        return cut_off();
    }
    match response {
        Ok(response) if upstream.is_aws => as_rds(response.map(Body::new)).await,
        Ok(response) => response.map(Body::new),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

/// Response of moto in which each instance has its own resource ID, as in RDS.
async fn as_rds(response: Response) -> Response {
    const INSTANCE: &str = "<DBInstance>";
    let (mut parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    let mut pieces = text.split(INSTANCE);
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for instance in pieces {
        let instance = with_text(instance, "DbiResourceId", &resource_id(instance));
        whole.push_str(INSTANCE);
        whole.push_str(&instance);
    }
    parts.headers.remove(axum::http::header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(whole))
}

/// Resource ID of an instance; a new one each time that an instance is created.
fn resource_id(instance: &str) -> String {
    let mut hasher = DefaultHasher::new();
    for element in ["DBInstanceIdentifier", "InstanceCreateTime"] {
        text_of(instance, element).hash(&mut hasher);
    }
    format!("db-{:016X}", hasher.finish())
}

/// Text of the first element with that name.
fn text_of<'a>(xml: &'a str, element: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{element}>"))?;
    Some(rest.split_once(&format!("</{element}>"))?.0)
}

/// The XML with another text in the first element with that name, if it exists.
fn with_text(xml: &str, element: &str, text: &str) -> String {
    let Some(before) = text_of(xml, element) else {
        return xml.to_owned();
    };
    let (open, close) = (format!("<{element}>"), format!("</{element}>"));
    xml.replacen(
        &format!("{open}{before}{close}"),
        &format!("{open}{text}{close}"),
        1,
    )
}

async fn wait_for_release(sender: &mpsc::UnboundedSender<oneshot::Sender<()>>) {
    let (release, released) = oneshot::channel();
    if sender.send(release).is_ok() {
        let _ = released.await;
    }
}

/// Response that breaks off; to the caller, a lost connection.
pub fn cut_off() -> Response {
    let broken = stream::iter([Err::<Vec<u8>, _>(std::io::Error::other("cut off"))]);
    Response::new(Body::from_stream(broken))
}

/// Action of a call to RDS. The call to STS, which requests the account ID once, is ignored.
fn aws_action(_: &str, _: &str, body: &[u8]) -> Option<String> {
    let form = String::from_utf8_lossy(body).into_owned();
    let action = form
        .split('&')
        .find_map(|field| field.strip_prefix("Action="))?;
    (action != "GetCallerIdentity").then(|| action.to_owned())
}

/// Name of a write to a `CloudDatabase`.
fn database_write(method: &str, path: &str, _: &[u8]) -> Option<String> {
    let subresource = if path.ends_with("/status") {
        "/status"
    } else {
        ""
    };
    // A POST is an admission probe, a dry run that is never stored.
    (!matches!(method, "GET" | "POST") && path.contains("/clouddatabases"))
        .then(|| format!("{method} clouddatabases{subresource}"))
}
