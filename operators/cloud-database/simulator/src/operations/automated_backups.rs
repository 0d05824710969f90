//! `DescribeDBInstanceAutomatedBackups`.

use serde_json::Value;

use crate::fields::Fields;
use crate::operations::call::Call;
use crate::operations::filter::filter;
use crate::operations::page::page;
use crate::protocol::fault::Fault;
use crate::state::automated_backup::{self, RetainedBackup};
use crate::state::instance::Instance;

/// Automated backups in a list.
struct Listed<'a> {
    instance: &'a Instance,
    retained: Option<&'a RetainedBackup>,
}

impl Listed<'_> {
    fn status(&self) -> &str {
        match self.retained {
            Some(_) => "retained",
            None => automated_backup::status(self.instance),
        }
    }
}

/// Returns the automated backups that the parameters select.
pub(crate) fn list(call: &Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let region = &*call.region;
    let place = &region.place;
    let existing = region.instances.iter().filter(|it| {
        let has_backups = it.settings.number("BackupRetentionPeriod") != Some(0);
        has_backups && it.listed_from <= call.now
    });
    let existing = existing.map(|instance| Listed {
        instance,
        retained: None,
    });
    let retained = region.retained.iter().map(|it| Listed {
        instance: &it.instance,
        retained: Some(it),
    });
    let all: Vec<_> = existing.chain(retained).collect();
    let is_named = |it: &Listed<'_>, value: &str| {
        let id = it.instance.id();
        id.eq_ignore_ascii_case(value) || place.arn("db", id) == value
    };
    let is_of = |it: &Listed<'_>, id: &str| it.instance.resource_id.eq_ignore_ascii_case(id);
    let mut found = filter(all.iter(), parameters, |it, name, value| match name {
        "db-instance-id" => Some(is_named(it, value)),
        "dbi-resource-id" => Some(is_of(it, value)),
        "status" => Some(it.status() == value),
        _ => None,
    })?;
    if let Some(id) = parameters.given_text("DbiResourceId") {
        found.retain(|it| is_of(it, id));
        require_some(&found, id)?;
    }
    // It must be the identifier of an instance that exists.
    if let Some(id) = parameters.given_text("DBInstanceIdentifier") {
        found.retain(|it| it.retained.is_none() && is_named(it, id));
        require_some(&found, id)?;
    }
    if let Some(arn) = parameters.given_text("DBInstanceAutomatedBackupsArn") {
        let arn_of = |it: &Listed<'_>| {
            let id = automated_backup::id_of(it.instance);
            place.arn("auto-backup", &id)
        };
        found.retain(|it| arn_of(it) == arn);
        require_some(&found, arn)?;
    }
    let entries = found.into_iter().map(|it| {
        let reported = match it.retained {
            Some(retained) => retained.reported(place),
            None => automated_backup::of_existing(it.instance, place, call.now),
        };
        (it.instance.resource_id.clone(), reported)
    });
    page("DBInstanceAutomatedBackups", entries.collect(), parameters)
}

fn require_some(found: &[&Listed<'_>], id: &str) -> Result<(), Fault> {
    if found.is_empty() {
        return Err(not_found(id));
    }
    Ok(())
}

/// Returns the error for automated backups that do not exist.
pub(crate) fn not_found(id: &str) -> Fault {
    let message = format!("DBInstanceAutomatedBackup {id} not found.");
    Fault::new("DBInstanceAutomatedBackupNotFound", message)
}
