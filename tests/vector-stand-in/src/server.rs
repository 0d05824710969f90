//! HTTP: Vector's `/health`, and the state of the stand-in.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::running::Process;

/// Port of `GET /configuration`, and of `GET /configuration/after/LOADS`, which waits for another load. It is served whether Vector's API is enabled or not.
pub const REPORTS: u16 = 8687;

/// Address of Vector's API if the configuration has none.
const DEFAULT_API_ADDRESS: &str = "127.0.0.1:8686";

/// Maximum duration of a response that waits for the next load.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// Starts the servers.
///
/// # Errors
///
/// An address is in use.
pub(crate) async fn start(process: &Arc<Process>) -> anyhow::Result<()> {
    let api = process.subscribe().borrow().configuration["api"].clone();
    if api["enabled"] == true {
        let address = api["address"].as_str().unwrap_or(DEFAULT_API_ADDRESS);
        let health = Router::new().route("/health", get(async || r#"{"ok":true}"#));
        serve(address, health).await?;
    }
    let reports = Router::new()
        .route("/configuration", get(report))
        .route("/configuration/after/{loads}", get(next_report));
    let reports = reports.with_state(Arc::clone(process));
    serve(&format!("0.0.0.0:{REPORTS}"), reports).await
}

async fn serve(address: &str, router: Router) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(())
}

async fn report(State(process): State<Arc<Process>>) -> String {
    let running = process.subscribe();
    let text = serde_json::to_string(&*running.borrow());
    text.expect("the state is JSON")
}

/// Responds after the next load, or after a while with what the client already has.
async fn next_report(State(process): State<Arc<Process>>, Path(loads): Path<u64>) -> String {
    let mut running = process.subscribe();
    let _ = timeout(LONGEST_WAIT, running.wait_for(|it| it.loads > loads)).await;
    report(State(process)).await
}
