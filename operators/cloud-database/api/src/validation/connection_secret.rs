//! Rules on the name of the Secret for applications.

use lockstep_shared_validation::{Diagnostics, Rule, RuleContext, Severity};

use crate::secret_names::connection_secret_name;
use crate::spec::CloudDatabase;

const REFERENCE: &str =
    "Lockstep's own: the controller overwrites no Secret that it has not created";

pub(super) fn rules() -> Vec<Rule<CloudDatabase>> {
    vec![Rule {
        id: "connection-secret-name",
        description: "The Secret for applications must not be the one with the credentials.",
        severity: Severity::Error,
        reference: REFERENCE,
        fields: &["spec.connectionSecret", "spec.credentials.secretName"],
        validate: other_than_credentials,
    }]
}

fn other_than_credentials(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let name = connection_secret_name(context.object);
    if let Some(name) = name
        && context.object.spec.credentials.secret_name.as_ref() == Some(&name)
    {
        let detail = "is the Secret with the credentials, which the controller does not overwrite; choose another name";
        diagnostics.invalid("spec.connectionSecret.name", name, detail);
    }
}
