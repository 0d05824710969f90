//! Secret with the values of the Secrets that pipelines refer to.

use serde_json::Value;

use crate::owned::children::OwnedObjectsError;
use crate::owned::configuration_secret;
use crate::owned::owned_workload::OwnedWorkload;

/// Returns the Secret, if a pipeline refers to one.
pub(crate) fn desired(workload: &OwnedWorkload<'_>) -> Result<Option<Value>, OwnedObjectsError> {
    if !workload.uses_secrets() {
        return Ok(None);
    }
    let remedy = "refer to fewer or smaller Secrets in the pipelines of this workload";
    let values = &workload.publication.secrets;
    configuration_secret::secret(workload, workload.secret_assets_name(), values, remedy).map(Some)
}
