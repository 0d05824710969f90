//! Which objects there are, so that one that is gone is noticed however it went.

use std::collections::HashSet;

use kube::api::DynamicObject;
use kube::runtime::watcher::Event;

/// The objects of a watch, by uid.
#[derive(Default)]
pub(crate) struct Known {
    alive: HashSet<String>,
    /// What is being listed anew, since the watch began again.
    listed: HashSet<String>,
}

impl Known {
    /// Takes note of an event and tells which objects are gone since: deleted before our eyes, or missing
    /// from a new list.
    pub(crate) fn gone(&mut self, event: &Event<DynamicObject>) -> Vec<String> {
        let uid = |object: &DynamicObject| object.metadata.uid.clone().unwrap_or_default();
        match event {
            Event::Apply(object) => {
                self.alive.insert(uid(object));
                Vec::new()
            }
            Event::Delete(object) => {
                let uid = uid(object);
                self.alive.remove(&uid);
                vec![uid]
            }
            Event::Init => {
                self.listed.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                self.listed.insert(uid(object));
                Vec::new()
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let before = std::mem::replace(&mut self.alive, listed);
                before.difference(&self.alive).cloned().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::api::ApiResource;
    use kube::core::GroupVersionKind;

    fn object(uid: &str) -> DynamicObject {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("g", "v1", "K"));
        let mut object = DynamicObject::new(uid, &resource);
        object.metadata.uid = Some(uid.to_owned());
        object
    }

    #[test]
    fn what_is_deleted_or_missing_from_a_new_list_is_gone() {
        let mut known = Known::default();
        for uid in ["a", "b", "c"] {
            assert!(known.gone(&Event::Apply(object(uid))).is_empty());
        }
        assert_eq!(known.gone(&Event::Delete(object("a"))), ["a"]);
        assert!(known.gone(&Event::Init).is_empty());
        assert!(known.gone(&Event::InitApply(object("b"))).is_empty());
        assert_eq!(known.gone(&Event::InitDone), ["c"]);
    }
}
