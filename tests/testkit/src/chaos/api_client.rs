//! Client of a simulated process for the API server, with faults.

use std::sync::Arc;

use futures::stream::unfold;
use http::{Request, Response};
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::{BoxError, service_fn};

use crate::chaos::fault_plan::Side;
use crate::chaos::process_state::{CallRecord, InjectedAnswer, ProcessState};
use crate::chaos::status_claims::Claim;
use crate::fault_injector::Call;

type AnyBody = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;

/// Returns a client whose calls pass through the state of a process.
pub(crate) fn client(base: &Client, process: &Arc<ProcessState>, kind: &str) -> Client {
    let (base, process) = (base.clone(), Arc::clone(process));
    let status = format!("{kind}/status");
    let service = service_fn(move |request| {
        let (base, process) = (base.clone(), Arc::clone(&process));
        let status = status.clone();
        async move { send(base, process, &status, request).await }
    });
    Client::new(service, "default")
}

async fn send(
    base: Client,
    process: Arc<ProcessState>,
    status: &str,
    request: Request<Body>,
) -> Result<Response<AnyBody>, BoxError> {
    let call = Call::of(&request);
    if call.verb == "watch" {
        if process.is_dead() {
            std::future::pending::<()>().await;
        }
        let response = base.send(request).await?;
        return Ok(response.map(|body| interruptible(&process, body)));
    }
    let name = call.name.clone().unwrap_or_default();
    // The name of an Event is random.
    let is_event = call.resource == "events";
    let text = format!("{} {} {name}", call.verb, call.resource);
    let claim = if call.resource == status {
        Some(Claim::before(&process).await)
    } else {
        None
    };
    let record = CallRecord {
        side: Side::Api,
        key: format!("{} {}", call.verb, call.resource),
        text,
        object: call.name.clone().filter(|_| !is_event),
        is_write: call.is_write(),
    };
    let executing = Arc::clone(&process);
    let execute = async move {
        let (parts, body) = base.send(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        if let Some(claim) = claim.filter(|_| parts.status.is_success())
            && let Ok(stored) = serde_json::from_slice::<Value>(&body)
        {
            claim.check(&executing, &stored);
        }
        Ok::<_, BoxError>(Response::from_parts(parts, body))
    };
    match process.call(record, execute).await {
        Ok(answer) => Ok(answer?.map(whole)),
        Err(InjectedAnswer::ConnectionLost) => {
            Err(BoxError::from("connection lost (fault injected by chaos)"))
        }
        Err(InjectedAnswer::Status(code)) => Ok(failure(code)),
    }
}

fn whole(body: Bytes) -> AnyBody {
    Full::new(body).map_err(Into::into).boxed_unsync()
}

/// Returns the answer of an API server that refuses a call.
fn failure(code: u16) -> Response<AnyBody> {
    let reason = match code {
        409 => "Conflict",
        429 => "TooManyRequests",
        504 => "Timeout",
        _ => "InternalError",
    };
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
        "message": format!("{reason} (fault injected by chaos)"),
    });
    let mut response = Response::new(whole(status.to_string().into()));
    *response.status_mut() = http::StatusCode::from_u16(code).expect("a status code");
    response
}

/// Returns the events of a watch, until the watches of the process are cut, and not while they are held back.
fn interruptible(process: &ProcessState, body: Body) -> AnyBody {
    struct Watching {
        frames: BodyStream<Body>,
        cuts: watch::Receiver<u64>,
        held: watch::Receiver<bool>,
    }
    let watching = Watching {
        frames: BodyStream::new(body),
        cuts: process.cuts.subscribe(),
        held: process.holds_watches.subscribe(),
    };
    let frames = unfold(watching, async |mut watching| {
        let next = async {
            let frame = futures::StreamExt::next(&mut watching.frames).await;
            // An error means that the sender is gone.
            let _ = watching.held.wait_for(|held| !held).await;
            frame
        };
        let frame: Option<Result<Frame<Bytes>, _>> = tokio::select! {
            frame = next => frame,
            _ = watching.cuts.changed() => None,
        };
        frame.map(|frame| (frame.map_err(BoxError::from), watching))
    });
    StreamBody::new(frames).boxed_unsync()
}
