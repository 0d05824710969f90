//! Tags that identify the object of an instance.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::hash::Hasher;

use aws_sdk_rds::types::{DbInstance, Tag};
use fnv::FnvHasher;
use lockstep_cloud_database_api::CloudDatabase;
use serde::Deserialize;
use serde_json::Value;

/// Tag with the UID of the object that owns an instance.
pub(crate) const OWNER_TAG: &str = "database.example.com/uid";

/// Tag with `namespace/name` of that object.
pub(crate) const OBJECT_TAG: &str = "database.example.com/object";

/// Tag with the name of the cluster of that object, if the controller has one.
pub(crate) const CLUSTER_TAG: &str = "database.example.com/cluster";

/// Returns the tags that are enforced on an instance: those of the spec, and those with the names of its object and
/// cluster. The owner tag is not included, because an instance without it is never modified.
pub(crate) fn managed_tags(
    object: &CloudDatabase,
    cluster_name: Option<&str>,
) -> BTreeMap<String, String> {
    let mut tags = object.spec.tags.clone();
    tags.insert(OBJECT_TAG.to_owned(), object_name(object));
    if let Some(name) = cluster_name {
        tags.insert(CLUSTER_TAG.to_owned(), name.to_owned());
    }
    tags
}

/// Returns the tags that identify the owner of an instance.
pub(crate) fn of_owner(
    object: &CloudDatabase,
    cluster_name: Option<&str>,
) -> BTreeMap<String, String> {
    let uid = object.metadata.uid.clone().unwrap_or_default();
    let mut tags = BTreeMap::from([
        (OWNER_TAG.to_owned(), uid),
        (OBJECT_TAG.to_owned(), object_name(object)),
    ]);
    if let Some(name) = cluster_name {
        tags.insert(CLUSTER_TAG.to_owned(), name.to_owned());
    }
    tags
}

/// Returns the keys of the tags to remove from an instance that its object leaves. Without its owner tag, another object
/// can adopt it. An instance that was created here keeps the names of its object and cluster, so that a later object of
/// that name does not get an empty instance unnoticed.
pub(crate) fn to_release(instance: &DbInstance, is_adopted: bool) -> Vec<String> {
    let keys: &[&str] = if is_adopted {
        &[OWNER_TAG, OBJECT_TAG, CLUSTER_TAG]
    } else {
        &[OWNER_TAG]
    };
    let keys = keys.iter().filter(|key| value(instance, key).is_some());
    keys.map(|key| (*key).to_owned()).collect()
}

/// Returns the tags that an instance is created with.
pub(crate) fn at_creation(object: &CloudDatabase, cluster_name: Option<&str>) -> Vec<Tag> {
    let mut tags = object.spec.tags.clone();
    tags.extend(of_owner(object, cluster_name));
    tags.iter().map(|(key, value)| tag(key, value)).collect()
}

/// Returns the tags that the instance of a deleted object had, which may be invalid otherwise.
pub(crate) fn of_deleted(object: &Value, cluster_name: Option<&str>) -> BTreeMap<String, String> {
    let of_spec = BTreeMap::deserialize(&object["spec"]["tags"]);
    let mut tags: BTreeMap<String, String> = of_spec.unwrap_or_default();
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let name = joined_name(text("namespace"), text("name"));
    tags.insert(OBJECT_TAG.to_owned(), name);
    tags.insert(OWNER_TAG.to_owned(), text("uid").to_owned());
    if let Some(name) = cluster_name {
        tags.insert(CLUSTER_TAG.to_owned(), name.to_owned());
    }
    tags
}

/// Values of the tags that identify an object.
pub(crate) struct ObjectTags {
    uid: String,
    name: String,
}

impl ObjectTags {
    /// Returns the values for an object.
    pub(crate) fn of(object: &CloudDatabase) -> Self {
        Self {
            uid: object.metadata.uid.clone().unwrap_or_default(),
            name: object_name(object),
        }
    }

    /// Returns the values for an object that is being deleted, which may be invalid otherwise.
    pub(crate) fn of_deleted(object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        Self {
            uid: text("uid").to_owned(),
            name: joined_name(text("namespace"), text("name")),
        }
    }

    /// Returns true if the tags of an instance say that it belongs to another object, or did when it was released.
    pub(crate) fn contradict(&self, instance: &DbInstance) -> bool {
        let (tag, own) = match value(instance, OWNER_TAG) {
            Some(uid) => (Some(uid), &self.uid),
            None => (value(instance, OBJECT_TAG), &self.name),
        };
        tag.is_some_and(|tag| tag != own)
    }
}

pub(crate) fn tag(key: &str, value: &str) -> Tag {
    Tag::builder().key(key).value(value).build()
}

/// Returns true if an instance has the owner tag with this UID.
pub(crate) fn is_owned_by(instance: &DbInstance, uid: Option<&str>) -> bool {
    uid.is_some() && value(instance, OWNER_TAG) == uid
}

/// Returns true if an instance has an owner tag.
pub(crate) fn has_owner(instance: &DbInstance) -> bool {
    value(instance, OWNER_TAG).is_some()
}

/// Returns true if an instance can belong to an object of this cluster. Instances of another cluster are distinguished
/// only if both clusters have a name.
pub(crate) fn may_be_ours(instance: &DbInstance, cluster_name: Option<&str>) -> bool {
    has_owner(instance) && is_same_cluster(instance.tag_list(), cluster_name)
}

fn is_same_cluster(tags: &[Tag], cluster_name: Option<&str>) -> bool {
    match (value_of(tags, CLUSTER_TAG), cluster_name) {
        (Some(theirs), Some(ours)) => theirs == ours,
        _ => true,
    }
}

/// Object that the tags of an instance or a snapshot name. The UID of one that has released its instance is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaggedObject<'a> {
    pub(crate) uid: Option<&'a str>,
    /// `namespace/name`.
    pub(crate) name: Option<&'a str>,
    cluster: Option<&'a str>,
}

impl<'a> TaggedObject<'a> {
    fn of(tags: &'a [Tag]) -> Self {
        Self {
            uid: value_of(tags, OWNER_TAG),
            name: value_of(tags, OBJECT_TAG),
            cluster: value_of(tags, CLUSTER_TAG),
        }
    }

    /// Returns the name of the cluster of the object, if it is another one than that of the controller. A controller without a
    /// name is of none that has one. Objects of clusters without a name count as objects of this one.
    pub(crate) fn other_cluster(&self, own: Option<&str>) -> Option<&'a str> {
        self.cluster.filter(|cluster| own != Some(cluster))
    }
}

impl Display for TaggedObject<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        if let Some(name) = self.name {
            write!(f, "{name} with the ")?;
        }
        write!(f, "UID {}", self.uid.unwrap_or("none"))?;
        match self.cluster {
            Some(name) => write!(f, " in the cluster '{name}'"),
            None => Ok(()),
        }
    }
}

/// Returns the object that tags name, of this cluster or another one.
pub(crate) fn owner_of(tags: &[Tag]) -> Option<TaggedObject<'_>> {
    let owner = TaggedObject::of(tags);
    let is_named = [owner.uid, owner.name, owner.cluster]
        .iter()
        .any(Option::is_some);
    is_named.then_some(owner)
}

/// Returns a description of the owner of an instance, from its tags.
pub(crate) fn owner(instance: &DbInstance) -> String {
    named_object(instance.tag_list())
}

/// Returns those of some tags that name an object.
pub(crate) fn naming_an_object(tags: Option<Vec<Tag>>) -> Vec<Tag> {
    let tags = tags.into_iter().flatten();
    tags.filter(|tag| {
        tag.key()
            .is_some_and(|key| [OWNER_TAG, OBJECT_TAG, CLUSTER_TAG].contains(&key))
    })
    .collect()
}

/// Returns a description of the object that tags name.
pub(crate) fn named_object(tags: &[Tag]) -> String {
    TaggedObject::of(tags).to_string()
}

/// Returns true if these are the tags of something that was created for an earlier object with the same namespace and name: an
/// object that is deleted and applied again, for example from a backup, gets another UID. Those of another cluster are
/// distinguished only if both clusters have a name.
pub(crate) fn are_of_earlier_object(
    tags: &[Tag],
    object: &CloudDatabase,
    cluster_name: Option<&str>,
) -> bool {
    let uid = object.metadata.uid.as_deref();
    let is_owned = uid.is_some() && value_of(tags, OWNER_TAG) == uid;
    is_same_cluster(tags, cluster_name)
        && value_of(tags, OBJECT_TAG) == Some(&object_name(object))
        && !is_owned
}

fn object_name(object: &CloudDatabase) -> String {
    let metadata = &object.metadata;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let name = metadata.name.as_deref().unwrap_or_default();
    joined_name(namespace, name)
}

/// Maximum length of the value of a tag in RDS, in characters.
const LONGEST_VALUE: usize = 256;

/// Number of characters of a hash in a name.
const HASH: usize = 16;

/// Returns `namespace/name`, with a hash in place of the end of a name that is too long for a tag.
fn joined_name(namespace: &str, name: &str) -> String {
    let full = format!("{namespace}/{name}");
    if full.len() <= LONGEST_VALUE {
        return full;
    }
    let mut hash = FnvHasher::default();
    hash.write(full.as_bytes());
    let hash = format!("{:0HASH$x}", hash.finish());
    // Names of objects are ASCII.
    let beginning = full.get(..LONGEST_VALUE - 1 - HASH).unwrap_or(namespace);
    format!("{beginning}-{hash}")
}

fn value<'a>(instance: &'a DbInstance, key: &str) -> Option<&'a str> {
    value_of(instance.tag_list(), key)
}

fn value_of<'a>(tags: &'a [Tag], key: &str) -> Option<&'a str> {
    tags.iter().find(|tag| tag.key() == Some(key))?.value()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(uid: &str) -> CloudDatabase {
        let object = json!({
            "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabase",
            "metadata": {"name": "orders", "namespace": "shop", "uid": uid},
            "spec": {
                "engine": "postgres", "instanceClass": "db.t4g.micro", "storage": {"sizeGib": 20},
                "credentials": {"username": "app", "secretName": "s"},
            },
        });
        serde_json::from_value(object).expect("a database")
    }

    fn instance(object: &CloudDatabase, cluster_name: Option<&str>) -> DbInstance {
        let tags = at_creation(object, cluster_name);
        DbInstance::builder().set_tag_list(Some(tags)).build()
    }

    #[test]
    fn the_tags_of_an_instance_identify_its_object_and_cluster() {
        let first = instance(&object("1"), Some("blue"));
        assert!(is_owned_by(&first, Some("1")));
        assert!(!is_owned_by(&first, Some("2")));
        assert!(!is_owned_by(&DbInstance::builder().build(), None));
        assert_eq!(value(&first, OBJECT_TAG), Some("shop/orders"));
        assert_eq!(value(&first, CLUSTER_TAG), Some("blue"));
        assert_eq!(value(&instance(&object("1"), None), CLUSTER_TAG), None);
    }

    #[test]
    fn tags_of_another_object_contradict_and_missing_ones_do_not() {
        let ours = ObjectTags::of(&object("1"));
        let mut other = object("2");
        other.metadata.name = Some("billing".to_owned());
        let released = |object: &CloudDatabase| {
            let tags = at_creation(object, None).into_iter();
            let tags = tags.filter(|tag| tag.key() != Some(OWNER_TAG));
            DbInstance::builder()
                .set_tag_list(Some(tags.collect()))
                .build()
        };
        assert!(!ours.contradict(&instance(&object("1"), None)));
        assert!(!ours.contradict(&DbInstance::builder().build()));
        assert!(!ours.contradict(&released(&object("1"))));
        assert!(ours.contradict(&instance(&object("2"), None)));
        assert!(ours.contradict(&released(&other)));
    }

    #[test]
    fn an_instance_is_released_by_the_removal_of_its_owner() {
        let keys = |is_adopted: bool| {
            let instance = instance(&object("1"), Some("blue"));
            to_release(&instance, is_adopted).len()
        };
        assert_eq!((keys(true), keys(false)), (3, 1));
        assert!(to_release(&DbInstance::builder().build(), true).is_empty());
    }

    #[test]
    fn a_name_that_is_too_long_for_a_tag_ends_with_a_hash() {
        let name = |last: &str| joined_name(&"n".repeat(63), &format!("{}{last}", "o".repeat(252)));
        assert_eq!(joined_name("shop", "orders"), "shop/orders");
        assert_eq!(name("a").len(), LONGEST_VALUE);
        assert_ne!(name("a"), name("b"));
        assert_eq!(name("a"), name("a"));
    }

    #[test]
    fn an_earlier_object_has_the_same_name_and_another_uid() {
        let first = at_creation(&object("1"), None);
        assert!(are_of_earlier_object(&first, &object("2"), None));
        assert!(!are_of_earlier_object(&first, &object("1"), None));
        let mut billing = object("2");
        billing.metadata.name = Some("billing".to_owned());
        assert!(!are_of_earlier_object(&first, &billing, None));
    }

    #[test]
    fn an_object_is_of_another_cluster_if_its_tags_name_another_one() {
        let other = |theirs: Option<&str>, ours: Option<&str>| {
            let tags = at_creation(&object("1"), theirs);
            let owner = owner_of(&tags).expect("an owner");
            owner.other_cluster(ours).map(str::to_owned)
        };
        assert_eq!(other(Some("blue"), Some("blue")), None);
        assert_eq!(other(None, Some("green")), None);
        assert_eq!(other(None, None), None);
        for ours in [Some("green"), None] {
            assert_eq!(other(Some("blue"), ours).as_deref(), Some("blue"));
        }
        assert_eq!(owner_of(&[tag("team", "shop")]), None);
    }

    #[test]
    fn clusters_are_distinguished_only_if_both_have_a_name() {
        let is_earlier = |theirs: Option<&str>, ours: Option<&str>| {
            are_of_earlier_object(&at_creation(&object("1"), theirs), &object("2"), ours)
        };
        assert!(is_earlier(Some("blue"), Some("blue")));
        assert!(!is_earlier(Some("blue"), Some("green")));
        assert!(is_earlier(None, Some("green")));
        assert!(is_earlier(Some("blue"), None));
    }
}
