//! Garbage collection of orphaned children.
//!
//! The garbage collector of Kubernetes deletes them, with one exception: if the owner was deleted and created
//! again under the same name while the collector had no connection to the API server, it takes the new owner for
//! the old one, and the children would stay for ever.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use kube::ResourceExt;
use kube::api::DynamicObject;
use parking_lot::Mutex;
use tokio::time::interval;

use crate::cache::object_key::ObjectKey;
use crate::children::controller_of;
use crate::children::key::ChildKey;
use crate::children::owner::is_of_kind;
use crate::controller::context::Context;

/// Interval of the scans. A child that two scans find is not left to the garbage collector any longer.
const EVERY: Duration = Duration::from_secs(30);

/// Collector of orphaned children.
pub(crate) struct OrphanCollector<'a, R> {
    pub(crate) context: &'a Context<R>,
    /// Existing owners, by UID.
    pub(crate) owners: &'a Mutex<HashMap<String, ObjectKey>>,
}

impl<R> OrphanCollector<'_, R> {
    /// Deletes orphaned children for as long as it is polled.
    pub(crate) async fn run(&self) {
        let mut ticks = interval(EVERY);
        let mut found = BTreeSet::new();
        loop {
            ticks.tick().await;
            found = self.scan(&found).await;
        }
    }

    /// Deletes the orphans that the previous scan found, and returns all that exist.
    async fn scan(&self, before: &BTreeSet<String>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for owner in self.gone_owners() {
            for (key, child) in self.context.written.children.children_of(&owner) {
                let controller = controller_of(&child).filter(|controller| {
                    controller.uid == owner && is_of_kind(controller, &self.context.resource)
                });
                // Children that have another controller or none were left behind on purpose. Those of another kind of the
                // same name belong to another program.
                let Some(controller) = controller.filter(|_| self.is_own_child(&child)) else {
                    continue;
                };
                let uid = child.uid().unwrap_or_default();
                let deletion = self.delete_children_of(&controller.name, &owner, &key, &child);
                if before.contains(&uid)
                    && let Some(Err(error)) = self.context.within_shard(&owner, deletion).await
                {
                    tracing::warn!(%error, child = key.name(), "an orphaned child cannot be deleted");
                }
                found.insert(uid);
            }
        }
        found
    }

    /// Returns the owners of cached children that no watch has delivered.
    fn gone_owners(&self) -> Vec<String> {
        let owners = self.owners.lock();
        let children = &self.context.written.children;
        children.unknown_owners(|uid| owners.contains_key(uid))
    }

    /// Returns true if a child still has to be deleted, or still has our finalizer.
    fn is_own_child(&self, child: &DynamicObject) -> bool {
        let ours = self.context.finalizer.as_ref();
        child.metadata.deletion_timestamp.is_none()
            || ours.is_some_and(|finalizer| child.finalizers().contains(finalizer))
    }

    async fn delete_children_of(
        &self,
        name: &str,
        owner: &str,
        key: &ChildKey,
        child: &DynamicObject,
    ) -> Result<(), kube::Error> {
        let namespace = child.namespace().filter(|_| self.context.is_namespaced);
        let owner = self.context.owner(namespace.as_deref(), name, owner);
        let mut writer = self.context.writer(owner);
        if writer.live_owner().await?.is_some() {
            return Ok(());
        }
        writer.delete(key, child).await?;
        tracing::warn!(
            child = key.name(),
            owner = name,
            "deleted an orphaned child: its owner no longer exists"
        );
        Ok(())
    }
}
