//! Client of one watch, whose requests have time limits.

use futures::stream::{self, BoxStream, Stream, StreamExt};
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::Client;
use kube::client::Body;
use tokio::time::timeout;
use tower::BoxError;

use crate::state::{Connection, WatchState};

impl WatchState {
    /// Returns a client for the requests of this watch. They have the time limits of the watches, and the watch is up
    /// whenever the API server has accepted one of them.
    #[must_use]
    pub fn client(&self, client: &Client) -> Client {
        let (sender, connection) = (client.clone(), self.connection());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (sender, connection) = (sender.clone(), connection.clone());
            async move { send(&sender, request, connection).await }
        });
        Client::new(service, client.default_namespace())
    }
}

/// Sends a list or a watch request.
async fn send(
    client: &Client,
    request: Request<Body>,
    connection: Connection,
) -> Result<Response<StreamBody<BoxStream<'static, BodyFrame>>>, BoxError> {
    let query = request.uri().query().unwrap_or_default();
    let is_watch = query.split('&').any(|parameter| parameter == "watch=true");
    let limits = connection.limits;
    let limit = if is_watch { limits.start } else { limits.list };
    let Ok(response) = timeout(limit, client.send(request)).await else {
        return Err(format!("the API server has not answered within {limit:?}").into());
    };
    let (head, body) = response?.into_parts();
    let is_accepted = is_watch && head.status.is_success();
    if is_accepted {
        connection.set_up();
    }
    let frames = frames(body, connection, is_accepted).boxed();
    Ok(Response::from_parts(head, StreamBody::new(frames)))
}

/// Part of the body of a response.
type BodyFrame = Result<Frame<Bytes>, BoxError>;

/// Returns the parts of a body. That of a silent watch ends, as if the API server had closed the connection, so that the
/// watch is resumed. That of a silent list fails.
fn frames(body: Body, connection: Connection, is_watch: bool) -> impl Stream<Item = BodyFrame> {
    let silence = connection.limits.silence;
    stream::unfold(Some((body, connection)), move |reading| async move {
        let (mut body, connection) = reading?;
        match timeout(silence, body.frame()).await {
            Ok(frame) => Some((frame?.map_err(BoxError::from), Some((body, connection)))),
            Err(_) if is_watch => {
                connection.set_silent();
                None
            }
            Err(_) => {
                let error = format!("the API server has sent nothing for {silence:?}");
                Some((Err(error.into()), None))
            }
        }
    })
}

#[cfg(test)]
mod tests;
