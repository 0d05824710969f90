//! Proxy that injects faults into some of the calls.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use fastrand::Rng;
use futures::StreamExt;
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::proxy::cut_off;

/// Maximum delay of a call. It is shorter than the time for which an instance must not be found before it counts as
/// missing.
const LONGEST_MS: u64 = 2_000;

/// Fault of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The server responds with 503.
    Rejected,
    /// The call does not reach the server.
    Lost,
    /// The call is delayed.
    Delayed,
    /// The server processes the call, and its response is lost.
    Unanswered,
    /// The server processes the call long after the caller has given up.
    Late,
}

const FAULTS: [Fault; 5] = [
    Fault::Rejected,
    Fault::Lost,
    Fault::Delayed,
    Fault::Unanswered,
    Fault::Late,
];

/// Fault-injecting proxy between a client and its server.
#[derive(Clone)]
pub struct FaultSchedule {
    url: String,
    proxy: Arc<FaultProxy>,
}

struct FaultProxy {
    client: Client,
    rng: Mutex<Rng>,
    /// Percentage of calls that get a fault.
    share: u32,
    is_active: AtomicBool,
    /// Changes when every watch is cut.
    cuts: watch::Sender<u64>,
    counts: Mutex<BTreeMap<Option<Fault>, usize>>,
    /// Number of repetitions of a call that share its fault: the retries of the client's library.
    repeats: u32,
    repeated: Mutex<HashMap<Bytes, (Fault, u32)>>,
}

impl FaultSchedule {
    /// Starts a proxy that injects no faults yet.
    pub async fn before(server: Config, seed: u64, share: u32, repeats: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let proxy = Arc::new(FaultProxy {
            client: Client::try_from(server).expect("a client"),
            rng: Mutex::new(Rng::with_seed(seed)),
            share,
            is_active: AtomicBool::new(false),
            cuts: watch::channel(0).0,
            counts: Mutex::default(),
            repeats,
            repeated: Mutex::default(),
        });
        let routes = Router::new().fallback(pass).with_state(Arc::clone(&proxy));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, proxy }
    }

    pub fn url(&self) -> String {
        self.url.clone()
    }

    pub fn start_faults(&self) {
        self.proxy.is_active.store(true, Ordering::SeqCst);
    }

    pub fn stop_faults(&self) {
        self.proxy.is_active.store(false, Ordering::SeqCst);
    }

    /// Ends every response that is still being sent.
    pub fn cuts_watches(&self) {
        self.proxy.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Number of calls by fault; None for those without a fault.
    pub fn counts(&self) -> BTreeMap<Option<Fault>, usize> {
        self.proxy
            .counts
            .lock()
            .expect("no panic under the lock")
            .clone()
    }
}

impl FaultProxy {
    /// Chooses the fault of a call, and its delay.
    fn choose(&self, body: &Bytes) -> (Option<Fault>, Duration) {
        let mut rng = self.rng.lock().expect("no panic under the lock");
        let goes_wrong = self.is_active.load(Ordering::SeqCst) && rng.u32(..100) < self.share;
        let fault = goes_wrong.then(|| FAULTS[rng.usize(..FAULTS.len())]);
        let mut repeated = self.repeated.lock().expect("no panic under the lock");
        let fault = match (repeated.remove(body), fault) {
            (Some((fault, left)), _) if self.is_active.load(Ordering::SeqCst) => {
                if left > 1 {
                    repeated.insert(body.clone(), (fault, left - 1));
                }
                Some(fault)
            }
            (_, Some(fault)) if self.repeats > 0 => {
                repeated.insert(body.clone(), (fault, self.repeats));
                Some(fault)
            }
            (_, fault) => fault,
        };
        let time = Duration::from_millis(rng.u64(..LONGEST_MS));
        *self
            .counts
            .lock()
            .expect("no panic under the lock")
            .entry(fault)
            .or_default() += 1;
        (fault, time)
    }
}

async fn pass(State(proxy): State<Arc<FaultProxy>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let call = http::Request::from_parts(parts, kube::client::Body::from(body.to_vec()));
    let (fault, time) = proxy.choose(&body);
    match fault {
        Some(Fault::Rejected) => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Some(Fault::Lost) => return cut_off(),
        Some(Fault::Late) => {
            tokio::spawn(async move {
                sleep(time).await;
                let _ = proxy.client.send(call).await;
            });
            return cut_off();
        }
        Some(Fault::Delayed) => sleep(time).await,
        Some(Fault::Unanswered) | None => {}
    }
    let mut cuts = proxy.cuts.subscribe();
    let Ok(response) = proxy.client.send(call).await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    if fault == Some(Fault::Unanswered) {
        return cut_off();
    }
    let cut = async move {
        let _ = cuts.changed().await;
    };
    let (parts, body) = response.into_parts();
    // A response that is still open when the watches are cut ends there.
    let pieces = Body::new(body).into_data_stream().take_until(Box::pin(cut));
    Response::from_parts(parts, Body::from_stream(pieces))
}
