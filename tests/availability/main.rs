//! Availability test: no admission request is wrongly denied or lost. Two replicas behind a real Service get requests
//! all the time, while their certificates are rotated and the replicas are restarted and killed.
//!
//! Replicas need networks of their own, which only root can create; without root the trials are reported as ignored.

mod load;
mod replicas;
mod rotations;
mod testbed;

use libtest_mimic::{Arguments, Trial};
use lockstep_envtest::Network;

fn main() {
    let mut arguments = Arguments::from_args();
    // Each trial has a cluster of its own, and mostly waits for replicas to start and to end.
    arguments.test_threads.get_or_insert(2);
    let is_impossible = !arguments.list && !Network::is_possible();
    let trial = |name: &str, run: fn()| {
        let run = move || {
            run();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(is_impossible)
    };
    let trials = vec![
        trial("twenty_rotations_of_the_ca", rotations::twenty),
        trial(
            "the_rotating_controller_is_killed_in_each_phase",
            rotations::keepers_are_killed,
        ),
        trial("ten_rolling_restarts", replicas::ten_rolling_restarts),
        trial(
            "a_replica_is_killed_thirty_times",
            replicas::one_is_killed_thirty_times,
        ),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

/// Runs a trial.
pub fn block_on(trial: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(trial);
}
