//! Rules on the instance that a replica has its data from.

use lockstep_shared_validation::{Diagnostics, Rule, RuleContext, Severity};

use crate::spec::CloudDatabase;

const REPLICAS: &str = "https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_CreateDBInstanceReadReplica.html";

pub(super) fn rules() -> Vec<Rule<CloudDatabase>> {
    vec![Rule {
        id: "replica-of-itself",
        description: "An instance must not replicate itself.",
        severity: Severity::Error,
        reference: REPLICAS,
        fields: &["spec.replicaOf", "metadata.name"],
        validate: of_another,
    }]
}

fn of_another(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let metadata = &context.object.metadata;
    let Some(source) = &context.object.spec.replica_of else {
        return;
    };
    if let Some(name) = &source.name
        && metadata.name.as_ref() == Some(name)
    {
        let detail = "is this object itself; name the object whose instance is replicated";
        diagnostics.invalid("spec.replicaOf.name", name.as_str(), detail);
    }
}
