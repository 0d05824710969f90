//! `AddTagsToResource`, `RemoveTagsFromResource` and `ListTagsForResource`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::fields::Fields;
use crate::operations::call::Call;
use crate::protocol::fault::Fault;
use crate::rules::tags;
use crate::state::automated_backup;
use crate::state::region::Region;

/// Adds tags, or changes their values.
pub(crate) fn add(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let added = tags::read(parameters.get("Tags"))?;
    let present = of_resource(call, parameters)?;
    let mut all = present.clone();
    all.extend(added);
    tags::check_number(&all)?;
    *present = all;
    Ok(Value::Null)
}

/// Removes tags.
pub(crate) fn remove(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let removed = parameters.texts("TagKeys");
    let present = of_resource(call, parameters)?;
    present.retain(|key, _| !removed.contains(&key.as_str()));
    Ok(Value::Null)
}

/// Returns the tags of a resource.
pub(crate) fn list(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let present = of_resource(call, parameters)?;
    Ok(json!({"TagList": tags::list(present)}))
}

/// Returns the tags of the instance, snapshot or automated backups whose ARN is the parameter `ResourceName`.
fn of_resource<'a>(
    call: &'a mut Call<'_>,
    parameters: &Fields,
) -> Result<&'a mut BTreeMap<String, String>, Fault> {
    let arn = parameters.text("ResourceName");
    let place = call.region.place.clone();
    let parts: Vec<_> = arn.splitn(7, ':').collect();
    let &["arn", "aws", "rds", region, account, kind, id] = parts.as_slice() else {
        return Err(Fault::value(format!("Invalid resource name: {arn}")));
    };
    if region != place.name || account != place.account {
        return Err(Fault::value(format!(
            "The specified resource name does not match an RDS resource in this region: {arn}"
        )));
    }
    match kind {
        "auto-backup" => of_backups(call.region, id),
        "db" => Ok(&mut call.region.instance(id)?.tags),
        "snapshot" => Ok(&mut call.region.snapshot(id)?.tags),
        _ => Err(Fault::value(format!("Invalid resource name: {arn}"))),
    }
}

/// Returns the tags of automated backups, also of a deleted instance.
fn of_backups<'a>(
    region: &'a mut Region,
    id: &str,
) -> Result<&'a mut BTreeMap<String, String>, Fault> {
    let retained = region.retained.iter_mut().map(|it| &mut it.instance);
    let mut all = region.instances.iter_mut().chain(retained);
    let found = all.find(|it| automated_backup::id_of(it) == id);
    // The operations document no error for backups that do not exist.
    let found = found.ok_or_else(|| Fault::value(format!("Invalid resource name: {id}")))?;
    Ok(&mut found.backup_tags)
}
