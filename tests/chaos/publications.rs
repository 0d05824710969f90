//! Every configuration that is published during the test.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Arc, Mutex};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::task::JoinHandle;

use crate::env::TestEnv;
use crate::vector_state::OWNED;

/// Keys of the configurations in their Secrets.
const KEYS: [&str; 2] = ["agent.json", "config.json"];

/// Watch of the Secrets with configurations.
pub struct Publications {
    seen: Arc<Mutex<BTreeSet<Vec<u8>>>>,
    watch: JoinHandle<()>,
}

impl Publications {
    /// Starts to watch, without faults.
    pub fn watch(client: Client) -> Self {
        let seen = Arc::<Mutex<BTreeSet<_>>>::default();
        let secrets: Api<Secret> = Api::all(client);
        let config = watcher::Config::default().labels(OWNED);
        let objects = watcher(secrets, config).default_backoff().applied_objects();
        let into = Arc::clone(&seen);
        let watch = objects
            .into_stream()
            .filter_map(async |secret| secret.ok()?.data)
            .for_each(move |data| {
                let mut seen = into.lock().expect("no thread panics");
                let contents = KEYS.iter().filter_map(|key| data.get(*key));
                seen.extend(contents.map(|content| content.0.clone()));
                std::future::ready(())
            });
        Self {
            seen,
            watch: tokio::spawn(watch),
        }
    }

    /// Ends the watch, and checks that Vector starts with each configuration.
    pub fn all_start(self, env: &TestEnv) {
        self.watch.abort();
        let seen = self.seen.lock().expect("no thread panics");
        println!("{} configurations of Vector were published", seen.len());
        let file = env.cluster.directory().join("published.json");
        for configuration in &*seen {
            std::fs::write(&file, configuration).expect("a file");
            let validated = Command::new(env!("CARGO_BIN_EXE_lockstep"))
                .args(["vector", "validate", "--start"])
                .arg(&file)
                .output()
                .expect("the program runs");
            if !validated.status.success() {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                env.fail(&format!(
                    "Vector does not start with {}: {}{}",
                    text(configuration),
                    text(&validated.stdout),
                    text(&validated.stderr)
                ));
            }
        }
    }
}
