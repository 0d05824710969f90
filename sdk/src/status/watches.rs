//! Watches that are down or silent, as each controller reports them on its health port.

use http::{Request, StatusCode, header};
use kube::client::Body;
use serde::Serialize;

use crate::installation::Installation;
use crate::status::pods::PodStatus;
use crate::status::section::Section;
use crate::status::visible::Visible;

/// Number of watches that the problems name.
const SHOWN: usize = 20;

/// Watch that delivers nothing.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DisconnectedWatch {
    pub(crate) pod: String,
    /// Sentence that names the watch and the reason, such as a missing right.
    pub(crate) message: String,
}

/// Reads the state of the watches of every Pod through the API server's proxy to each.
pub(crate) async fn read(
    installation: &Installation<'_>,
    pods: &Visible<Vec<PodStatus>>,
) -> anyhow::Result<Section<Visible<Vec<DisconnectedWatch>>>> {
    let content = read_all(installation, pods).await?;
    let all = content.known().map(Vec::as_slice).unwrap_or_default();
    let shown = all.iter().take(SHOWN);
    let mut problems: Vec<_> = shown
        .map(|watch| format!("{}: {}", watch.pod, watch.message))
        .collect();
    if all.len() > SHOWN {
        let more = all.len() - SHOWN;
        problems.push(format!("{more} more watches are not connected"));
    }
    Ok(Section { content, problems })
}

async fn read_all(
    installation: &Installation<'_>,
    pods: &Visible<Vec<PodStatus>>,
) -> anyhow::Result<Visible<Vec<DisconnectedWatch>>> {
    let pods = match pods {
        Visible::Known(pods) => pods,
        Visible::Unknown { unknown } => return Ok(Visible::because(unknown)),
    };
    let mut watches = Vec::new();
    // What one Pod reports is shown, whatever keeps the others from it.
    let mut unknown = None;
    for pod in pods {
        let Some(port) = pod.metrics_port else {
            continue;
        };
        let path = format!(
            "/api/v1/namespaces/{}/pods/http:{}:{port}/proxy/readyz",
            installation.home, pod.name
        );
        match readiness(installation, &path).await? {
            Readiness::Reported(messages) => {
                watches.extend(messages.into_iter().map(|message| DisconnectedWatch {
                    pod: pod.name.clone(),
                    message,
                }));
            }
            Readiness::Forbidden => unknown = Some(Visible::forbidden()),
            // Networks need not let the API server reach the port.
            Readiness::Unreachable => {
                unknown.get_or_insert_with(|| Visible::because("unreachable"));
            }
        }
    }
    Ok(unknown
        .filter(|_| watches.is_empty())
        .unwrap_or(Visible::Known(watches)))
}

/// Response of the health port of a controller.
enum Readiness {
    /// The watches that are not connected; none if the controller is ready.
    Reported(Vec<String>),
    Forbidden,
    Unreachable,
}

async fn readiness(installation: &Installation<'_>, path: &str) -> anyhow::Result<Readiness> {
    let request = Request::get(path).body(Body::empty())?;
    let Ok(response) = installation.client.send(request).await else {
        return Ok(Readiness::Unreachable);
    };
    // The API server reports its own errors as JSON.
    let is_text = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|type_| type_.as_bytes().starts_with(b"text/plain"));
    let status = response.status();
    let Ok(body) = response.into_body().collect_bytes().await else {
        return Ok(Readiness::Unreachable);
    };
    Ok(match status {
        StatusCode::OK => Readiness::Reported(Vec::new()),
        StatusCode::FORBIDDEN if !is_text => Readiness::Forbidden,
        StatusCode::SERVICE_UNAVAILABLE if is_text => {
            let text = String::from_utf8_lossy(&body);
            Readiness::Reported(text.lines().map(str::to_owned).collect())
        }
        _ => Readiness::Unreachable,
    })
}
