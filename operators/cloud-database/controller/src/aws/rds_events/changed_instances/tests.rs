use tokio::sync::oneshot::error::TryRecvError;
use tokio::time::advance;

use super::*;

const INTERVAL: Duration = Duration::from_secs(10);

fn instance(id: &str) -> InstanceKey {
    InstanceKey {
        account_id: "123456789012".to_owned(),
        region: "eu-central-1".to_owned(),
        id: id.to_owned(),
    }
}

fn owner(name: &str) -> Owner {
    Owner {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
    }
}

/// Returns the names of the objects that an event without a readable time concerns.
fn concerned(changed: &ChangedInstances, id: &str) -> Vec<String> {
    let found = changed.concerned(&instance(id), None, INTERVAL).into_iter();
    found.map(|(owner, _)| owner.name).collect()
}

#[tokio::test(start_paused = true)]
async fn all_events_of_an_instance_end_with_one_reconciliation_that_has_seen_it() {
    let changed = ChangedInstances::default();
    changed.set_owner(&instance("a"), &owner("orders"));
    assert_eq!(concerned(&changed, "a"), ["orders"]);
    assert!(changed.take(&owner("orders")).is_none(), "no event");
    let mut waiting = [(); 3].map(|()| changed.record(&owner("orders")));
    // The description fails.
    drop(changed.take(&owner("orders")).expect("a change"));
    assert!(
        waiting
            .iter_mut()
            .all(|it| it.try_recv() == Err(TryRecvError::Empty))
    );
    let mut change = changed.take(&owner("orders")).expect("a change");
    change.set_seen();
    // An event that arrives during the reconciliation needs another one.
    let mut later = changed.record(&owner("orders"));
    drop(change);
    assert!(waiting.iter_mut().all(|it| it.try_recv() == Ok(())));
    assert_eq!(later.try_recv(), Err(TryRecvError::Empty));
    assert!(changed.take(&owner("orders")).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_description_shows_a_change_if_it_was_requested_after_its_last_event() {
    let changed = ChangedInstances::default();
    changed.set_owner(&instance("a"), &owner("orders"));
    drop(changed.record(&owner("orders")));
    advance(Duration::from_secs(5)).await;
    drop(changed.record(&owner("orders")));
    advance(Duration::from_secs(2)).await;
    let change = changed.take(&owner("orders")).expect("a change");
    assert_eq!(change.max_age(), Duration::from_secs(2));
    // An attempt that fails does not make the change younger.
    drop(change);
    advance(Duration::from_secs(1)).await;
    let change = changed.take(&owner("orders")).expect("a change");
    assert_eq!(change.max_age(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn the_instance_of_a_deleted_object_is_forgotten() {
    let changed = ChangedInstances::default();
    changed.set_owner(&instance("a"), &owner("orders"));
    let mut seen = changed.record(&owner("orders"));
    changed.remove_owner(&owner("orders"));
    assert_eq!(seen.try_recv(), Err(TryRecvError::Closed));
    let mut seen = changed.record(&owner("orders"));
    assert_eq!(seen.try_recv(), Err(TryRecvError::Closed));
    assert!(concerned(&changed, "a").is_empty());
    // An object of the same name has another instance.
    changed.set_owner(&instance("b"), &owner("orders"));
    changed.set_owner(&instance("c"), &owner("orders"));
    assert!(concerned(&changed, "b").is_empty());
    assert_eq!(concerned(&changed, "c"), ["orders"]);
    let state = changed.lock();
    assert_eq!((state.owners.len(), state.instances.len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_event_concerns_all_objects_that_observe_the_instance() {
    let changed = ChangedInstances::default();
    changed.set_owner(&instance("a"), &owner("orders"));
    changed.set_owner(&instance("a"), &owner("reports"));
    assert_eq!(concerned(&changed, "a"), ["orders", "reports"]);
    changed.remove_owner(&owner("orders"));
    assert_eq!(concerned(&changed, "a"), ["reports"]);
}

#[tokio::test(start_paused = true)]
async fn those_who_have_stopped_waiting_do_not_accumulate() {
    let changed = ChangedInstances::default();
    changed.set_owner(&instance("a"), &owner("orders"));
    for _ in 0..10 {
        drop(changed.record(&owner("orders")));
    }
    assert_eq!(changed.lock().changes[&owner("orders")].waiting.len(), 1);
    let change = changed.take(&owner("orders"));
    assert!(change.is_some(), "the change counts");
}

#[tokio::test(start_paused = true)]
async fn an_event_before_the_first_reconciliation_of_the_object_counts_for_it() {
    let changed = ChangedInstances::default();
    assert!(concerned(&changed, "a").is_empty());
    advance(Duration::from_secs(7)).await;
    changed.set_owner(&instance("b"), &owner("users"));
    assert!(changed.take(&owner("users")).is_none());
    changed.set_owner(&instance("a"), &owner("orders"));
    let change = changed.take(&owner("orders")).expect("a change");
    assert_eq!(change.max_age(), Duration::from_secs(7));
    drop(change);
    changed.clear();
    changed.set_owner(&instance("a"), &owner("orders"));
    assert!(changed.take(&owner("orders")).is_none(), "of another term");
}

#[tokio::test(start_paused = true)]
async fn an_object_is_not_described_again_for_what_it_has_seen_nor_more_than_once_in_an_interval() {
    let changed = ChangedInstances::default();
    changed.set_owner(&instance("a"), &owner("orders"));
    let early = Timestamp::now() - SignedDuration::from_mins(5);
    let first = changed.concerned(&instance("a"), Some(early), INTERVAL);
    assert_eq!(first, [(owner("orders"), Instant::now())]);
    drop(changed.record(&owner("orders")));
    changed.take(&owner("orders")).expect("a change").set_seen();
    assert!(
        changed
            .concerned(&instance("a"), Some(early), INTERVAL)
            .is_empty()
    );
    advance(Duration::from_secs(3)).await;
    // The clock of AWS may be behind.
    for time in [None, Some(Timestamp::now() - SignedDuration::from_secs(30))] {
        let (_, at) = changed.concerned(&instance("a"), time, INTERVAL).remove(0);
        assert_eq!(at - Instant::now(), Duration::from_secs(7));
    }
    advance(Duration::from_mins(1)).await;
    let (_, at) = changed.concerned(&instance("a"), None, INTERVAL).remove(0);
    assert_eq!(at, Instant::now());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_never_reconciled_is_forgotten_but_not_the_change() {
    let changed = ChangedInstances::default();
    changed.set_owner(&instance("a"), &owner("orders"));
    drop(changed.record(&owner("orders")));
    changed.abandon(&owner("orders"));
    assert!(concerned(&changed, "a").is_empty());
    changed.set_owner(&instance("a"), &owner("orders"));
    assert!(changed.take(&owner("orders")).is_some());
}
