//! Instance of an object: compared with the spec, changed, and recorded in the status.

pub(crate) mod applied_values;
pub(crate) mod certificate;
pub(crate) mod circumstances;
pub(crate) mod described;
pub(crate) mod diff;
pub(crate) mod drift;
pub(crate) mod enqueue;
pub(crate) mod identity;
pub(crate) mod instance_reconciler;
pub(crate) mod instance_status;
pub(crate) mod modification;
pub(crate) mod modify;
pub(crate) mod observation;
pub(crate) mod observed_status;
pub(crate) mod record;
pub(crate) mod request;
pub(crate) mod second_description;
pub(crate) mod step_error;
pub(crate) mod storage_record;
pub(crate) mod sufficient;
pub(crate) mod suspension;
pub(crate) mod sync;
pub(crate) mod tags;
