//! Part of a quota that an instance takes.

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::Quota;
use serde_json::Value;

/// Part of a quota that an instance takes, or several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) instances: u64,
    pub(crate) storage_gib: u64,
    pub(crate) provisioned_iops: u64,
}

/// Amount of one resource, beside the limit of a quota.
pub(crate) struct Amount {
    /// Key in the policy.
    pub(crate) key: &'static str,
    /// Unit for people.
    pub(crate) unit: &'static str,
    pub(crate) used: u64,
    pub(crate) limit: u64,
}

impl Usage {
    /// Returns what the instance of an object takes that matches its spec. Autoscaling may increase the storage up to its maximum.
    pub(crate) fn of_object(object: &Value) -> Self {
        let storage = &object["spec"]["storage"];
        let number = |field: &str| storage[field].as_u64().unwrap_or_default();
        Self {
            instances: 1,
            storage_gib: number("sizeGib").max(number("maxSizeGib")),
            provisioned_iops: number("iops"),
        }
    }

    /// Returns what the instance of a stored object takes, or may take, as its status says: what RDS has accepted, or the spec of
    /// one that is being created. None without an instance.
    pub(crate) fn of_status(object: &Value) -> Option<Self> {
        let status = &object["status"];
        if !status["region"].is_string() {
            return None;
        }
        let spec = Self::of_object(object);
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let size = number(&status["allocatedStorageGib"]);
        if size == 0 {
            return Some(spec);
        }
        let applied = &status["appliedStorage"];
        Some(Self {
            instances: 1,
            storage_gib: size
                .max(number(&status["acceptedStorageGib"]))
                .max(number(&applied["maxSizeGib"])),
            provisioned_iops: number(&applied["iops"]),
        })
    }

    /// Returns what an instance takes as RDS describes it, with what RDS has accepted and not applied yet. The spec of its object
    /// may demand a part of it.
    pub(crate) fn of_instance(instance: &DbInstance, demanded: Self) -> Self {
        let pending = instance.pending_modified_values();
        let size = instance.allocated_storage();
        let size = size.max(pending.and_then(|pending| pending.allocated_storage()));
        let iops = instance
            .iops()
            .max(pending.and_then(|pending| pending.iops()));
        let found = Self::of_storage(
            size.max(instance.max_allocated_storage()),
            instance.storage_type(),
            iops,
        );
        let number = |value: Option<i32>| value.and_then(|value| u64::try_from(value).ok());
        let demanded = number(iops)
            .unwrap_or_default()
            .min(demanded.provisioned_iops);
        Self {
            provisioned_iops: found.provisioned_iops.max(demanded),
            ..found
        }
    }

    /// Returns what an instance takes that has this storage, at least.
    pub(crate) fn of_storage(
        size_gib: Option<i32>,
        storage_type: Option<&str>,
        iops: Option<i32>,
    ) -> Self {
        let number = |value: Option<i32>| value.and_then(|value| u64::try_from(value).ok());
        // RDS also reports IOPS that come with the size, which no spec has demanded.
        let is_provisioned = storage_type.is_some_and(|type_| type_.starts_with("io"));
        Self {
            instances: 1,
            storage_gib: number(size_gib).unwrap_or_default(),
            provisioned_iops: number(iops.filter(|_| is_provisioned)).unwrap_or_default(),
        }
    }

    /// Returns the larger amount of each resource.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            instances: self.instances.max(other.instances),
            storage_gib: self.storage_gib.max(other.storage_gib),
            provisioned_iops: self.provisioned_iops.max(other.provisioned_iops),
        }
    }

    /// Returns the sum of each resource.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            instances: self.instances.saturating_add(other.instances),
            storage_gib: self.storage_gib.saturating_add(other.storage_gib),
            provisioned_iops: self.provisioned_iops.saturating_add(other.provisioned_iops),
        }
    }

    /// Returns the sum without a part of it.
    pub(crate) fn minus(self, other: Self) -> Self {
        Self {
            instances: self.instances.saturating_sub(other.instances),
            storage_gib: self.storage_gib.saturating_sub(other.storage_gib),
            provisioned_iops: self.provisioned_iops.saturating_sub(other.provisioned_iops),
        }
    }

    /// Returns true if none of the amounts is larger than the other one.
    pub(crate) fn is_within(self, other: Self) -> bool {
        self.max(other) == other
    }

    /// Returns the amount of each resource beside the limit.
    pub(crate) fn beside(self, quota: Quota) -> [Amount; 3] {
        let amount = |key, unit, used, limit| Amount {
            key,
            unit,
            used,
            limit,
        };
        [
            amount("instances", "instances", self.instances, quota.instances),
            amount(
                "storageGib",
                "GiB of storage",
                self.storage_gib,
                quota.storage_gib,
            ),
            amount(
                "provisionedIops",
                "provisioned IOPS",
                self.provisioned_iops,
                quota.provisioned_iops,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn storage_counts_up_to_the_maximum_of_autoscaling_and_iops_if_they_are_provisioned() {
        let object =
            json!({"spec": {"storage": {"sizeGib": 100, "maxSizeGib": 500, "iops": 3_000}}});
        let expected = Usage {
            instances: 1,
            storage_gib: 500,
            provisioned_iops: 3_000,
        };
        assert_eq!(Usage::of_object(&object), expected);
        let instance = |storage_type: &str, demanded: Usage| {
            let instance = DbInstance::builder().allocated_storage(500).iops(3_000);
            let instance = instance.storage_type(storage_type).build();
            Usage::of_instance(&instance, demanded)
        };
        let none = Usage::default();
        assert_eq!(instance("io1", none), expected);
        assert_eq!(instance("gp3", none).provisioned_iops, 0);
        assert_eq!(instance("gp3", expected), expected);
        assert!(instance("gp3", none).is_within(expected));
        assert!(!expected.is_within(instance("gp3", none)));
    }

    #[test]
    fn a_spec_that_was_not_granted_counts_only_for_an_instance_that_is_being_created() {
        let object = |status: Value| {
            let spec = json!({"storage": {"sizeGib": 60_000, "iops": 9_000}});
            Usage::of_status(&json!({"spec": spec, "status": status}))
        };
        assert_eq!(object(json!({})), None);
        let created = object(json!({"region": "eu-central-1"})).expect("an instance");
        assert_eq!(
            (created.storage_gib, created.provisioned_iops),
            (60_000, 9_000)
        );
        let running = object(json!({
            "region": "eu-central-1", "allocatedStorageGib": 20, "acceptedStorageGib": 40,
            "appliedStorage": {"maxSizeGib": 30},
        }));
        let running = running.expect("an instance");
        assert_eq!((running.storage_gib, running.provisioned_iops), (40, 0));
    }
}
