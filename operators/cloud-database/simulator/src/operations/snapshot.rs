//! `CreateDBSnapshot`, `DeleteDBSnapshot` and `DescribeDBSnapshots`.

use serde_json::{Value, json};

use crate::fields::Fields;
use crate::operations::call::Call;
use crate::operations::delete::WITH_SNAPSHOT;
use crate::operations::filter::filter;
use crate::operations::page::page;
use crate::operations::power::not_available;
use crate::protocol::fault::Fault;
use crate::rules::{identifier, tags};
use crate::state::phase::{Effect, Phase};
use crate::state::snapshot::Snapshot;

/// Begins to take a snapshot.
pub(crate) fn create(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let now = call.now;
    let timing = &call.config.timing;
    let id = parameters.text("DBSnapshotIdentifier");
    let id = identifier::check("DBSnapshotIdentifier", id, identifier::SNAPSHOT)?;
    let given = tags::read(parameters.get("Tags"))?;
    let source = parameters.text("DBInstanceIdentifier");
    let instance = call.region.instance(source)?;
    instance.require_status("CreateDBSnapshot", WITH_SNAPSHOT, not_available)?;
    call.region.require_new_snapshot(&id, call.config)?;
    let instance = call.region.instance(source)?;
    let mut snapshot = Snapshot::of(instance, id, now + timing.snapshot, now);
    snapshot.tags.extend(given);
    tags::check_number(&snapshot.tags)?;
    snapshot.listed_from += timing.listing_delay;
    if instance.phases.is_empty() {
        let backup = Phase::of("backing-up", timing.snapshot, Effect::Nothing);
        instance.add(backup, now);
    }
    let reported = snapshot.reported(&call.region.place, now);
    call.region.snapshots.push(snapshot);
    Ok(json!({"DBSnapshot": reported}))
}

/// Deletes a snapshot.
pub(crate) fn delete(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let now = call.now;
    let snapshot = call
        .region
        .snapshot(parameters.text("DBSnapshotIdentifier"))?;
    if snapshot.is_automated || snapshot.status(now) != "available" {
        return Err(not_usable(snapshot));
    }
    let id = snapshot.id.clone();
    snapshot.forced = Some("deleted".to_owned());
    let snapshot = snapshot.clone();
    let reported = snapshot.reported(&call.region.place, now);
    call.region.snapshots.retain(|it| it.id != id);
    Ok(json!({"DBSnapshot": reported}))
}

/// Returns the error for a snapshot that is in another state than an operation needs.
pub(crate) fn not_usable(snapshot: &Snapshot) -> Fault {
    let message = format!("The snapshot {} is not in a valid state.", snapshot.id);
    Fault::new("InvalidDBSnapshotState", message)
}

/// Returns the snapshots that the parameters select.
pub(crate) fn list(call: &Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let place = &call.region.place;
    let listed = call.region.snapshots.iter();
    let listed = listed.filter(|it| it.listed_from <= call.now);
    let matches = |it: &Snapshot, name: &str, value: &str| {
        let is_same = |text: &str| text.eq_ignore_ascii_case(value);
        match name {
            "db-instance-id" => Some(is_same(it.settings.text("DBInstanceIdentifier"))),
            "db-snapshot-id" => Some(is_same(&it.id) || it.arn(place) == value),
            "dbi-resource-id" => Some(it.resource_id == value),
            "engine" => Some(it.settings.text("Engine") == value),
            "snapshot-type" => Some((value == "automated") == it.is_automated),
            _ => None,
        }
    };
    let mut found = filter(listed, parameters, matches)?;
    for (parameter, filter) in [
        ("DBInstanceIdentifier", "db-instance-id"),
        ("DBSnapshotIdentifier", "db-snapshot-id"),
        ("DbiResourceId", "dbi-resource-id"),
        ("SnapshotType", "snapshot-type"),
    ] {
        if let Some(value) = parameters.given_text(parameter) {
            found.retain(|it| matches(it, filter, value) == Some(true));
        }
    }
    if let Some(id) = parameters.given_text("DBSnapshotIdentifier")
        && found.is_empty()
    {
        let message = format!("DBSnapshot {id} not found.");
        return Err(Fault::new("DBSnapshotNotFound", message));
    }
    let entries = found.into_iter();
    let entries = entries.map(|it| (it.id.clone(), it.reported(place, call.now)));
    page("DBSnapshots", entries.collect(), parameters)
}
