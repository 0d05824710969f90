//! Children that have outlived their owner.
//!
//! The garbage collector deletes them, but for those whose owner went, and was made again under its name, while the
//! collector was cut off from the API server: it takes the one for the other, and they would stay for good.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kube::ResourceExt;
use kube::api::DynamicObject;
use tokio::time::interval;

use crate::children::{AppliedChanges, Place, controller_of};
use crate::cycle::Context;
use crate::kept::ObjectKey;

/// How often they are looked for. Those that are found twice are not the garbage collector's any more.
const EVERY: Duration = Duration::from_secs(30);

/// Looks for them.
pub(crate) struct OrphanCollector<'a, R> {
    pub(crate) cycle: &'a Context<R>,
    /// The owners that there are, by UID.
    pub(crate) owners: &'a Mutex<HashMap<String, ObjectKey>>,
}

impl<R> OrphanCollector<'_, R> {
    /// Deletes them, for as long as it is polled.
    pub(crate) async fn run(&self) {
        let mut ticks = interval(EVERY);
        let mut found = BTreeSet::new();
        loop {
            ticks.tick().await;
            found = self.scan(&found).await;
        }
    }

    /// Deletes those that have been found before, and gives all that there are.
    async fn scan(&self, before: &BTreeSet<String>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for owner in self.gone_owners() {
            for (place, child) in self.cycle.children.children_of(&owner) {
                let controller = controller_of(&child).filter(|controller| controller.uid == owner);
                // Those that others control or nobody does have been left behind.
                let Some(controller) = controller.filter(|_| self.is_own_child(&child)) else {
                    continue;
                };
                let uid = child.uid().unwrap_or_default();
                if before.contains(&uid)
                    && let Err(error) = self
                        .delete_children_of(&controller.name, &owner, &place, &child)
                        .await
                {
                    tracing::warn!(%error, child = place.2, "a child whose owner is gone cannot be deleted");
                }
                found.insert(uid);
            }
        }
        found
    }

    /// The owners of children that no watch knows of.
    fn gone_owners(&self) -> Vec<String> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let children = &self.cycle.children;
        children.unknown_owners(|uid| owners.contains_key(uid))
    }

    /// Whether anything is left to do for a child: to delete it, or to let it go.
    fn is_own_child(&self, child: &DynamicObject) -> bool {
        let ours = self.cycle.finalizer.as_ref();
        child.metadata.deletion_timestamp.is_none()
            || ours.is_some_and(|finalizer| child.finalizers().contains(finalizer))
    }

    async fn delete_children_of(
        &self,
        name: &str,
        owner: &str,
        place: &Place,
        child: &DynamicObject,
    ) -> Result<(), kube::Error> {
        let namespace = child.namespace().filter(|_| self.cycle.is_namespaced);
        let owner = self.cycle.owner(namespace.as_deref(), name, owner);
        let journal = AppliedChanges::default();
        let writer = self.cycle.writer(owner, &journal);
        if writer.live_owner().await?.is_some() {
            return Ok(());
        }
        writer.delete(place, child).await?;
        tracing::warn!(
            child = place.2,
            owner = name,
            "its owner is gone, and now it goes"
        );
        Ok(())
    }
}
