//! Memory of the webhook at the limit that the manifests give its container: no request, and no client that does not read its
//! response, brings it there, and other clients are served.
//!
//! The test needs root for a memory cgroup. Elsewhere it is reported as ignored, or as failed if `LOCKSTEP_REQUIRE_NODE` is
//! set. `LOCKSTEP_MEMORY_BYTES` sets the size of the reviews; the largest is 7 MiB.

mod cgroup;
mod shapes;
mod webhook;

use std::env;
use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use libtest_mimic::{Arguments, Trial};

use crate::cgroup::Cgroup;
use crate::shapes::{Expected, Reading, SHAPES, Shape};
use crate::webhook::{Response, Webhook};

/// Memory limit of the container in the manifests.
const CONTAINER_BYTES: u64 = 768 << 20;

/// Maximum memory of the process that serves, without the processes that compile VRL programs.
const PROCESS_MIB: u64 = 384;

/// Maximum size of a response to an admission review, and of its header.
const RESPONSE_BYTES: usize = (256 << 10) + 512;

/// Number of clients that send the same request at the same time.
const CLIENTS: usize = 4;

/// Number of times that a valid request is sent if it gets status 429. An API server sends it up to eleven times: `maxRetries` of
/// client-go, in `rest/request.go`.
const MAX_TRIES: usize = 3;

/// Size of a review, unless `LOCKSTEP_MEMORY_BYTES` is set.
const DEFAULT_BYTES: usize = 3 << 20;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let impossible = if arguments.list {
        None
    } else {
        Cgroup::check().err()
    };
    if let Some(error) = &impossible {
        eprintln!("no memory cgroup can be created here: {error}");
        let is_required = env::var_os("LOCKSTEP_REQUIRE_NODE").is_some();
        assert!(!is_required, "LOCKSTEP_REQUIRE_NODE is set");
    }
    let run = || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(the_webhook_stays_within_its_memory());
        Ok(())
    };
    let name = "no_request_brings_the_webhook_to_the_memory_limit_of_its_container";
    let trial = Trial::test(name, run).with_ignored_flag(impossible.is_some());
    libtest_mimic::run(&arguments, vec![trial]).exit_code()
}

async fn the_webhook_stays_within_its_memory() {
    let bytes = env::var("LOCKSTEP_MEMORY_BYTES").ok();
    let bytes = bytes.map_or(DEFAULT_BYTES, |text| text.parse().expect("a number"));
    let cgroup = Cgroup::create(CONTAINER_BYTES).expect("a cgroup");
    let webhook = Arc::new(Webhook::start(&cgroup).await);
    assert_eq!(SHAPES.len(), 41);
    println!(
        "| request | responses | largest response | valid reviews, tries | webhook | container |"
    );
    println!("|---|---|---|---|---|---|");
    let mut problems = Vec::new();
    for shape in SHAPES {
        problems.extend(attack(&cgroup, &webhook, shape, bytes).await);
        assert!(
            webhook.is_running(),
            "{}: the webhook has ended",
            shape.name
        );
    }
    assert_eq!(problems, Vec::<String>::new());
    webhook
        .terminate_with_unread_responses(shapes::long_denial(bytes))
        .await;
}

/// Sends one shape from several clients, and valid reviews beside it. Returns the differences from what the shape expects.
async fn attack(
    cgroup: &Cgroup,
    webhook: &Arc<Webhook>,
    shape: &Shape,
    bytes: usize,
) -> Vec<String> {
    let name = shape.name;
    webhook.reset_peak();
    cgroup.reset_peak();
    let mut problems = Vec::new();
    let mut is_true = |holds: bool, problem: String| {
        if !holds {
            problems.push(format!("{name}: {problem}"));
        }
    };
    if let Some(fits) = shape.fits {
        let response = webhook.send(&(shape.request)(fits + fits / 10)).await;
        is_true(
            response.status == 413,
            format!("a longer one: {}", response.start),
        );
    }
    let bytes = shape.fits.map_or(bytes, |fits| fits.min(bytes));
    let request = Arc::new((shape.request)(bytes));
    let stop = Arc::new(AtomicBool::new(false));
    let valid = tokio::spawn(send_valid(Arc::clone(webhook), Arc::clone(&stop)));
    let responses = match shape.reading {
        Reading::Whole => join_all((0..CLIENTS).map(|_| webhook.send(&request))).await,
        Reading::Never(connections) => webhook.send_unread(&request, connections).await,
    };
    stop.store(true, Ordering::Relaxed);
    let served = valid.await.expect("the valid client is served");
    let largest = responses.iter().map(|response| response.bytes).max();
    let largest = largest.unwrap_or_default();
    let statuses = statuses(&responses);
    let (process, container) = (webhook.peak_mib(), cgroup.peak_mib());
    println!("| {name} | {statuses} | {largest} | {served} | {process} MiB | {container} MiB |");
    is_true(cgroup.oom_kills() == 0, "a process was killed".to_owned());
    is_true(process <= PROCESS_MIB, format!("{process} MiB"));
    let is_bounded = largest <= RESPONSE_BYTES || shape.response == Expected::Converted;
    is_true(is_bounded, format!("{largest} bytes"));
    for response in &responses {
        let is_expected = response.is(shape.response) || response.status == 429;
        is_true(is_expected, format!("{:.300}", response.start));
    }
    let is_handled = responses.iter().any(|response| response.is(shape.response));
    is_true(is_handled, format!("no response is {:?}", shape.response));
    problems
}

/// Valid reviews that were answered.
struct Served {
    count: usize,
    /// Largest number of requests until one of them was answered.
    tries: usize,
}

impl Display for Served {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.count, self.tries)
    }
}

/// Sends valid reviews, each on a new connection, until one is answered after the attack. Like an API server, the client
/// repeats a review after status 429 in the time that the webhook names, and not for ever.
async fn send_valid(webhook: Arc<Webhook>, stop: Arc<AtomicBool>) -> Served {
    let request = shapes::valid();
    let mut served = Served { count: 0, tries: 0 };
    while served.count == 0 || !stop.load(Ordering::Relaxed) {
        let mut tries = 1;
        let mut response = webhook.send(&request).await;
        while response.status == 429 && tries < MAX_TRIES {
            assert!(
                response.start.contains("retry-after: 1\r\n"),
                "{}",
                response.start
            );
            tokio::time::sleep(Duration::from_secs(1)).await;
            response = webhook.send(&request).await;
            tries += 1;
        }
        assert!(response.is(Expected::Allowed), "{}", response.start);
        served.count += 1;
        served.tries = served.tries.max(tries);
    }
    served
}

/// Returns the status codes with their numbers.
fn statuses(responses: &[Response]) -> String {
    let mut codes: Vec<_> = responses.iter().map(|response| response.status).collect();
    codes.sort_unstable();
    let counts = codes.chunk_by(|a, b| a == b);
    let counts: Vec<_> = counts
        .map(|same| format!("{}×{}", same.len(), same[0]))
        .collect();
    counts.join(", ")
}
