//! Time from the write of a pipeline to the agent that runs it.

use std::time::{Duration, SystemTime};

use futures::future::join_all;

use crate::site::{PODS, Site};
use crate::stand_in::{Report, VectorPod};
use crate::vector::pipelines::{self, Pipelines};

/// Pipelines that are changed at the same time, and how often. The first time, they are created.
const PIPELINES: usize = 5;
const ROUNDS: usize = 20;

/// Half of the period with which a kubelet synchronizes a Pod. The median of the times is a small part of it, unless the
/// controller does not make the kubelet refresh the Secrets.
const LONGEST_MEDIAN: Duration = Duration::from_secs(30);

/// Change that the API server has accepted.
struct Change {
    pipeline: String,
    mark: String,
    accepted: SystemTime,
}

/// Writes changes of pipelines, waits until the agent runs each of them, and prints the times.
pub async fn arrive(site: &Site, tenant: &Pipelines, agent: &VectorPod) {
    let mut times = Vec::new();
    let mut last = agent.report(site).await;
    for round in 0..ROUNDS {
        let writes = (0..PIPELINES).map(|index| write(tenant, index, round));
        let mut waiting = join_all(writes).await;
        while !waiting.is_empty() {
            let arrived =
                waiting.extract_if(.., |it| pipelines::has_mark(&last, &it.pipeline, &it.mark));
            let times_of_load = arrived.map(|it| time_to(&last, it.accepted));
            times.extend(times_of_load);
            if let Some(change) = waiting.first() {
                let waited = change.accepted.elapsed().unwrap_or_default();
                if waited > PODS {
                    site.fail(&format!("{} does not run: {last:#?}", change.pipeline));
                }
                last = agent.next_report(site, &last).await.unwrap_or(last);
            }
        }
    }
    times.sort();
    assert_eq!(times.len(), PIPELINES * ROUNDS);
    let percentile = |rank: usize| times[(times.len() * rank).div_ceil(100) - 1];
    println!(
        "{} changes of pipelines run after p50 {:.2} s, p99 {:.2} s, at most {:.2} s",
        times.len(),
        percentile(50).as_secs_f64(),
        percentile(99).as_secs_f64(),
        percentile(100).as_secs_f64(),
    );
    assert!(percentile(50) < LONGEST_MEDIAN, "{times:?}");
}

async fn write(tenant: &Pipelines, index: usize, round: usize) -> Change {
    let (pipeline, mark) = (format!("p{index}"), format!("{index}-{round}"));
    if round == 0 {
        tenant.create(&pipeline, &pipelines::logs(&mark)).await;
    } else {
        let changed = tenant.change(&pipeline, &pipelines::marked(&mark)).await;
        changed.expect("the change is admitted");
    }
    Change {
        pipeline,
        mark,
        accepted: SystemTime::now(),
    }
}

/// Returns the time from an accepted write to the load.
fn time_to(report: &Report, accepted: SystemTime) -> Duration {
    let time = report.loaded_at().duration_since(accepted);
    time.unwrap_or_default()
}
