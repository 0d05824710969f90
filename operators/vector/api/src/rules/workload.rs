//! Rules of the kinds that run Vector.

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, Rule, RuleContext, Severity};
use lockstep_vector_config::Interpolation;

use crate::rules::{update_strategy, workload_change};
use crate::tenancy::policy::Section;
use crate::types::workload_kind::WorkloadKind;
use crate::vector_release;

/// Environment variable that has the same effect on Vector as `--dangerously-allow-env-var-interpolation`.
const VARIABLE: &str = "VECTOR_DANGEROUSLY_ALLOW_ENV_VAR_INTERPOLATION";

pub(crate) fn rules<K: WorkloadKind>() -> Vec<Rule<K>> {
    let interpolation = Rule {
        id: "interpolation-policy",
        description: "Vector replaces environment variables in its configuration only if the policy says so, because pipelines are validated accordingly.",
        severity: Severity::Error,
        reference: "https://vector.dev/docs/reference/environment_variables/#environment-variable-interpolation",
        fields: K::INTERPOLATION,
        validate: interpolation_policy,
    };
    let mut rules = vec![interpolation, vector_release::workload_rule()];
    rules.push(update_strategy::rule());
    rules.extend(workload_change::rules());
    rules
}

fn interpolation_policy<K: WorkloadKind>(
    context: &RuleContext<'_, K>,
    diagnostics: &mut Diagnostics,
) {
    let Some(workload) = context.object.workload() else {
        return;
    };
    if Section::of(context.settings).interpolation() == Interpolation::On {
        return;
    }
    let path = FieldPath::new(K::WORKLOAD);
    let mut report = |path| {
        let detail = "by the policy, Vector replaces no environment variables, and pipelines are validated accordingly; set `settings.vector.envVarInterpolation: true` in the policy first";
        diagnostics.push(FieldError::forbidden(path, detail));
    };
    if workload.env_var_interpolation == Some(true) {
        report(path.child("envVarInterpolation"));
    }
    for (index, variable) in workload.env.iter().enumerate() {
        let is = |field: &str, text: &str| variable.get(field).is_some_and(|it| it == text);
        // A value from elsewhere may be `true`.
        if is("name", VARIABLE) && !is("value", "false") {
            report(path.child("env").index(index));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lockstep_shared_validation::{
        Policy, Ruleset, ValidationRequest, Validator, ValidatorRegistry,
    };
    use serde_json::{Value, json};

    use crate::types::agent::Vector;
    use crate::types::aggregator::VectorAggregator;

    use super::*;

    /// Returns the fields of a workload that the policy does not allow.
    fn denied<K: WorkloadKind>(spec: &Value, is_allowed: bool) -> Vec<String> {
        let ruleset = Arc::new(Ruleset::<K>::compile().expect("it compiles"));
        let validators = ValidatorRegistry::default().register(Arc::clone(&ruleset) as Arc<_>);
        let file = json!({"settings": {"vector": {"envVarInterpolation": is_allowed}}});
        let policy = Policy::read(&file, &validators).expect("a policy");
        let object = json!({
            "apiVersion": "observability.kaasops.io/v1alpha1",
            "kind": K::KIND,
            "metadata": {"name": "a", "namespace": "default"},
            "spec": spec,
        });
        let result = ruleset.validate(&ValidationRequest::create(&object).with_policy(&policy));
        let errors = result.errors.into_iter();
        let paths = errors.map(|it| {
            assert_eq!(it.rule, "interpolation-policy", "{}", it.error);
            it.error.path.to_string()
        });
        paths.collect()
    }

    #[test]
    fn a_workload_interpolates_only_if_the_policy_says_so() {
        let on = json!({
            "envVarInterpolation": true,
            "env": [{"name": "A", "value": "true"}, {"name": VARIABLE, "value": "true"}],
        });
        let agent = json!({"agent": on});
        assert_eq!(
            denied::<Vector>(&agent, false),
            ["spec.agent.envVarInterpolation", "spec.agent.env[1]"]
        );
        assert_eq!(
            denied::<VectorAggregator>(&on, false),
            ["spec.envVarInterpolation", "spec.env[1]"]
        );
        let none = [""; 0];
        assert_eq!(denied::<Vector>(&agent, true), none);
        assert_eq!(denied::<VectorAggregator>(&on, true), none);
        let off =
            json!({"envVarInterpolation": false, "env": [{"name": VARIABLE, "value": "false"}]});
        assert_eq!(denied::<VectorAggregator>(&off, false), none);
        let unknown = json!({"env": [{"name": VARIABLE, "valueFrom": {}}]});
        assert_eq!(denied::<VectorAggregator>(&unknown, false), ["spec.env[0]"]);
    }
}
