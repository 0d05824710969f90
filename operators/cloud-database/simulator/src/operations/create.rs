//! `CreateDBInstance`.

use serde_json::Value;

use crate::fields::Fields;
use crate::operations::call::Call;
use crate::operations::launch::Launch;
use crate::protocol::fault::Fault;
use crate::rules::master_user;

/// Begins to create an instance.
pub(crate) fn create(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    if let Some(cluster) = parameters.given_text("DBClusterIdentifier") {
        let message = format!("DBCluster {cluster} not found.");
        return Err(Fault::new("DBClusterNotFoundFault", message));
    }
    call.config
        .catalogue
        .require_engine(parameters.text("Engine"))?;
    master_user(parameters)?;
    Launch::from(parameters)?.run(call)
}

fn master_user(parameters: &Fields) -> Result<(), Fault> {
    let engine = parameters.text("Engine");
    let name = parameters.given_text("MasterUsername");
    master_user::check_name(
        engine,
        name.ok_or_else(|| Fault::missing("MasterUsername"))?,
    )?;
    let password = parameters.given_text("MasterUserPassword");
    match (password, parameters.flag("ManageMasterUserPassword")) {
        (Some(_), true) => Err(Fault::combination(
            "You can't specify MasterUserPassword when ManageMasterUserPassword is enabled.",
        )),
        (None, true) => Ok(()),
        (Some(password), false) => master_user::check_password(engine, password),
        (None, false) => Err(Fault::missing("MasterUserPassword")),
    }
}
