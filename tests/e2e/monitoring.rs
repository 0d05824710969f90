//! Alerts and dashboards, checked with the tools of Prometheus against the metrics of a real run.

mod dashboards;
mod recording;
mod rules;

use std::collections::BTreeMap;

use dashboards::Dashboard;
use rules::{Alert, RuleTest};

/// Alerts whose conditions the recorded run has met on purpose.
const CAUSED: [&str; 2] = ["LockstepObjectsInvalid", "LockstepObjectsStalled"];

/// Alerts whose conditions the recorded run may have met: it contains failed reconciliations, and few others.
const POSSIBLE: [&str; 1] = ["LockstepReconcileErrors"];

#[tokio::test(flavor = "multi_thread")]
async fn alerts_and_dashboards_use_the_metrics_of_a_real_run() {
    let recording = recording::record().await;
    let asked = |queries: &BTreeMap<String, String>| {
        recording.query(queries).expect("the queries are evaluated")
    };

    // Every selector of every alert, and the alerts that this run fires.
    let alerts: BTreeMap<_, _> = rules::alerts()
        .into_iter()
        .map(|Alert { name, expr, .. }| (name, expr))
        .collect();
    let mut wrong = Vec::new();
    let mut met = Vec::new();
    for (name, answer) in asked(&alerts) {
        wrong.extend(answer.problems.iter().map(|one| format!("{name}: {one}")));
        if !answer.series.is_empty() {
            met.push(name);
        }
    }
    for name in &met {
        let is_known = [&CAUSED[..], &POSSIBLE].concat().contains(&name.as_str());
        if !is_known {
            wrong.push(format!("{name} fires in a healthy run"));
        }
    }
    for name in CAUSED {
        if !met.iter().any(|one| one == name) {
            wrong.push(format!("{name} does not fire"));
        }
    }

    // Every series of the rule tests.
    let series: Vec<_> = rules::tests()
        .into_iter()
        .flat_map(|test| test.series)
        .collect();
    wrong.extend(
        recording
            .check_labels(&series)
            .expect("the labels are compared"),
    );

    // Every panel of every dashboard.
    for Dashboard { name, panels, .. } in dashboards::all() {
        println!("{name}");
        let queries: BTreeMap<_, _> = panels.iter().flat_map(|panel| panel.queries()).collect();
        let answers = asked(&queries);
        for panel in &panels {
            for (query, _) in panel.queries() {
                let answer = &answers[&query];
                let values: Vec<_> = answer.series.iter().map(|one| one.value.as_str()).collect();
                println!("  {query}: {}", dashboards::summary(&values));
                wrong.extend(
                    answer
                        .problems
                        .iter()
                        .map(|one| format!("{name}: {query}: {one}")),
                );
                let is_empty = values.iter().all(|value| *value == "NaN");
                if is_empty && panel.reason_for_no_data().is_none() {
                    wrong.push(format!("{name}: {query} returns no data"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() {
    let tests = rules::tests();
    for Alert { name, .. } in rules::alerts() {
        let of_alert: Vec<&RuleTest> = tests.iter().filter(|test| test.alert == name).collect();
        assert!(of_alert.iter().any(|test| test.fires), "{name} never fires");
        assert!(
            of_alert.iter().any(|test| !test.fires),
            "{name} is never silent"
        );
    }
}
