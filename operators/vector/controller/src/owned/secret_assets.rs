//! Secret with the values of the Secrets that pipelines refer to.

use serde_json::Value;

use crate::owned::children::OwnedObjectsError;
use crate::owned::configuration_secret;
use crate::owned::runner::Runner;

/// Returns true if a pipeline refers to a Secret.
pub(crate) fn are_used(runner: &Runner<'_>) -> bool {
    !runner.publication.secrets.is_empty()
}

/// Returns the name of the Secret.
pub(crate) fn name(runner: &Runner<'_>) -> String {
    format!("{}-secret-assets", runner.object_name())
}

/// Returns the Secret, if a pipeline refers to one.
pub(crate) fn of(runner: &Runner<'_>) -> Result<Option<Value>, OwnedObjectsError> {
    if !are_used(runner) {
        return Ok(None);
    }
    let remedy = "refer to fewer or smaller Secrets in the pipelines of this workload";
    let values = &runner.publication.secrets;
    configuration_secret::secret(runner, name(runner), values, remedy).map(Some)
}
