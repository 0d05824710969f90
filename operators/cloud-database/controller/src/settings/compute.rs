//! Machines of an instance.

use aws_sdk_rds::types::{DbInstance, PendingModifiedValues};
use lockstep_cloud_database_api::CloudDatabaseSpec;

use crate::aws::rds_client::request::Request;
use crate::settings::setting::{Compared, NewInstance, Setting};

pub(crate) struct InstanceClass;

impl Setting for InstanceClass {
    type Value = String;
    const FIELD: &'static str = "instanceClass";

    fn desired(spec: &CloudDatabaseSpec) -> Option<String> {
        Some(spec.instance_class.clone())
    }

    fn actual(instance: &DbInstance) -> Option<String> {
        Some(instance.db_instance_class().unwrap_or_default().to_owned())
    }

    fn pending(pending: &PendingModifiedValues) -> Option<String> {
        pending.db_instance_class().map(String::from)
    }

    fn put(value: &String, request: Request) -> Request {
        request.db_instance_class(value)
    }
}

pub(crate) struct MultiAz;

impl Setting for MultiAz {
    type Value = bool;
    const FIELD: &'static str = "multiAz";

    fn desired(spec: &CloudDatabaseSpec) -> Option<bool> {
        spec.multi_az
    }

    fn actual(instance: &DbInstance) -> Option<bool> {
        Some(instance.multi_az().unwrap_or_default())
    }

    fn pending(pending: &PendingModifiedValues) -> Option<bool> {
        pending.multi_az()
    }

    fn put(value: &bool, request: Request) -> Request {
        request.multi_az(*value)
    }

    fn at_creation(spec: &CloudDatabaseSpec, _: NewInstance) -> Option<bool> {
        Some(Self::desired(spec).unwrap_or_default())
    }
}

pub(super) struct DedicatedLogVolume;

impl Setting for DedicatedLogVolume {
    type Value = bool;
    const FIELD: &'static str = "dedicatedLogVolume";

    fn desired(spec: &CloudDatabaseSpec) -> Option<bool> {
        spec.dedicated_log_volume
    }

    fn actual(instance: &DbInstance) -> Option<bool> {
        Some(instance.dedicated_log_volume().unwrap_or_default())
    }

    fn pending(pending: &PendingModifiedValues) -> Option<bool> {
        pending.dedicated_log_volume()
    }

    /// It waits for a restart at any time.
    fn change(compared: &Compared<'_>) -> Option<bool> {
        let pending = compared.instance.pending_modified_values();
        let expected = pending.and_then(Self::pending);
        let expected = expected.or(Self::actual(compared.instance));
        Self::desired(compared.spec).filter(|wanted| expected != Some(*wanted))
    }

    fn put(value: &bool, request: Request) -> Request {
        request.dedicated_log_volume(*value)
    }

    fn at_creation(spec: &CloudDatabaseSpec, new: NewInstance) -> Option<bool> {
        Self::desired(spec).filter(|_| new.has_version_of(spec))
    }

    /// A change that waits for a restart is reported otherwise.
    fn is_of_spec(_: &CloudDatabaseSpec) -> bool {
        false
    }
}
