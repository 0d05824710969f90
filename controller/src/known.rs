//! Which objects are gone, so that one is noticed however it went.

use std::collections::HashSet;

use kube::api::DynamicObject;
use kube::runtime::watcher::Event;

/// What stood when the watch had to begin again; the store forgets it without a word.
#[derive(Default)]
pub(crate) struct Known {
    before: HashSet<String>,
}

impl Known {
    /// Tells which objects are gone since the last event: deleted before our eyes, or missing from a new
    /// list. `stored` gives the uids of the store, which has taken the event in.
    pub(crate) fn gone(
        &mut self,
        event: &Event<DynamicObject>,
        stored: impl FnOnce() -> HashSet<String>,
    ) -> Vec<String> {
        match event {
            Event::Delete(object) => object.metadata.uid.clone().into_iter().collect(),
            Event::Init => {
                self.before = stored();
                Vec::new()
            }
            Event::InitDone => {
                let before = std::mem::take(&mut self.before);
                before.difference(&stored()).cloned().collect()
            }
            Event::Apply(_) | Event::InitApply(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::api::ApiResource;
    use kube::core::GroupVersionKind;
    use kube::runtime::reflector::store;

    fn object(uid: &str) -> DynamicObject {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("g", "v1", "K"));
        let mut object = DynamicObject::new(uid, &resource);
        object.metadata.uid = Some(uid.to_owned());
        object
    }

    #[test]
    fn what_is_deleted_or_missing_from_a_new_list_is_gone() {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("g", "v1", "K"));
        let mut writer = store::Writer::new(resource);
        let reader = writer.as_reader();
        let mut known = Known::default();
        let mut gone = |event: Event<DynamicObject>| {
            writer.apply_watcher_event(&event);
            known.gone(&event, || crate::run::uids(&reader))
        };
        for uid in ["a", "b", "c"] {
            assert!(gone(Event::Apply(object(uid))).is_empty());
        }
        assert_eq!(gone(Event::Delete(object("a"))), ["a"]);
        assert!(gone(Event::Init).is_empty());
        assert!(gone(Event::InitApply(object("b"))).is_empty());
        assert_eq!(gone(Event::InitDone), ["c"]);
    }
}
