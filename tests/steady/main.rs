//! No admission is refused or lost: two replicas behind a real Service, asked all the time, while their
//! keys and they themselves are exchanged and killed.
//!
//! Replicas need networks of their own, which only root makes; elsewhere these are counted as ignored.

mod bed;
mod load;
mod replicas;
mod rotations;

use control_plane::Network;
use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut arguments = Arguments::from_args();
    // Each has a cluster of its own, and its load is the machine's.
    arguments.test_threads.get_or_insert(1);
    let is_impossible = !arguments.list && !Network::is_possible();
    let trial = |name: &str, run: fn()| {
        let run = move || {
            run();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(is_impossible)
    };
    let trials = vec![
        trial("twenty_exchanges_of_the_ca", rotations::twenty),
        trial(
            "whoever_keeps_the_keys_is_killed_in_each_phase",
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
