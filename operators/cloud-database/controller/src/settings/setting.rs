//! Row of the table of settings, and a change of one.

use std::any::Any;
use std::sync::Arc;

use aws_sdk_rds::types::{DbInstance, PendingModifiedValues};
use lockstep_cloud_database_api::CloudDatabaseSpec;

use crate::aws::rds_client::request::Request;
use crate::instance::record::Record;

/// Call that changes a setting, separately from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Network access: an instance must not remain public because of another setting.
    Access,
    /// Storage, which other statuses of the instance accept.
    Storage,
    /// Everything else, in one call, so that the instance restarts once.
    Rest,
    /// Tags, which have calls of their own.
    Tags,
}

/// New instance, by the origin of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewInstance {
    /// Without data.
    Empty,
    /// From a snapshot, or with an earlier state of another instance.
    Restored,
    /// Replica of another instance.
    Replica,
}

impl NewInstance {
    /// Returns true if a new instance runs the engine version of the spec. That of a backup is upgraded afterwards, and may accept
    /// neither groups nor settings of another major version.
    pub(crate) fn has_version_of(self, spec: &CloudDatabaseSpec) -> bool {
        self == Self::Empty || spec.allow_major_version_upgrade.is_none()
    }
}

/// Instance beside the spec of its object.
pub(crate) struct Compared<'a> {
    pub(crate) spec: &'a CloudDatabaseSpec,
    pub(crate) instance: &'a DbInstance,
    /// If true, changes are to wait for the maintenance window.
    pub(crate) waits: bool,
    /// Requests of earlier reconciliations.
    pub(crate) record: &'a Record,
}

/// Setting of an instance that RDS can change.
pub(crate) trait Setting: Sync + 'static {
    /// Value of the setting.
    type Value: Clone + PartialEq + Send + Sync + 'static;

    /// Field of the spec.
    const FIELD: &'static str;

    /// Call that changes it.
    const CALL: Call = Call::Rest;

    /// Text about an instance that was created without the secure default that the spec demands. If there is one, the setting
    /// is enforced only once the instance has matched the spec: a change that no user requested could disconnect its clients.
    const LEFT_ALONE: Option<fn(&Self::Value) -> String> = None;

    /// Returns the value that the spec demands, or none if it leaves the setting open.
    fn desired(spec: &CloudDatabaseSpec) -> Option<Self::Value>;

    /// Returns the value that is in effect. One that is unknown, or that cannot be described as a value, is not changed but by a
    /// `change` of its own.
    fn actual(_instance: &DbInstance) -> Option<Self::Value> {
        None
    }

    /// Returns the value that RDS has accepted and not applied yet.
    fn pending(_pending: &PendingModifiedValues) -> Option<Self::Value> {
        None
    }

    /// Returns the value to request: that of the spec, if it is neither in effect nor accepted in the way that the spec demands,
    /// or another value has been accepted.
    fn change(compared: &Compared<'_>) -> Option<Self::Value> {
        other_value::<Self>(compared)
    }

    /// Returns the field with which a change to this value is requested: RDS rejects a call as a whole, so one setting that it
    /// rejects must not keep others from being applied, but for those that need each other.
    fn goes_with(_value: &Self::Value, _all: &[Change]) -> &'static str {
        Self::FIELD
    }

    /// Returns the request with a change to this value.
    fn put(value: &Self::Value, request: Request) -> Request;

    /// Returns the value with which a new instance is created, or none if RDS decides.
    fn at_creation(spec: &CloudDatabaseSpec, _new: NewInstance) -> Option<Self::Value> {
        Self::desired(spec)
    }

    /// Returns true if RDS has accepted a change and not applied it yet.
    fn is_pending(instance: &DbInstance) -> bool {
        let pending = instance.pending_modified_values();
        pending.and_then(Self::pending).is_some()
    }

    /// Returns true if a change that is pending is one of the spec, and is to be reported as such.
    fn is_of_spec(spec: &CloudDatabaseSpec) -> bool {
        Self::desired(spec).is_some()
    }
}

/// Returns the value of the spec, if it is neither in effect nor accepted as the spec demands.
pub(super) fn other_value<S: Setting + ?Sized>(compared: &Compared<'_>) -> Option<S::Value> {
    let wanted = S::desired(compared.spec)?;
    let pending = compared.instance.pending_modified_values();
    let differs = match pending.and_then(S::pending) {
        Some(pending) if pending == wanted => !compared.waits,
        Some(_) => true,
        None => S::actual(compared.instance).is_some_and(|actual| actual != wanted),
    };
    differs.then_some(wanted)
}

/// Any setting.
pub(crate) trait Row: Sync {
    fn field(&self) -> &'static str;
    /// Returns the change that the spec demands.
    fn change(&self, compared: &Compared<'_>) -> Option<Change>;
    fn is_pending(&self, instance: &DbInstance) -> bool;
    fn is_of_spec(&self, spec: &CloudDatabaseSpec) -> bool;
    /// Returns the request for a new instance with this setting.
    fn put_at_creation(
        &self,
        spec: &CloudDatabaseSpec,
        new: NewInstance,
        request: Request,
    ) -> Request;
    /// Returns true if the setting has a secure default, which some instances were created without.
    fn has_secure_default(&self) -> bool;
    /// Returns true if the instance has what the spec demands.
    fn agrees(&self, spec: &CloudDatabaseSpec, instance: &DbInstance) -> bool;
    /// Returns the text about an instance that has another value and was created without the secure default.
    fn left_alone(&self, spec: &CloudDatabaseSpec, instance: &DbInstance) -> Option<String>;
}

impl<S: Setting> Row for S {
    fn field(&self) -> &'static str {
        S::FIELD
    }

    fn change(&self, compared: &Compared<'_>) -> Option<Change> {
        S::change(compared).map(Change::new::<S>)
    }

    fn is_pending(&self, instance: &DbInstance) -> bool {
        S::is_pending(instance)
    }

    fn is_of_spec(&self, spec: &CloudDatabaseSpec) -> bool {
        S::is_of_spec(spec)
    }

    fn put_at_creation(
        &self,
        spec: &CloudDatabaseSpec,
        new: NewInstance,
        request: Request,
    ) -> Request {
        match S::at_creation(spec, new) {
            Some(value) => S::put(&value, request),
            None => request,
        }
    }

    fn has_secure_default(&self) -> bool {
        S::LEFT_ALONE.is_some()
    }

    fn agrees(&self, spec: &CloudDatabaseSpec, instance: &DbInstance) -> bool {
        S::actual(instance).is_some_and(|actual| Some(actual) == S::desired(spec))
    }

    fn left_alone(&self, spec: &CloudDatabaseSpec, instance: &DbInstance) -> Option<String> {
        let text = S::LEFT_ALONE?;
        let wanted = S::desired(spec)?;
        let actual = S::actual(instance)?;
        (actual != wanted).then(|| text(&wanted))
    }
}

/// Change of a setting to a value.
#[derive(Clone)]
pub(crate) struct Change {
    pub(crate) field: &'static str,
    pub(crate) call: Call,
    value: Arc<dyn Value>,
}

/// Value of any setting.
trait Value: Any + Send + Sync {
    fn put(&self, request: Request) -> Request;
    fn goes_with(&self, all: &[Change]) -> &'static str;
    fn is(&self, other: &dyn Any) -> bool;
}

/// Value of a setting.
struct ValueOf<S: Setting>(S::Value);

impl<S: Setting> Value for ValueOf<S> {
    fn put(&self, request: Request) -> Request {
        S::put(&self.0, request)
    }

    fn goes_with(&self, all: &[Change]) -> &'static str {
        S::goes_with(&self.0, all)
    }

    fn is(&self, other: &dyn Any) -> bool {
        other
            .downcast_ref::<Self>()
            .is_some_and(|other| other.0 == self.0)
    }
}

impl Change {
    pub(crate) fn new<S: Setting>(value: S::Value) -> Self {
        Self {
            field: S::FIELD,
            call: S::CALL,
            value: Arc::new(ValueOf::<S>(value)),
        }
    }

    /// Returns the value, if it is one of this setting.
    pub(crate) fn value<S: Setting>(&self) -> Option<&S::Value> {
        let value: &dyn Any = &*self.value;
        value.downcast_ref::<ValueOf<S>>().map(|typed| &typed.0)
    }

    /// Returns the request with this change.
    pub(crate) fn put(&self, request: Request) -> Request {
        self.value.put(request)
    }

    /// Returns the field with which it is requested in one call.
    pub(crate) fn goes_with(&self, all: &[Change]) -> &'static str {
        self.value.goes_with(all)
    }
}

/// Returns true if one of these changes is one of a setting.
pub(crate) fn is_changed<S: Setting>(changes: &[Change]) -> bool {
    changes.iter().any(|change| change.field == S::FIELD)
}

impl PartialEq for Change {
    fn eq(&self, other: &Self) -> bool {
        let other: &dyn Any = &*other.value;
        self.value.is(other)
    }
}
