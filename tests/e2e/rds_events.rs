//! Events of RDS through a queue of SQS: the simulator of RDS reports them, and moto has the queue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use lockstep_envtest::{Moto, eventually};
use rds_simulator::{Disturbance, Simulator};

use crate::env::{EnvOptions, TestEnv, database, sqs};

/// Region of the queue, which is not that of the instances.
const REGION: &str = "us-east-1";

const QUEUE: &str = "rds-events";

/// Usual interval of the polls.
const RESYNC: Duration = Duration::from_secs(2);

/// Queue, to which the events of the simulator are sent as by a rule of `EventBridge`.
struct Queue {
    sqs: aws_sdk_sqs::Client,
    url: Mutex<String>,
    /// If false, events are lost.
    is_connected: AtomicBool,
}

impl Queue {
    async fn start(moto: &Moto) -> Arc<Self> {
        let queue = Self {
            sqs: sqs(&moto.endpoint(), REGION).await,
            url: Mutex::default(),
            is_connected: AtomicBool::new(true),
        };
        queue.create().await;
        Arc::new(queue)
    }

    async fn create(&self) {
        let created = self.sqs.create_queue().queue_name(QUEUE).send().await;
        let url = created.expect("a queue").queue_url;
        *self.url.lock().expect("no panic") = url.expect("a URL");
    }

    fn url(&self) -> String {
        self.url.lock().expect("no panic").clone()
    }

    async fn delete(&self) {
        let deleted = self.sqs.delete_queue().queue_url(self.url()).send().await;
        deleted.expect("the queue is deleted");
    }

    async fn send(&self, bodies: &[String]) {
        let entries = bodies.iter().enumerate().map(|(number, body)| {
            let entry = SendMessageBatchRequestEntry::builder().id(number.to_string());
            entry.message_body(body).build().expect("an entry")
        });
        let call = self.sqs.send_message_batch().queue_url(self.url());
        let sent = call.set_entries(Some(entries.collect())).send().await;
        assert!(sent.expect("an answer").failed().is_empty());
    }

    /// Returns the numbers of messages that wait, and of those that were received and not deleted.
    async fn messages(&self) -> (usize, usize) {
        let call = self.sqs.get_queue_attributes().queue_url(self.url());
        let found = call.attribute_names(QueueAttributeName::All).send().await;
        let found = found.expect("attributes").attributes.unwrap_or_default();
        let number = |name| found.get(&name).and_then(|it| it.parse().ok()).unwrap_or(0);
        (
            number(QueueAttributeName::ApproximateNumberOfMessages),
            number(QueueAttributeName::ApproximateNumberOfMessagesNotVisible),
        )
    }

    async fn is_empty(&self, env: &TestEnv) {
        let empty = eventually("an empty queue", async || {
            (self.messages().await == (0, 0)).then_some(())
        });
        empty
            .await
            .unwrap_or_else(|error| env.fail(&error.to_string()));
    }

    /// Sends the events of a simulator, for as long as the test lasts.
    fn connect(self: &Arc<Self>, rds: &Simulator) {
        let (queue, rds) = (Arc::clone(self), rds.clone());
        tokio::spawn(async move {
            let mut sent = 0;
            let mut ticks = tokio::time::interval(Duration::from_millis(20));
            loop {
                ticks.tick().await;
                let events = rds.bridged_events();
                for event in &events[sent..] {
                    if queue.is_connected.load(Ordering::SeqCst) {
                        queue.send(&[event.to_string()]).await;
                    }
                }
                sent = events.len();
            }
        });
    }
}

/// Waits until a metric of the controller has a line that ends with a text.
async fn metric(env: &TestEnv, name: &str, value: &str) {
    let url = env.installation.controller_health_url();
    let what = format!("{name} {value}");
    let found = eventually(&what, async || {
        let metrics = env.metrics(&url).await;
        let mut lines = metrics.lines();
        lines
            .any(|line| line.starts_with(name) && line.ends_with(value))
            .then_some(())
    });
    found
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

/// Changes an instance as the console does, and returns the time until the controller has noticed and undone it.
async fn time_to_notice(env: &TestEnv, rds: &Simulator, id: &str) -> Duration {
    rds.clear_journal();
    let call = env.rds.modify_db_instance().db_instance_identifier(id);
    let call = call
        .db_instance_class("db.m7g.large")
        .apply_immediately(true);
    call.send().await.expect("a modification");
    let started = Instant::now();
    let noticed = eventually("the repair", async || {
        (!rds.calls("ModifyDBInstance").is_empty()).then_some(())
    });
    noticed
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    let elapsed = started.elapsed();
    let repaired = eventually("the former class", async || {
        let instance = rds.instance(id)?;
        let is_repaired = instance["DBInstanceClass"] == "db.t4g.micro";
        (is_repaired && instance["DBInstanceStatus"] == "available").then_some(())
    });
    repaired
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    env.condition_because("orders", "Synced", "Synced").await;
    elapsed
}

#[tokio::test(flavor = "multi_thread")]
async fn events_replace_polls_for_as_long_as_the_queue_works() {
    let moto = Moto::start().await.expect("moto");
    let queue = Queue::start(&moto).await;
    let options = EnvOptions {
        controller_args: vec![
            format!(
                "--rds-events-queue=arn:aws:sqs:{REGION}:{}:{QUEUE}",
                Moto::ACCOUNT
            ),
            format!("--rds-resync-period={}s", RESYNC.as_secs()),
            "--rds-resync-period-with-events=1h".to_owned(),
        ],
        controller_env: vec![("AWS_ENDPOINT_URL_SQS".to_owned(), moto.endpoint())],
        ..EnvOptions::default()
    };
    let (env, rds) = TestEnv::start_on_simulator_with(options).await;
    queue.connect(&rds);
    env.kubectl_apply(&database("orders"))
        .unwrap_or_else(|error| env.fail(&error));
    env.condition("orders", "Ready", "True").await;
    let receiving = "lockstep_rds_events_receiving{";
    // The first response of an empty queue would take twenty seconds.
    queue.send(&["no JSON".to_owned()]).await;
    metric(&env, receiving, " 1").await;
    metric(&env, "lockstep_rds_events_total{result=\"invalid\"}", " 1").await;
    let id = rds.instance_ids().remove(0);
    let calls = async || rds.calls("DescribeDBInstances").len();
    stays_at_last(&env, RESYNC + RESYNC / 2, calls).await;

    let with_queue = time_to_notice(&env, &rds, &id).await;
    queue.is_empty(&env).await;
    assert!(with_queue < RESYNC, "{with_queue:?}");

    // An event that arrives while its instance is described keeps its message until the end.
    let event = rds.bridged_events().pop().expect("an event").to_string();
    stays_at_last(&env, Duration::from_secs(1), calls).await;
    rds.clear_journal();
    let late = Disturbance::Delay(Duration::from_secs(2));
    rds.inject("DescribeDBInstances", late, 1);
    queue.send(&vec![event.clone(); 10]).await;
    let received = eventually("the reception", async || (calls().await == 1).then_some(()));
    received
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert!(queue.messages().await.1 > 0, "no message is in work");
    queue.is_empty(&env).await;
    // Those that arrive during the description are seen by another one.
    let descriptions = calls().await;
    assert!((1..=2).contains(&descriptions), "{descriptions}");

    // Messages that concern nothing here are deleted, too.
    let other = event.replace(&id, "another");
    queue.send(&[other, String::from("[]"), event]).await;
    queue.is_empty(&env).await;
    metric(&env, "lockstep_rds_events_total{result=\"ignored\"}", " 1").await;
    metric(&env, "lockstep_rds_events_total{result=\"invalid\"}", " 2").await;
    metric(&env, "lockstep_rds_events_oldest_age_seconds{", "").await;

    queue.is_connected.store(false, Ordering::SeqCst);
    queue.delete().await;
    metric(&env, receiving, " 0").await;
    let without_queue = time_to_notice(&env, &rds, &id).await;
    println!(
        "a change was noticed after {with_queue:?} with the queue, and {without_queue:?} without it at an interval of {RESYNC:?}"
    );
    assert!(
        env.installation
            .output()
            .contains("events of RDS are not received any more"),
        "the failure is logged"
    );

    queue.create().await;
    queue.is_connected.store(true, Ordering::SeqCst);
    queue.send(&["{}".to_owned()]).await;
    metric(&env, receiving, " 1").await;
    stays_at_last(&env, RESYNC + RESYNC / 2, calls).await;
    let with_queue = time_to_notice(&env, &rds, &id).await;
    assert!(with_queue < RESYNC, "{with_queue:?}");
}

/// Waits until a number does not change for some time.
async fn stays_at_last(env: &TestEnv, time: Duration, number: impl AsyncFn() -> usize) {
    let mut last = (number().await, Instant::now());
    let stable = eventually("no more calls", async || {
        let now = number().await;
        if now != last.0 {
            last = (now, Instant::now());
        }
        (last.1.elapsed() > time).then_some(())
    });
    stable
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}
