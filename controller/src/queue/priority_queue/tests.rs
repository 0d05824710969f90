//! Tests of the order and the guarantees of the queue.

use std::sync::Arc;

use futures::FutureExt;

use super::*;

const NOW: Duration = Duration::ZERO;

fn queue() -> Queue<&'static str> {
    Queue::new(QueueMetrics::default(), NOW, None)
}

/// Returns the key that is handed out without waiting.
fn at_once(queue: &Queue<&'static str>) -> Option<&'static str> {
    queue.next().now_or_never().flatten()
}

#[tokio::test(start_paused = true)]
async fn delayed_keys_can_be_made_ready_behind_urgent_ones() {
    let queue = queue();
    queue.add("worked on", Priority::Event, NOW);
    assert_eq!(at_once(&queue), Some("worked on"));
    queue.add("later", Priority::Requeue, Duration::from_hours(1));
    queue.expedite();
    queue.add("urgent", Priority::Event, NOW);
    assert_eq!(at_once(&queue), Some("urgent"));
    assert_eq!(at_once(&queue), Some("later"));
    assert_eq!(at_once(&queue), None);
    queue.done(&"worked on", None);
    assert_eq!(at_once(&queue), Some("worked on"));
}

#[tokio::test(start_paused = true)]
async fn keys_that_wait_for_long_can_be_spread_over_a_shorter_period() {
    let queue = queue();
    queue.add("worked on", Priority::Event, NOW);
    assert_eq!(at_once(&queue), Some("worked on"));
    let started = Instant::now();
    queue.add("soon", Priority::Requeue, Duration::from_secs(5));
    for key in ["a", "b", "c"] {
        queue.add(key, Priority::Requeue, Duration::from_hours(1));
    }
    queue.requeue_within(Duration::from_secs(30));
    queue.done(&"worked on", Some(Duration::from_hours(1)));
    let mut order = Vec::new();
    for _ in 0..5 {
        let key = queue.next().await.expect("a key");
        order.push((key, started.elapsed().as_secs()));
    }
    let expected = [
        ("worked on", 0),
        ("soon", 5),
        ("a", 10),
        ("b", 20),
        ("c", 30),
    ];
    assert_eq!(order, expected);
}

#[tokio::test(start_paused = true)]
async fn keys_are_ordered_by_priority_and_then_by_age() {
    let queue = queue();
    for (key, priority) in [
        ("start 1", Priority::Initial),
        ("start 2", Priority::Initial),
        ("due", Priority::Requeue),
        ("change 1", Priority::Event),
        ("start 2", Priority::Event),
        ("change 2", Priority::Event),
    ] {
        queue.add(key, priority, NOW);
    }
    let mut order = Vec::new();
    while let Some(key) = at_once(&queue) {
        order.push(key);
    }
    assert_eq!(order, ["start 2", "change 1", "change 2", "due", "start 1"]);
}

#[tokio::test(start_paused = true)]
async fn every_key_is_handed_out_although_those_of_the_highest_priority_never_run_out() {
    let queue = queue();
    queue.add("start 1", Priority::Initial, NOW);
    queue.add("due", Priority::Requeue, NOW);
    queue.add("start 2", Priority::Initial, NOW);
    let mut others = Vec::new();
    for number in 1..=3 * FAIRNESS {
        queue.add("change", Priority::Event, NOW);
        let key = at_once(&queue).expect("a key");
        queue.done(&key, None);
        if key != "change" {
            others.push((key, number));
        }
    }
    let expected = [
        ("start 1", FAIRNESS),
        ("due", 2 * FAIRNESS),
        ("start 2", 3 * FAIRNESS),
    ];
    assert_eq!(others, expected);
}

#[tokio::test(start_paused = true)]
async fn a_key_has_one_worker_at_a_time_and_is_handed_out_again_if_it_was_added_meanwhile() {
    let queue = queue();
    queue.add("a", Priority::Event, NOW);
    queue.add("a", Priority::Event, NOW);
    assert_eq!(at_once(&queue), Some("a"));
    queue.add("a", Priority::Event, NOW);
    queue.add("a", Priority::Initial, NOW);
    assert_eq!(at_once(&queue), None);
    queue.done(&"a", Some(Duration::from_hours(1)));
    assert_eq!(at_once(&queue), Some("a"));
    queue.done(&"a", None);
    assert_eq!(at_once(&queue), None);
    assert!(queue.state.lock().entries.is_empty(), "no entry is left");
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_two_times_counts_and_a_change_does_not_wait() {
    let queue = queue();
    let started = Instant::now();
    for seconds in [30, 10, 20] {
        queue.add("a", Priority::Requeue, Duration::from_secs(seconds));
    }
    assert_eq!(queue.next().await, Some("a"));
    assert_eq!(started.elapsed().as_secs(), 10);
    queue.done(&"a", Some(Duration::from_mins(1)));
    queue.add("a", Priority::Event, NOW);
    assert_eq!(at_once(&queue), Some("a"));
    queue.done(&"a", None);
    assert!(queue.state.lock().due.is_empty(), "it has been processed");
}

#[tokio::test(start_paused = true)]
async fn changes_within_the_debounce_time_are_merged_and_the_last_one_is_not_delayed_further() {
    let debounce = Duration::from_secs(2);
    let queue = Queue::new(QueueMetrics::default(), debounce, None);
    let started = Instant::now();
    queue.add("a", Priority::Requeue, Duration::from_hours(6));
    queue.add("a", Priority::Event, NOW);
    tokio::time::advance(Duration::from_secs(1)).await;
    queue.add("a", Priority::Event, NOW);
    assert_eq!(at_once(&queue), None);
    assert_eq!(queue.next().await, Some("a"));
    assert_eq!(started.elapsed(), debounce, "counted from the first change");
    queue.add("a", Priority::Event, NOW);
    queue.done(&"a", None);
    assert_eq!(queue.next().await, Some("a"));
    assert_eq!(started.elapsed(), 2 * debounce);
    queue.add("b", Priority::Initial, NOW);
    assert_eq!(at_once(&queue), Some("b"), "it has not changed");
}

#[tokio::test(start_paused = true)]
async fn a_removed_key_is_not_handed_out_and_leaves_no_entry() {
    let queue = queue();
    queue.add("worked on", Priority::Event, NOW);
    assert_eq!(at_once(&queue), Some("worked on"));
    queue.add("worked on", Priority::Event, NOW);
    queue.add("ready", Priority::Event, NOW);
    queue.add("due", Priority::Requeue, Duration::from_hours(6));
    for key in ["worked on", "ready", "due", "unknown"] {
        queue.remove(&key);
    }
    queue.done(&"worked on", None);
    assert_eq!(at_once(&queue), None);
    let state = queue.state.lock();
    assert!(state.entries.is_empty() && state.ready.len() == 0 && state.due.is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_waiting_worker_is_woken_by_new_keys_and_by_the_close() {
    let queue = Arc::new(queue());
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move {
                let mut done = Vec::new();
                while let Some(key) = queue.next().await {
                    tokio::task::yield_now().await;
                    queue.done(&key, None);
                    done.push(key);
                }
                done
            })
        })
        .collect();
    tokio::task::yield_now().await;
    for key in ["a", "b", "c", "d"] {
        queue.add(key, Priority::Event, NOW);
    }
    while !queue.state.lock().entries.is_empty() {
        tokio::task::yield_now().await;
    }
    queue.close();
    queue.add("late", Priority::Event, NOW);
    let done = futures::future::join_all(workers).await;
    let mut done: Vec<_> = done.into_iter().flatten().flatten().collect();
    done.sort_unstable();
    assert_eq!(done, ["a", "b", "c", "d"]);
}

/// Returns the 95th percentile of the times that changes of one object take, while another namespace has objects that change
/// all the time.
async fn p95_beside(noisy: &[&'static str]) -> Duration {
    const WORK: Duration = Duration::from_millis(1_500);
    const WORKERS: usize = 8;
    let queue = Arc::new(Queue::new(QueueMetrics::default(), NOW, Some(WORKERS)));
    for key in noisy {
        queue.add(*key, Priority::Event, NOW);
    }
    let (reconciled, mut reconciliations) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..WORKERS {
        let (queue, reconciled) = (Arc::clone(&queue), reconciled.clone());
        tokio::spawn(async move {
            while let Some(key) = queue.next().await {
                tokio::time::sleep(WORK.mul_f64(0.5 + fastrand::f64())).await;
                if key.starts_with("noisy/") {
                    queue.add(key, Priority::Event, NOW);
                } else {
                    reconciled.send(()).expect("the test waits");
                }
                queue.done(&key, None);
            }
        });
    }
    let mut times = Vec::new();
    for _ in 0..100 {
        let changed = Instant::now();
        queue.add("quiet/a", Priority::Event, NOW);
        reconciliations.recv().await.expect("a reconciliation");
        times.push(changed.elapsed());
        // Between two changes, the user does something else.
        tokio::time::sleep(WORK).await;
    }
    queue.close();
    times.sort();
    times[94]
}

#[tokio::test(start_paused = true)]
async fn objects_of_another_namespace_that_change_all_the_time_double_no_time() {
    let names: Vec<String> = (0..1_000).map(|at| format!("noisy/{at}")).collect();
    let leaked = names.into_iter().map(|name| &*Box::leak(name.into()));
    let noisy: Vec<&'static str> = leaked.collect();
    let (alone, beside) = (p95_beside(&[]).await, p95_beside(&noisy).await);
    assert!(
        beside <= 2 * alone,
        "{beside:?} beside others, {alone:?} alone"
    );
}
