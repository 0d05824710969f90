//! What tenants may do, as an installation decides.

use std::collections::BTreeSet;

use glob::{MatchOptions, Pattern};
use serde::Deserialize;
use serde_json::Value;
use shared_validation::{Settings, did_you_mean};

use crate::catalogue::Catalogue;
use crate::component::Family;
use crate::confinement;
use crate::functions;

/// The section of the policy.
pub(crate) const SETTINGS: Settings = Settings {
    section: "vector",
    check,
};

/// The section `settings.vector` of a policy.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Section {
    pub(crate) tenants: TenantPolicy,
    /// Whether another operator runs the pipelines, which divides the parts of a name by nothing but dashes.
    pub(crate) names_joined_by_dashes: bool,
}

impl Section {
    /// That of an installation, or what holds without one.
    pub(crate) fn of(settings: Option<&Value>) -> Self {
        // It was checked when it was read.
        let section = settings.and_then(|settings| Self::deserialize(settings).ok());
        section.unwrap_or_default()
    }
}

/// What a VectorPipeline may do. Each list that is told takes the place of the one that holds without it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TenantPolicy {
    /// Types of sources that tenants may not have.
    pub(crate) denied_sources: BTreeSet<String>,
    /// Types of transforms that they may not have.
    pub(crate) denied_transforms: BTreeSet<String>,
    /// Types of sinks that they may not have.
    pub(crate) denied_sinks: BTreeSet<String>,
    /// Options that they may not use, in whatever component and however deep.
    pub(crate) denied_options: BTreeSet<String>,
    /// Functions that their programs may not call.
    pub(crate) denied_functions: BTreeSet<String>,
    /// Patterns of files that options may name.
    pub(crate) files: Vec<String>,
    /// Variables of the agent's environment that they may name.
    pub(crate) environment: BTreeSet<String>,
}

impl Default for TenantPolicy {
    fn default() -> Self {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            // They tell of all pipelines that run in the same process.
            // `http_client` asks whom it is told to, such as what tells each machine its credentials, and gives the answer.
            denied_sources: set(&["http_client", "internal_logs", "internal_metrics"]),
            // The programs of `lua` can read and write files, and end the process; `aws_ec2_metadata` tells of the node.
            denied_transforms: set(&["aws_ec2_metadata", "lua"]),
            denied_sinks: set(&["file"]),
            // librdkafka loads libraries, runs commands and reads files as it is told.
            // Without confinement, the author of a log record chooses where the sink sends it, with the credentials of the sink.
            denied_options: set(&[confinement::OPT_OUT, "librdkafka_options"]),
            denied_functions: set(&[
                "aggregate_vector_metrics",
                "dns_lookup",
                "encode_proto",
                "find_vector_metrics",
                "get_env_var",
                "get_vector_metric",
                "http_request",
                "parse_proto",
                "reverse_dns",
                "validate_json_schema",
            ]),
            files: vec!["/etc/ssl/certs/**".to_owned()],
            environment: set(&["VECTOR_SELF_NODE_NAME"]),
        }
    }
}

impl TenantPolicy {
    pub(crate) fn denied(&self, family: Family) -> &BTreeSet<String> {
        match family {
            Family::Source => &self.denied_sources,
            Family::Transform => &self.denied_transforms,
            Family::Sink => &self.denied_sinks,
        }
    }

    /// Whether an option may name a file.
    pub(crate) fn allows_file(&self, name: &str) -> bool {
        let leads_up = name.split('/').any(|part| part == "..");
        let options = MatchOptions {
            require_literal_separator: true,
            ..MatchOptions::default()
        };
        let patterns = self
            .files
            .iter()
            .filter_map(|pattern| Pattern::new(pattern).ok());
        !leads_up
            && patterns
                .into_iter()
                .any(|pattern| pattern.matches_with(name, options))
    }
}

/// Whether a section can be read and names what there is.
fn check(section: &Value) -> Result<(), String> {
    let tenants = Section::deserialize(section)
        .map_err(|error| error.to_string())?
        .tenants;
    for family in Family::ALL {
        let known = Catalogue::shipped().kinds(family);
        for kind in tenants.denied(family) {
            if !known.contains(&kind.as_str()) {
                let question = did_you_mean(kind, known.iter().copied());
                return Err(format!("there is no {} `{kind}`{question}", family.noun()));
            }
        }
    }
    let unknown = tenants
        .denied_functions
        .iter()
        .find(|name| !functions::is_known(name));
    if let Some(name) = unknown {
        return Err(format!("there is no function `{name}`"));
    }
    for pattern in &tenants.files {
        Pattern::new(pattern).map_err(|error| format!("`{pattern}` is no pattern: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use shared_validation::{Candidate, Judge, Policy, Ruleset, Rulesets};

    use super::*;
    use crate::pipeline::VectorPipeline;

    #[test]
    fn what_an_installation_tells_takes_the_place_of_what_holds_without() {
        let own = Section::of(Some(&json!({"tenants": {"deniedSinks": []}}))).tenants;
        let other = TenantPolicy::default();
        assert!(own.denied_sinks.is_empty() && !other.denied_sinks.is_empty());
        assert_eq!(own.denied_functions, other.denied_functions);
        assert_eq!(Section::of(None).tenants, other);
    }

    #[test]
    fn a_name_that_is_none_is_refused() {
        for (section, problem) in [
            (
                json!({"tenants": {"deniedSinks": ["fil"]}}),
                "did you mean `file`?",
            ),
            (
                json!({"tenants": {"deniedFunctions": ["get_env"]}}),
                "no function",
            ),
            (json!({"tenants": {"deniedSink": []}}), "unknown field"),
            (json!({"tenant": {}}), "unknown field"),
            (json!({"tenants": {"files": ["a**"]}}), "no pattern"),
        ] {
            let error = check(&section).expect_err("it is refused");
            assert!(error.contains(problem), "{error}");
        }
        assert_eq!(check(&json!({})), Ok(()));
    }

    #[test]
    fn a_policy_takes_the_section_and_names_what_it_does_not_take() {
        let ruleset = Ruleset::<VectorPipeline>::compile().expect("it compiles");
        let rulesets = Rulesets::default().with(Arc::new(ruleset));
        let read = |settings: Value| {
            let policy = Policy::read(&json!({"settings": settings}), &rulesets);
            policy.map_err(|error| error.to_string())
        };
        let section = json!({"tenants": {"deniedSinks": []}});
        let policy = read(json!({"vector": section})).expect("it is taken");
        assert_eq!(policy.settings("vector"), Some(&section));
        assert_eq!(read(json!({"vector": null})), Ok(Policy::default()));
        let error = read(json!({"vektor": null})).expect_err("no such section");
        assert_eq!(
            error,
            "settings.vektor: unknown section; the sections are vector"
        );
        let error = read(json!({"vector": {"tenants": {"files": 1}}})).expect_err("no list");
        assert!(
            error.starts_with("settings.vector: invalid type"),
            "{error}"
        );
    }

    /// Returns the rules that a tenant's pipeline with this sink breaks under a policy, each with its message.
    fn broken(sink: &Value, tenants: &Value) -> Vec<(String, String)> {
        let ruleset = Arc::new(Ruleset::<VectorPipeline>::compile().expect("it compiles"));
        let rulesets = Rulesets::default().with(Arc::clone(&ruleset) as Arc<_>);
        let file = json!({"settings": {"vector": {"tenants": tenants}}});
        let policy = Policy::read(&file, &rulesets).expect("a policy");
        let mut pipeline = json!({
            "apiVersion": "observability.kaasops.io/v1alpha1",
            "kind": "VectorPipeline",
            "metadata": {"name": "a", "namespace": "default"},
            "spec": {"sources": {"in": {"type": "kubernetes_logs"}}, "sinks": {"out": sink}},
        });
        pipeline["spec"]["sinks"]["out"]["inputs"] = json!(["in"]);
        let errors = ruleset
            .check(&Candidate::create(&pipeline).under(&policy))
            .errors;
        let errors = errors.into_iter();
        errors.map(|it| (it.rule, it.error.to_string())).collect()
    }

    #[test]
    fn the_opt_out_of_confinement_is_for_tenants_only_if_a_policy_allows_it() {
        let allowed = json!({"deniedOptions": []});
        let kafka = json!({
            "type": "kafka", "bootstrap_servers": "kafka:9092", "topic": "{{ app }}", "encoding": {"codec": "json"},
        });
        let advice = |tenants: &Value| {
            let [(rule, message)] = &broken(&kafka, tenants)[..] else {
                panic!("one error");
            };
            assert_eq!(rule, "template-confinement");
            message.contains("only administrators can turn confinement off")
        };
        assert!(advice(&json!({})));
        assert!(!advice(&allowed));
        let mut opted_out = kafka.clone();
        opted_out[confinement::OPT_OUT] = true.into();
        let nested = json!({"type": "opentelemetry", "protocol": {
            "type": "http", "uri": "{{ app }}", "encoding": {"codec": "otlp"}, (confinement::OPT_OUT): true,
        }});
        for sink in [opted_out, nested] {
            let broken_rules: Vec<_> = broken(&sink, &json!({}))
                .into_iter()
                .map(|it| it.0)
                .collect();
            assert_eq!(broken_rules, ["tenant-options"]);
            assert_eq!(broken(&sink, &allowed), []);
        }
    }

    #[test]
    fn a_file_is_allowed_by_where_it_is_and_not_by_where_it_seems_to_be() {
        let policy = TenantPolicy::default();
        assert!(policy.allows_file("/etc/ssl/certs/ca.crt"));
        assert!(policy.allows_file("/etc/ssl/certs/own/ca.crt"));
        for name in [
            "/etc/ssl/certs/../../shadow",
            "/etc/shadow",
            "etc/ssl/certs/ca.crt",
            "/var/run/secrets/kubernetes.io/serviceaccount/token",
        ] {
            assert!(!policy.allows_file(name), "{name}");
        }
    }
}
