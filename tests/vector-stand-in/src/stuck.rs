//! Sinks that do not end: what they have is not sent yet, and Vector waits for them in a reload that changes them.

use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::log::log;

/// Time for a connection, and between two attempts.
const ATTEMPT: Duration = Duration::from_secs(1);

/// Waits until the server of each sink is reached that differs between two configurations. One that is removed ends beside the new
/// configuration.
pub(crate) async fn wait(before: &Value, after: &Value) {
    let sinks = before["sinks"].as_object().into_iter().flatten();
    let is_changed = |id: &String, sink: &Value| {
        let changed = after["sinks"].get(id);
        changed.is_some_and(|changed| changed != sink)
    };
    for (id, sink) in sinks.filter(|(id, sink)| is_changed(id, sink)) {
        let Some(server) = server(sink) else { continue };
        while !is_reached(&server).await {
            log(&format!(
                "WARN sink{{component_kind=\"sink\" component_id={id} component_type=http}}: vector::sinks::util::retries: Retrying after error. error=Failed to make HTTP(S) request"
            ));
            sleep(ATTEMPT).await;
        }
    }
}

/// Returns the host and port of a sink that sends over HTTP.
fn server(sink: &Value) -> Option<String> {
    let uri = sink["uri"].as_str().filter(|_| sink["type"] == "http")?;
    let (_, rest) = uri.split_once("://")?;
    let authority = rest.split('/').next()?;
    Some(if authority.contains(':') {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    })
}

async fn is_reached(server: &str) -> bool {
    let connected = timeout(ATTEMPT, TcpStream::connect(server)).await;
    connected.is_ok_and(|connected| connected.is_ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_changed_sink_is_waited_for_until_its_server_is_reached() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let config = |uri: &str| json!({"sinks": {"a": {"type": "http", "uri": uri}}});
        let before = config(&format!("http://{address}/logs"));
        let after = config("http://example.com");
        wait(&before, &after).await;
        drop(listener);
        wait(&before, &before).await;
        wait(&before, &json!({"sinks": {}})).await;
        let waiting = timeout(2 * ATTEMPT, wait(&before, &after)).await;
        assert!(waiting.is_err(), "it does not wait");
        let _listener = TcpListener::bind(address).await.expect("the port");
        timeout(5 * ATTEMPT, wait(&before, &after))
            .await
            .expect("it goes on");
    }
}
