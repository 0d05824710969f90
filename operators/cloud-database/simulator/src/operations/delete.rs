//! `DeleteDBInstance`.

use serde_json::{Value, json};

use crate::fields::Fields;
use crate::operations::call::Call;
use crate::protocol::fault::Fault;
use crate::rules::identifier;
use crate::state::phase::{Effect, Phase};
use crate::state::reported;
use crate::state::snapshot::Snapshot;

/// States in which RDS can take a snapshot.
pub(crate) const WITH_SNAPSHOT: &[&str] = &[
    "available",
    "backing-up",
    "incompatible-parameters",
    "insufficient-capacity",
    "stopped",
    "storage-full",
    "storage-optimization",
];

/// Begins to delete an instance, after a final snapshot if the request names one.
pub(crate) fn delete(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let id = parameters.text("DBInstanceIdentifier");
    let instance = call.region.instance(id)?;
    let id = instance.id().to_owned();
    match instance.status() {
        "deleting" => {
            let message = format!("Instance {id} is already being deleted.");
            return Err(Fault::new("InvalidDBInstanceState", message));
        }
        "creating" => {
            let message = format!("Instance {id} is currently creating - please try again later.");
            return Err(Fault::new("InvalidDBInstanceState", message));
        }
        _ => {}
    }
    if instance.settings.flag("DeletionProtection") {
        return Err(Fault::combination(
            "Cannot delete protected DB Instance, please disable deletion protection and try again.",
        ));
    }
    let is_replica = instance.source.is_some();
    let snapshot = final_snapshot(parameters, is_replica)?;
    if let Some(snapshot) = &snapshot {
        instance.require_status("DeleteDBInstance", WITH_SNAPSHOT, |instance| {
            format!(
                "Instance {id} is in state {} and a final snapshot cannot be taken. Specify SkipFinalSnapshot.",
                instance.status()
            )
        })?;
        call.region.require_new_snapshot(snapshot, call.config)?;
    }
    let timing = &call.config.timing;
    let mut length = timing.of("deleting");
    let instance = call.region.instance(&id)?;
    instance.phases.clear();
    instance.next_window = None;
    let deletes_backups = parameters.given_flag("DeleteAutomatedBackups");
    instance.retains_backups = deletes_backups == Some(false);
    let taken = snapshot.map(|snapshot| {
        length += timing.snapshot;
        let mut taken = Snapshot::of(instance, snapshot, call.now + timing.snapshot, call.now);
        taken.listed_from += timing.listing_delay;
        taken
    });
    instance.add(Phase::of("deleting", length, Effect::Deleted), call.now);
    let instance = instance.clone();
    call.region.snapshots.extend(taken);
    let reported = reported::instance(call.region, &instance, call.now);
    Ok(json!({"DBInstance": reported}))
}

/// Returns the identifier of the final snapshot that the request asks for.
fn final_snapshot(parameters: &Fields, is_replica: bool) -> Result<Option<String>, Fault> {
    const NAME: &str = "FinalDBSnapshotIdentifier";
    match (
        parameters.given_text(NAME),
        parameters.flag("SkipFinalSnapshot"),
    ) {
        (None, true) => Ok(None),
        (None, false) => Err(Fault::combination(
            "FinalDBSnapshotIdentifier is required unless SkipFinalSnapshot is specified.",
        )),
        (Some(_), true) => Err(Fault::combination(
            "FinalDBSnapshotIdentifier can not be specified when SkipFinalSnapshot is specified.",
        )),
        (Some(_), false) if is_replica => Err(Fault::combination(
            "FinalDBSnapshotIdentifier can not be specified when deleting a read replica.",
        )),
        (Some(id), false) => identifier::check(NAME, id, identifier::SNAPSHOT).map(Some),
    }
}
