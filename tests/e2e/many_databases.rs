//! Databases that are created together.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::stream::iter;
use futures::{StreamExt, TryStreamExt};
use kube::ResourceExt;
use kube::api::{DynamicObject, PostParams};
use kube::runtime::{WatchStreamExt, watcher};

use crate::env::{TestEnv, condition, database};

/// Requests to the API server at the same time.
const CLIENTS: usize = 16;

impl TestEnv {
    /// Creates the databases `orders-0`, `orders-1` and so on.
    pub async fn create_databases(&self, count: usize) {
        self.raise_quota();
        let databases = self.databases();
        let created = iter(0..count).map(|number| {
            let databases = databases.clone();
            async move {
                let object = serde_json::from_value(database(&format!("orders-{number}")));
                let object: DynamicObject = object.expect("an object");
                let created = databases.create(&PostParams::default(), &object).await;
                created.expect("stored");
            }
        });
        created.buffer_unordered(CLIENTS).collect::<()>().await;
    }

    /// Waits until this number of databases is in the desired state. Each change is read once, by a watch.
    pub async fn databases_are_synced(&self, count: usize, deadline: Duration) {
        let changes = watcher(self.databases(), watcher::Config::default());
        let mut changes = Box::pin(changes.default_backoff().applied_objects());
        let mut synced = BTreeSet::new();
        let all = async {
            while synced.len() < count {
                let Ok(object) = changes.try_next().await else {
                    continue;
                };
                let object = object.expect("a watch does not end");
                let is = |type_| condition(&object, type_).is_some_and(|it| it.status == "True");
                if is("Ready") && is("Synced") {
                    synced.insert(object.name_any());
                } else {
                    synced.remove(&object.name_any());
                }
            }
        };
        if tokio::time::timeout(deadline, all).await.is_err() {
            self.fail(&format!("{} of {count} are synced", synced.len()));
        }
    }
}
