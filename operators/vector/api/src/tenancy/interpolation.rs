//! Interpolation: Vector replaces parts of a text with environment variables of the agent and with secrets.

use std::sync::LazyLock;

use lockstep_shared_validation::{Diagnostics, FieldError, LazyPath, RuleContext};
use lockstep_vector_config::interpolation::{Interpolation, SECRET};
use lockstep_vector_config::{TextPosition, for_each_text};
use regex::Regex;

use crate::rules::cached_validation::CachedValidation;
use crate::tenancy::components::each;
use crate::tenancy::policy::TenantPolicy;
use crate::types::pipeline::Pipeline;

/// Maximum number of violations. One text can cause many of them.
const MAX_FOUND: usize = 200;

/// Pattern of variables and secrets that Vector recognizes anywhere in the text of a configuration. Before 0.58, the name of a backend
/// has no hyphen; a text that becomes a reference with an upgrade would stop all pipelines.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$\$|\$(?P<plain>[[:word:].]+)|\$\{(?P<braced>[[:word:].]+)(?P<end>\}?)|SECRET\[(?P<secret>[[:word:]\-]+)\.")
        .expect("the pattern is valid")
});

pub(crate) fn validate<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let secrets = &context.object.spec().secret;
    let replaces_variables = CachedValidation::of(context).interpolation == Interpolation::On;
    let mut found = 0;
    each(context, |component, path, policy| {
        // The operator itself reads its selectors and does not replace references to secrets in them.
        let has_secrets = component.kind() != Some("kubernetes_logs");
        let mut check = |text: &str, what: TextPosition, path: &LazyPath<'_>| {
            // Few texts have one of them, and a search for captures is expensive.
            let has_variables = replaces_variables && text.contains('$');
            let variables = has_variables.then(|| environment(text, what, policy));
            let is_own = |name: &str| secrets.contains_key(name);
            let secrets = text
                .contains(SECRET)
                .then(|| secret(text, what, has_secrets, is_own));
            let variables = variables.into_iter().flatten();
            let problems = variables.chain(secrets.into_iter().flatten());
            for detail in problems.take(MAX_FOUND.saturating_sub(found)) {
                found += 1;
                diagnostics.push(FieldError::invalid_hidden(path.to_path(), detail));
            }
        };
        let path = path.lazy();
        check(component.id, TextPosition::Name, &path);
        for_each_text(component.value, &path, &mut check);
    });
}

/// Returns the errors of the variables in a text.
fn environment<'a>(
    text: &'a str,
    what: TextPosition,
    policy: &'a TenantPolicy,
) -> impl Iterator<Item = String> {
    NAMED.captures_iter(text).filter_map(move |named| {
        let group = |group: &str| named.name(group).map(|name| name.as_str());
        let name = group("plain").or(group("braced"))?;
        let is_alone = group("end").is_none_or(|end| end == "}");
        if !policy.environment.contains(name) {
            Some(format!(
                "Vector replaces `${name}` with an environment variable of the agent, which a tenant may not read; write `$$` for a literal `$`"
            ))
        } else if !is_alone {
            // It is unknown whether Vector uses the variable or the default, and both would have to be validated in
            // their context.
            Some(format!("a variable must be written as its name alone, without a default: `${{{name}}}`"))
        } else {
            (what == TextPosition::Name).then(|| "a variable is allowed in a value, not in a name".to_owned())
        }
    })
}

/// Returns the errors of the secrets in a text that has some.
fn secret<'a>(
    text: &'a str,
    what: TextPosition,
    has_secrets: bool,
    is_own: impl Fn(&str) -> bool + 'a,
) -> impl Iterator<Item = String> {
    let is_misplaced = what == TextPosition::Name || !has_secrets;
    let misplaced = is_misplaced.then(|| match what {
        TextPosition::Name => "a secret is allowed in a value, not in a name".to_owned(),
        TextPosition::Value => {
            "this component does not support secrets; write the value itself".to_owned()
        }
    });
    let named = NAMED.captures_iter(text);
    let others = named.filter_map(move |named| {
        let name = named.name("secret")?.as_str();
        (!is_own(name)).then(|| {
            format!(
                "`spec.secret` has no `{name}`; add `{name}: {{type: kubernetes_secret, name: NAME}}` to it, with the name of a Secret, or use one of its names"
            )
        })
    });
    misplaced.into_iter().chain(others)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lockstep_shared_validation::{
        Policy, Ruleset, ValidationRequest, Validator, ValidatorRegistry,
    };
    use serde_json::{Value, json};

    use crate::types::pipeline::VectorPipeline;

    /// Returns the errors and warnings of a tenant's pipeline about its variables, each with its field, if agents
    /// replace variables or not.
    fn found(spec: &Value, is_replaced: bool) -> (Vec<(String, String)>, Vec<String>) {
        let ruleset = Arc::new(Ruleset::<VectorPipeline>::compile().expect("it compiles"));
        let validators = ValidatorRegistry::default().register(Arc::clone(&ruleset) as Arc<_>);
        let file = json!({"settings": {"vector": {"envVarInterpolation": is_replaced}}});
        let policy = Policy::read(&file, &validators).expect("a policy");
        let pipeline = json!({
            "apiVersion": "observability.kaasops.io/v1alpha1",
            "kind": "VectorPipeline",
            "metadata": {"name": "a", "namespace": "default"},
            "spec": spec,
        });
        let result = ruleset.validate(&ValidationRequest::create(&pipeline).with_policy(&policy));
        let errors = result.errors.into_iter();
        let errors =
            errors.filter(|it| ["tenant-environment", "tenant-files"].contains(&&*it.rule));
        let warnings = result.warnings.into_iter();
        let warnings = warnings.filter(|it| it.rule == "literal-variables");
        (
            errors
                .map(|it| (it.error.path.to_string(), it.error.detail))
                .collect(),
            warnings.map(|it| it.error.path.to_string()).collect(),
        )
    }

    /// Returns a pipeline whose sink has this tenant.
    fn sending(tenant: &str) -> Value {
        json!({
            "sources": {"in": {"type": "kubernetes_logs"}},
            "sinks": {"out": {
                "type": "loki", "inputs": ["in"], "endpoint": "http://loki:3100", "labels": {"a": "b"},
                "encoding": {"codec": "json"}, "tenant_id": tenant,
            }},
        })
    }

    fn remapping(program: &str) -> Value {
        json!({
            "sources": {"in": {"type": "kubernetes_logs"}},
            "transforms": {"t": {"type": "remap", "inputs": ["in"], "source": program}},
            "sinks": {"out": {"type": "blackhole", "inputs": ["t"]}},
        })
    }

    #[test]
    fn if_agents_replace_variables_a_tenant_may_only_name_those_that_the_policy_allows() {
        let may_not_read = |name: &str| {
            format!(
                "Vector replaces `${name}` with an environment variable of the agent, which a tenant may not read; write `$$` for a literal `$` [tenant-environment]"
            )
        };
        for (text, names) in [
            ("$$$HOME", &["HOME"][..]),
            ("${A:-${B}}", &["A", "B"]),
            ("${AWS_SECRET_ACCESS_KEY}", &["AWS_SECRET_ACCESS_KEY"]),
            ("${AWS_SECRET_ACCESS_KEY:-x}", &["AWS_SECRET_ACCESS_KEY"]),
            ("$AWS_SECRET_ACCESS_KEY", &["AWS_SECRET_ACCESS_KEY"]),
            ("$$HOME costs 5$", &[]),
            ("${VECTOR_SELF_NODE_NAME}", &[]),
        ] {
            let details = names.iter().map(|name| may_not_read(name));
            let expected: Vec<_> = details
                .map(|detail| ("spec.sinks[out].tenant_id".to_owned(), detail))
                .collect();
            assert_eq!(
                found(&sending(text), true),
                (expected, Vec::new()),
                "{text}"
            );
        }
        let at = |spec: &Value| -> Vec<String> {
            let (errors, _) = found(spec, true);
            errors.into_iter().map(|(path, _)| path).collect()
        };
        assert_eq!(
            at(&remapping(".a = \"${HOME}\"")),
            ["spec.transforms[t].source"]
        );
        let with_default = r#".a = "A${VECTOR_SELF_NODE_NAME:-" + s'}" ; .x = upcase("HOME") # '"#;
        assert_eq!(at(&remapping(with_default)), ["spec.transforms[t].source"]);
        assert_eq!(at(&remapping(".a = match(string!(.m), r'^a$')")), [""; 0]);
        let mut named = sending("a");
        named["sinks"]["out"]["labels"] = json!({"${HOME}": "a", "x$VECTOR_SELF_NODE_NAME": "b"});
        let expected = [
            "spec.sinks[out].labels[${HOME}]",
            "spec.sinks[out].labels[x$VECTOR_SELF_NODE_NAME]",
        ];
        let mut paths = at(&named);
        // A name is no place for a variable, whichever it is.
        paths.dedup();
        assert_eq!(paths, expected);
        let mut reading = sending("${VECTOR_SELF_NODE_NAME:-x}");
        reading["sinks"]["out"]["tls"] =
            json!({"ca_file": "/etc/ssl/certs/$VECTOR_SELF_NODE_NAME"});
        let (path, tenant) = ("spec.sinks[out].tls.ca_file", "spec.sinks[out].tenant_id");
        assert_eq!(at(&reading), [tenant, path]);
        assert_eq!(found(&reading, false).0, []);
    }

    #[test]
    fn if_agents_replace_no_variables_a_dollar_is_a_dollar_and_braces_are_a_warning() {
        let tenant = "spec.sinks[out].tenant_id";
        for (text, warned) in [
            ("$HOME", &[][..]),
            ("$$HOME costs 5$", &[]),
            ("${HOME}", &[tenant]),
            ("${VECTOR_SELF_NODE_NAME:-other}", &[tenant]),
        ] {
            let warned: Vec<_> = warned.iter().map(|path| (*path).to_owned()).collect();
            assert_eq!(found(&sending(text), false), (Vec::new(), warned), "{text}");
        }
        let program = r#".a = replace(string!(.b), r'(?P<x>.)', "$1 ${x}")"#;
        assert_eq!(found(&remapping(program), false), (Vec::new(), Vec::new()));
        let (errors, warnings) = found(&sending("SECRET[other.key]"), false);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(warnings, [""; 0]);
    }
}
