//! Queues of the leader, or of the replicas that share the objects, from their metrics.

use http::Request;
use serde::Serialize;

use crate::installation::Installation;
use crate::status::pods::PodStatus;
use crate::status::visible::Visible;

/// Name of the metric, followed by its labels.
const DEPTH: &str = "workqueue_depth{";

/// Number of objects that wait for reconciliation.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct QueueDepth {
    pub(crate) controller: String,
    pub(crate) depth: u64,
}

/// Reads the metrics of the Pods that reconcile objects through the API server's proxy to each.
pub(crate) async fn read(
    installation: &Installation<'_>,
    pods: &Visible<Vec<PodStatus>>,
    reconciling: &[&str],
) -> anyhow::Result<Visible<Vec<QueueDepth>>> {
    if reconciling.is_empty() {
        return Ok(Visible::because("no leader"));
    }
    let pods = match pods {
        Visible::Known(pods) => pods,
        Visible::Unknown { unknown } => return Ok(Visible::because(unknown)),
    };
    let mut metrics = String::new();
    for name in reconciling {
        let pod = pods.iter().find(|pod| pod.name == *name);
        let Some((pod, port)) = pod.and_then(|pod| Some((pod, pod.metrics_port?))) else {
            return Ok(Visible::because("no Pod of the leader"));
        };
        let path = format!(
            "/api/v1/namespaces/{}/pods/http:{}:{port}/proxy/metrics",
            installation.home, pod.name
        );
        let request = Request::get(path).body(Vec::new())?;
        // Networks need not let the API server reach the port of the metrics.
        match installation.client.request_text(request).await {
            Ok(text) => metrics = metrics + &text + "\n",
            Err(kube::Error::Api(status)) if status.code == 403 => return Ok(Visible::forbidden()),
            Err(_) => return Ok(Visible::because("unreachable")),
        }
    }
    Ok(Visible::Known(parse(&metrics)))
}

/// Sums the depths by controller: a queue may have one sample for each priority.
fn parse(metrics: &str) -> Vec<QueueDepth> {
    let mut queues: Vec<QueueDepth> = Vec::new();
    for sample in metrics.lines().filter_map(|line| line.strip_prefix(DEPTH)) {
        let Some((labels, value)) = sample.rsplit_once("} ") else {
            continue;
        };
        let mut labels = labels.split(',');
        let name = labels.find_map(|label| label.strip_prefix("name=\"")?.strip_suffix('"'));
        let (Some(name), Ok(depth)) = (name, value.trim().parse()) else {
            continue;
        };
        match queues.iter_mut().find(|queue| queue.controller == name) {
            Some(queue) => queue.depth += depth,
            None => queues.push(QueueDepth {
                controller: name.to_owned(),
                depth,
            }),
        }
    }
    queues
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_of_each_queue_is_read_from_the_metrics() {
        let metrics = "# TYPE workqueue_depth gauge\n\
            workqueue_depth{name=\"lamp\",priority=\"0\"} 3\n\
            workqueue_depth{name=\"lamp\",priority=\"-100\"} 4\n\
            workqueue_depth{name=\"cellar\"} 0\n\
            workqueue_adds_total{name=\"lamp\"} 9\n";
        let depth = |controller: &str, depth| QueueDepth {
            controller: controller.to_owned(),
            depth,
        };
        assert_eq!(parse(metrics), [depth("lamp", 7), depth("cellar", 0)]);
    }
}
