//! Removal of the objects of shards that a replica no longer holds.

use std::num::NonZeroU32;

use tokio::task::yield_now;

use super::*;
use crate::leader_election::Leadership;
use crate::sharding::held_shards::Shards;
use crate::sharding::scope::ShardScope;
use crate::watch::event_stream::{ObjectChange, WatchEvent};
use crate::watch::handler::{EventHandler, Watched};
use crate::watch::stores::Stores;

#[tokio::test]
async fn an_object_that_replaces_one_of_a_released_shard_stays() {
    let metrics = Metrics::register(&mut Registry::default());
    let shards = Shards::new(NonZeroU32::new(2).expect("two"));
    shards.acquire([(0, Leadership::always()), (1, Leadership::always())]);
    let context = Context {
        shards: Some(ShardScope::new(shards.clone())),
        ..context(&metrics)
    };
    let queue = Queue::new(metrics.queue("trap"), Duration::ZERO, None);
    let stores = Stores::of(&context);
    let handler = EventHandler::new(&context, &stores, &queue);
    let store = |name: &str, uid: &str| {
        let mut object = DynamicObject::new(name, &context.resource);
        object.metadata.uid = Some(uid.to_owned());
        let object = Arc::new(object);
        let compressed = stores.parents.compress(&object);
        let before = stores
            .parents
            .put(ObjectKey::of(&object), Arc::clone(&compressed));
        let before = before.map(|before| Arc::new(before.decompress()));
        let change = ObjectChange::of(before.as_ref(), Some(&object), Some(&compressed), true);
        let mut watch = handler.watch(Watched::Parents, &context.resource);
        handler.handle(&mut watch, WatchEvent::Changed(change));
    };
    shards.remove(1);
    let uids = |is_held: bool| {
        let shards = shards.clone();
        let all = (0..).map(|at| format!("uid-{at}"));
        all.filter(move |uid| shards.holds(uid) == is_held)
    };
    let names = ["a", "b"];
    for (name, uid) in names.iter().zip(uids(false)) {
        store(name, &uid);
    }

    let replaced = async {
        // The removal pauses after the first object.
        yield_now().await;
        let left = names.map(|name| ObjectKey::new("", name));
        let left = left
            .into_iter()
            .find(|key| stores.parents.get(key).is_some());
        let left = left.expect("one of two is removed");
        store(left.name(), &uids(true).next().expect("a UID"));
        left
    };
    let scope = context.shards.as_ref().expect("it has shards");
    let (left, ()) = tokio::join!(biased; replaced, handler.remove_released(scope));
    assert!(stores.parents.get(&left).is_some());
    let forgotten = context.reconciler.forgotten.lock();
    assert!(
        forgotten.iter().any(|uid| !shards.holds(uid)),
        "{forgotten:?}"
    );
    assert_eq!(queue.snapshot().ready, [left]);
}
