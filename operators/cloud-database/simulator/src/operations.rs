//! Operations: parameters → change of the state and result.

mod automated_backups;
mod call;
mod create;
mod delete;
mod describe;
mod filter;
mod history;
mod identity;
mod launch;
mod modify;
mod offers;
mod page;
mod power;
mod promote;
mod restore;
mod snapshot;
mod tagging;

use serde_json::Value;

use crate::fields::Fields;
use crate::protocol::fault::Fault;

pub(crate) use call::Call;

/// Carries out an operation.
pub(crate) fn run(
    operation: &str,
    call: &mut Call<'_>,
    parameters: &Fields,
) -> Result<Value, Fault> {
    match operation {
        "AddTagsToResource" => tagging::add(call, parameters),
        "CreateDBInstance" => create::create(call, parameters),
        "CreateDBInstanceReadReplica" => restore::replica(call, parameters),
        "CreateDBSnapshot" => snapshot::create(call, parameters),
        "DeleteDBInstance" => delete::delete(call, parameters),
        "DeleteDBSnapshot" => snapshot::delete(call, parameters),
        "DescribeCertificates" => offers::certificates(call, parameters),
        "DescribeDBEngineVersions" => offers::engine_versions(call, parameters),
        "DescribeDBInstanceAutomatedBackups" => automated_backups::list(call, parameters),
        "DescribeDBInstances" => describe::instances(call, parameters),
        "DescribeDBSnapshots" => snapshot::list(call, parameters),
        "DescribeEvents" => history::events(call, parameters),
        "DescribeOrderableDBInstanceOptions" => offers::orderable(call, parameters),
        "DescribePendingMaintenanceActions" => history::maintenance(call, parameters),
        "GetCallerIdentity" => Ok(identity::caller(call)),
        "ListTagsForResource" => tagging::list(call, parameters),
        "ModifyDBInstance" => modify::modify(call, parameters),
        "PromoteReadReplica" => promote::promote(call, parameters),
        "RebootDBInstance" => power::reboot(call, parameters),
        "RemoveTagsFromResource" => tagging::remove(call, parameters),
        "RestoreDBInstanceFromDBSnapshot" => restore::from_snapshot(call, parameters),
        "RestoreDBInstanceToPointInTime" => restore::to_point_in_time(call, parameters),
        "StartDBInstance" => power::start(call, parameters),
        "StopDBInstance" => power::stop(call, parameters),
        _ => unreachable!("the model has no operation {operation}"),
    }
}
