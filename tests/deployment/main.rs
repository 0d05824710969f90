//! Installation test on a real node: the shipped YAML runs the image of the program in Pods that kubelet and containerd
//! start, and the API server reaches them through kube-proxy. The trials share three nodes, each in a cluster of its own.
//!
//! A node needs root on Linux and the packages that `tests/envtest/apt/install` installs. Without them the trials are
//! reported as ignored, or as failed if `LOCKSTEP_REQUIRE_NODE` is set.

#[path = "../availability/load.rs"]
mod load;

mod certificates;
mod chart;
mod installation;
mod kustomize;
mod namespaced;
mod overlay;
mod rollout;
mod site;
mod stand_in;
mod upgrade;
mod vector;

use std::env;
use std::mem;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libtest_mimic::{Arguments, Trial};
use lockstep_envtest::Node;
use site::Site;
use tokio::runtime::Runtime;

/// Trials that run at the same time, each on a node of its own. A trial mostly waits for Pods to start and to end, so three
/// of them take hardly more time than one.
const NODES: usize = 3;

/// The nodes that no trial uses at the moment, and the runtime of their clients.
struct Nodes {
    idle: Mutex<Vec<Site>>,
    runtime: Runtime,
}

impl Nodes {
    /// Runs a trial on an idle node, or on a new one. A node whose trial panics is stopped.
    fn run(&self, trial: impl AsyncFnOnce(&Site)) {
        let idle = self.idle().pop();
        self.runtime.block_on(async {
            let site = match idle {
                Some(site) => site,
                None => Site::start().await,
            };
            site.clean().await;
            trial(&site).await;
            self.idle().push(site);
        });
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Site>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn main() -> ExitCode {
    if stand_in::is_this_process() {
        return vector_stand_in::run(env::args_os());
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(NODES);
    let impossible = if arguments.list {
        None
    } else {
        Node::check().err()
    };
    let is_required = env::var_os("LOCKSTEP_REQUIRE_NODE").is_some();
    if let Some(error) = &impossible {
        eprintln!("no node can run here: {error}");
        assert!(!is_required, "LOCKSTEP_REQUIRE_NODE is set");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let nodes = Arc::new(Nodes {
        idle: Mutex::default(),
        runtime,
    });
    macro_rules! trial {
        ($name:literal, $run:path) => {{
            let nodes = Arc::clone(&nodes);
            let run = move || {
                nodes.run($run);
                Ok(())
            };
            Trial::test($name, run).with_ignored_flag(impossible.is_some())
        }};
    }
    let trials = vec![
        trial!(
            "kustomize_installs_a_webhook_and_a_controller_that_work",
            kustomize::installs
        ),
        trial!(
            "no_answer_is_wrong_during_rolling_updates_and_after_the_loss_of_a_pod",
            rollout::under_load
        ),
        trial!(
            "vector_runs_what_tenants_apply_within_seconds",
            vector::runs
        ),
        trial!(
            "an_upgrade_and_its_rollback_keep_stored_objects_and_give_no_wrong_answer",
            upgrade::there_and_back
        ),
        trial!(
            "the_chart_is_installed_upgraded_rolled_back_and_uninstalled_without_loss",
            chart::release
        ),
        trial!(
            "another_issuer_fills_the_secret_of_the_certificate",
            certificates::from_another_issuer
        ),
        trial!("namespaced_manifests_run_with_roles_only", namespaced::runs),
    ];
    let conclusion = libtest_mimic::run(&arguments, trials);
    let idle = mem::take(&mut *nodes.idle());
    nodes.runtime.block_on(async { drop(idle) });
    conclusion.exit_code()
}
