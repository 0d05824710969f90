//! `PromoteReadReplica`.

use serde_json::{Value, json};

use crate::fields::Fields;
use crate::operations::call::Call;
use crate::operations::power::not_available;
use crate::protocol::fault::Fault;
use crate::rules::{limits, window};
use crate::state::instance::AVAILABLE;
use crate::state::phase::{Effect, Phase};
use crate::state::reported;

/// Retention of automated backups without the parameter.
const RETENTION: i64 = 1;

/// Begins to promote a replica to an instance of its own.
pub(crate) fn promote(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let now = call.now;
    let timing = &call.config.timing;
    let instance = call
        .region
        .instance(parameters.text("DBInstanceIdentifier"))?;
    if instance.source.is_none() {
        let message = format!("DB Instance {} is not a read replica.", instance.id());
        return Err(Fault::new("InvalidDBInstanceState", message));
    }
    // Neither `backing-up` nor any other state is accepted.
    instance.require_status("PromoteReadReplica", &[AVAILABLE], not_available)?;
    let mut changed = parameters.only(&["BackupRetentionPeriod", "PreferredBackupWindow"]);
    changed.set_default("BackupRetentionPeriod", RETENTION);
    let mut settings = instance.settings.clone();
    settings.overlay(&changed);
    limits::check(&settings)?;
    window::check(
        settings.given_text("PreferredBackupWindow"),
        settings.given_text("PreferredMaintenanceWindow"),
    )?;
    instance.called("PromoteReadReplica", now);
    let is_backed_up = changed.number("BackupRetentionPeriod") != Some(0);
    instance.soon.overlay(&changed);
    instance.add(Phase::of(AVAILABLE, timing.lag, Effect::Nothing), now);
    let length = timing.of("modifying");
    instance.add(Phase::of("modifying", length, Effect::Promoted), now);
    let length = timing.of("rebooting");
    instance.add(Phase::of("rebooting", length, Effect::Rebooted), now);
    if is_backed_up {
        let length = timing.of("backing-up");
        instance.add(Phase::of("backing-up", length, Effect::BackedUp), now);
    }
    let instance = instance.clone();
    let reported = reported::instance(call.region, &instance, now);
    Ok(json!({"DBInstance": reported}))
}
