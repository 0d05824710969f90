//! `RebootDBInstance`, `StopDBInstance` and `StartDBInstance`.

use serde_json::{Value, json};

use crate::fields::Fields;
use crate::operations::call::Call;
use crate::protocol::fault::Fault;
use crate::rules::identifier;
use crate::state::instance::{AVAILABLE, Instance};
use crate::state::phase::{Effect, Phase};
use crate::state::reported;
use crate::state::snapshot::Snapshot;

/// Reboots an instance.
pub(crate) fn reboot(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let now = call.now;
    let length = call.config.timing.of("rebooting");
    let instance = call
        .region
        .instance(parameters.text("DBInstanceIdentifier"))?;
    instance.require_status("RebootDBInstance", &[AVAILABLE], not_available)?;
    if parameters.flag("ForceFailover") && !instance.settings.flag("MultiAZ") {
        return Err(Fault::combination(
            "ForceFailover cannot be specified since the instance is not configured for MultiAZ.",
        ));
    }
    let instance = instance.clone();
    require_key(call, &instance)?;
    let instance = call.region.instance(instance.id())?;
    instance.called("RebootDBInstance", now);
    instance.add(Phase::of("rebooting", length, Effect::Rebooted), now);
    let instance = instance.clone();
    Ok(answer(call, &instance))
}

/// Stops an instance, after a snapshot if the request names one.
pub(crate) fn stop(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let now = call.now;
    let timing = &call.config.timing;
    let instance = call
        .region
        .instance(parameters.text("DBInstanceIdentifier"))?;
    instance.require_status("StopDBInstance", &[AVAILABLE], not_available)?;
    let instance = instance.clone();
    let mut instances = call.region.instances.iter();
    let has_replica = instances.any(|it| it.source.as_ref() == Some(&instance.resource_id));
    if has_replica || instance.source.is_some() {
        return Err(Fault::new(
            "InvalidDBInstanceState",
            "Cannot stop a DB instance that is a read replica or has read replicas.",
        ));
    }
    let snapshot = match parameters.given_text("DBSnapshotIdentifier") {
        None => None,
        Some(id) => {
            let id = identifier::check("DBSnapshotIdentifier", id, identifier::SNAPSHOT)?;
            call.region.require_new_snapshot(&id, call.config)?;
            Some(Snapshot::of(&instance, id, now + timing.snapshot, now))
        }
    };
    call.region.snapshots.extend(snapshot);
    let instance = call.region.instance(instance.id())?;
    instance.called("StopDBInstance", now);
    instance.add(Phase::of(AVAILABLE, timing.lag, Effect::Nothing), now);
    let length = timing.of("stopping");
    instance.add(Phase::of("stopping", length, Effect::Stopped), now);
    let instance = instance.clone();
    Ok(answer(call, &instance))
}

/// Starts a stopped instance.
pub(crate) fn start(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    const ALLOWED: &[&str] = &[
        "stopped",
        "inaccessible-encryption-credentials-recoverable",
        "incompatible-network",
    ];
    let now = call.now;
    let length = call.config.timing.of("starting");
    let instance = call
        .region
        .instance(parameters.text("DBInstanceIdentifier"))?;
    instance.require_status("StartDBInstance", ALLOWED, |instance| {
        format!(
            "Instance {} cannot be started as it is not in one of the following statuses: '{}'.",
            instance.id(),
            ALLOWED.join(", ")
        )
    })?;
    let instance = instance.clone();
    require_key(call, &instance)?;
    let class = instance.settings.only(&["DBInstanceClass"]);
    call.region.resources.check_capacity(&class)?;
    let instance = call.region.instance(instance.id())?;
    instance.end_phase(now);
    instance.add(Phase::of("starting", length, Effect::Rebooted), now);
    let instance = instance.clone();
    Ok(answer(call, &instance))
}

/// Returns an error if RDS cannot use the key of an instance.
fn require_key(call: &Call<'_>, instance: &Instance) -> Result<(), Fault> {
    let key = instance.settings.given_text("KmsKeyId");
    match key {
        Some(key) => call.region.resources.key(key).map(drop),
        None => Ok(()),
    }
}

/// Returns the message of RDS for an instance that is not available.
pub(crate) fn not_available(instance: &Instance) -> String {
    format!("Instance {} is not in available state.", instance.id())
}

fn answer(call: &Call<'_>, instance: &Instance) -> Value {
    let reported = reported::instance(call.region, instance, call.now);
    json!({"DBInstance": reported})
}
