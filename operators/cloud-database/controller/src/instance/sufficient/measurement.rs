//! Measurement of the calls for ten thousand objects.
//!
//! Workers ask about each object once in a resync period, as the controller does in the steady state. The period is
//! shortened; the number of calls in a period does not depend on its length.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rds_simulator::Simulator;
use serde_json::json;

use super::tests::{CLASS, Objects};
use super::*;
use crate::aws::recent::tests::{calls, id, start};
use crate::instance::instance_reconciler::RdsConfig;

const OBJECTS: usize = 10_000;

/// Default of `--max-concurrent-reconciles`.
const WORKERS: usize = 8;

const PERIOD: Duration = Duration::from_mins(1);

/// Periods that are measured after the first one.
const PERIODS: u32 = 2;

/// Default resync periods in an hour.
const AN_HOUR: usize = 6;

/// Instances that are changed, at different times of a period.
const CHANGED: usize = 40;

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|it| it.parse().ok()).expect("a number")
}

/// Asks about all objects once, at times that are spread over the period, from its beginning.
async fn resync(objects: &Arc<Objects>, noticed: &Arc<dyn Fn(usize) + Send + Sync>) {
    let began = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..WORKERS {
        let (objects, next, noticed) = (objects.clone(), next.clone(), noticed.clone());
        workers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::SeqCst);
                if number >= OBJECTS {
                    return;
                }
                let part = u32::try_from(number).expect("small");
                let total = u32::try_from(OBJECTS).expect("small");
                let due = began + PERIOD * part / total;
                tokio::time::sleep_until(due.into()).await;
                let instance = objects.describe(number, CLASS).await;
                let instance = instance.expect("an answer").expect("an instance");
                if instance.db_instance_class() != Some(CLASS) {
                    noticed(number);
                }
            }
        });
    }
    workers.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints figures, in some minutes"]
async fn ten_thousand_objects() {
    let (rds, client) = start(OBJECTS).await;
    let config = RdsConfig {
        resync_period: PERIOD,
        ..RdsConfig::default()
    };
    let objects = Arc::new(Objects::of(&client, config).await);
    calls(&rds);
    let nothing: Arc<dyn Fn(usize) + Send + Sync> = Arc::new(|number| panic!("{number} differs"));
    resync(&objects, &nothing).await;
    println!("first period (single calls, pages): {:?}", calls(&rds));

    let before = resident_kib();
    let held = client.descriptions.copy_held();
    let used = resident_kib().saturating_sub(before);
    println!(
        "memory of {} descriptions: {used} KiB, {} bytes each without their texts",
        held.len(),
        size_of::<DbInstance>()
    );
    drop(held);

    for _ in 0..PERIODS {
        resync(&objects, &nothing).await;
        let (single, pages) = calls(&rds);
        let hour = (single + pages) * AN_HOUR;
        println!("period: {single} single calls, {pages} pages: {hour} an hour");
    }
    println!("one call an object: {} an hour", OBJECTS * AN_HOUR);
    changes_are_noticed(&rds, &objects).await;
}

async fn changes_are_noticed(rds: &Simulator, objects: &Arc<Objects>) {
    let changed_at: Arc<std::sync::Mutex<Vec<(usize, Instant)>>> = Arc::default();
    let delays: Arc<std::sync::Mutex<Vec<Duration>>> = Arc::default();
    let noticed: Arc<dyn Fn(usize) + Send + Sync> = {
        let (changed_at, delays) = (changed_at.clone(), delays.clone());
        Arc::new(move |number| {
            let mut changed = changed_at.lock().expect("no panic");
            let found = changed.iter().position(|(it, _)| *it == number);
            if let Some(found) = found {
                let (_, at) = changed.swap_remove(found);
                delays.lock().expect("no panic").push(at.elapsed());
            }
        })
    };
    let changes = tokio::spawn({
        let (rds, changed_at) = (rds.clone(), changed_at.clone());
        async move {
            let count = u32::try_from(CHANGED).expect("small");
            for change in 0..CHANGED {
                // Each instance is anywhere in the list.
                let number = change * 7_919 % OBJECTS;
                let now = (number, Instant::now());
                changed_at.lock().expect("no panic").push(now);
                rds.change(&id(number), json!({"DBInstanceClass": "db.m7g.large"}));
                tokio::time::sleep(PERIOD / count).await;
            }
        }
    });
    for _ in 0..3 {
        resync(objects, &noticed).await;
    }
    changes.await.expect("the changes");
    let mut delays = delays.lock().expect("no panic").clone();
    delays.sort();
    let part = |delay: &Duration| delay.as_secs_f64() / PERIOD.as_secs_f64();
    println!(
        "changes noticed: {} of {CHANGED}, after a median of {:.2} and at most {:.2} periods",
        delays.len(),
        delays.get(delays.len() / 2).map_or(f64::NAN, part),
        delays.last().map_or(f64::NAN, part)
    );
}
