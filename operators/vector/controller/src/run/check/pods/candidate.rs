//! Fingerprints of the configurations that are checked.

use lockstep_vector_api::Workload;
use lockstep_vector_assembly::{Assembly, fingerprint};
use serde_json::{Value, json};

use crate::owned::{self, Cluster};

/// Settings of a workload that decide the result of a check, besides the configuration.
pub(crate) struct Settings(Value);

impl Settings {
    pub(crate) fn new(workload: &Workload, cluster: &Cluster) -> Self {
        Self(json!({
            "image": owned::check_image(workload, cluster),
            "envVarInterpolation": workload.env_var_interpolation.unwrap_or_default(),
            "env": workload.env,
            "envFrom": workload.env_from,
            "volumes": workload.volumes,
            "volumeMounts": workload.volume_mounts,
        }))
    }

    /// Returns the fingerprint of a configuration with these settings. `forced` is the value of the annotation that
    /// demands another check.
    pub(crate) fn fingerprint(&self, assembly: &Assembly, forced: Option<&str>) -> String {
        fingerprint(&json!([assembly.hash(), self.0, forced]))
    }
}

/// Returns true if the log of Vector may contain values of Secrets that the controller does not know: environment
/// variables that are part of the configuration.
pub(crate) fn hides_log(workload: &Workload) -> bool {
    let from_secret =
        |it: &Value| !it["valueFrom"]["secretKeyRef"].is_null() || !it["secretRef"].is_null();
    let variables = workload.env.iter().chain(&workload.env_from);
    let mut variables = variables.cloned().map(Value::Object);
    let image = workload.image.as_deref().unwrap_or_default();
    let replaces = workload.env_var_interpolation.unwrap_or_default()
        || !owned::has_interpolation_flag(workload, image);
    replaces && variables.any(|variable| from_secret(&variable))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lockstep_vector_api::{VectorVersion, WorkloadRole};
    use lockstep_vector_assembly::{AssemblyOptions, assemble};

    use super::*;
    use crate::owned::ClusterScopedNames;

    fn workload(spec: &Value) -> Workload {
        serde_json::from_value(spec.clone()).expect("a workload")
    }

    #[test]
    fn a_fingerprint_changes_with_everything_that_decides_the_result() {
        let cluster = Cluster {
            vector_version: VectorVersion::parse("0.57").expect("a version"),
            has_pod_monitors: false,
            cluster_scoped_names: ClusterScopedNames::Plain,
            program_image: None,
        };
        let assembly = assemble(&AssemblyOptions::new(WorkloadRole::Agent), &[]);
        let of = |spec: Value, forced| {
            Settings::new(&workload(&spec), &cluster).fingerprint(&assembly, forced)
        };
        let all = BTreeSet::from([
            of(json!({}), None),
            of(json!({}), Some("1")),
            of(json!({"image": "vector:1"}), None),
            of(
                json!({"image": "vector:1", "configCheck": {"image": "vector:2"}}),
                None,
            ),
            of(json!({"envVarInterpolation": true}), None),
            of(json!({"env": [{"name": "A"}]}), None),
            of(json!({"envFrom": [{"secretRef": {"name": "a"}}]}), None),
            of(json!({"volumes": []}), None),
            of(json!({"volumeMounts": []}), None),
        ]);
        assert_eq!(all.len(), 9);
        let same = [
            json!({"configCheck": {"image": "vector:1"}}),
            json!({"resources": {}, "image": "vector:1"}),
        ];
        for spec in same {
            assert!(all.contains(&of(spec, None)));
        }
    }

    #[test]
    fn a_log_is_hidden_if_variables_from_secrets_are_part_of_the_configuration() {
        let of_secret =
            json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]);
        for (interpolates, env, env_from, expected) in [
            (true, of_secret.clone(), json!([]), true),
            (true, json!([]), json!([{"secretRef": {"name": "a"}}]), true),
            (
                true,
                json!([{"name": "A", "value": "b"}]),
                json!([{"configMapRef": {"name": "a"}}]),
                false,
            ),
            (false, of_secret, json!([]), false),
        ] {
            let spec =
                json!({"envVarInterpolation": interpolates, "env": env, "envFrom": env_from});
            assert_eq!(hides_log(&workload(&spec)), expected, "{spec}");
        }
        // Versions before 0.57 replace them without a flag.
        let mut older = json!({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]});
        older["image"] = json!("timberio/vector:0.48.0-alpine");
        assert!(hides_log(&workload(&older)));
        older["image"] = json!("timberio/vector:0.57.0-alpine");
        assert!(!hides_log(&workload(&older)));
    }
}
