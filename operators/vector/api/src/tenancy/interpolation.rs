//! Interpolation: Vector replaces parts of a text with environment variables of the agent and with secrets.

use std::sync::LazyLock;

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, RuleContext};
use lockstep_vector_config::interpolation::SECRET;
use lockstep_vector_config::option_path::below;
use regex::Regex;
use serde_json::Value;

use crate::tenancy::components::each;
use crate::tenancy::policy::TenantPolicy;
use crate::types::pipeline::Pipeline;

/// Maximum number of violations. One text can cause many of them.
const MAX_FOUND: usize = 200;

/// Pattern of variables and secrets that Vector recognizes anywhere in the text of a configuration.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$\$|\$(?P<plain>[[:word:].]+)|\$\{(?P<braced>[[:word:].]+)(?P<end>\}?)|SECRET\[(?P<secret>[[:word:]]+)\.")
        .expect("the pattern is valid")
});

/// Position of a text.
#[derive(Clone, Copy, PartialEq)]
enum Text {
    Name,
    Value,
}

pub(crate) fn validate<K: Pipeline>(context: &RuleContext<'_, K>, diagnostics: &mut Diagnostics) {
    let secrets = &context.object.spec().secret;
    let mut found = 0;
    each(context, |component, path, policy| {
        // The operator itself reads its selectors and does not replace references to secrets in them.
        let has_secrets = component.kind() != Some("kubernetes_logs");
        let mut check = |text: &str, what: Text, path: &FieldPath| {
            let problems =
                environment(text, what, policy).chain(secret(text, what, has_secrets, |name| {
                    secrets.contains_key(name)
                }));
            for detail in problems.take(MAX_FOUND.saturating_sub(found)) {
                found += 1;
                diagnostics.push(FieldError::invalid_hidden(path.clone(), detail));
            }
        };
        check(component.id, Text::Name, path);
        texts(component.value, path, &mut check);
    });
}

/// Returns the errors of the variables in a text.
fn environment<'a>(
    text: &'a str,
    what: Text,
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
            (what == Text::Name).then(|| "a variable is allowed in a value, not in a name".to_owned())
        }
    })
}

/// Returns the errors of the secrets in a text.
fn secret<'a>(
    text: &'a str,
    what: Text,
    has_secrets: bool,
    is_own: impl Fn(&str) -> bool + 'a,
) -> impl Iterator<Item = String> {
    let is_misplaced = (what == Text::Name || !has_secrets) && text.contains(SECRET);
    let misplaced = is_misplaced.then(|| match what {
        Text::Name => "a secret is allowed in a value, not in a name".to_owned(),
        Text::Value => "this component does not support secrets; write the value itself".to_owned(),
    });
    let named = NAMED.captures_iter(text);
    let others = named.filter_map(move |named| {
        let name = named.name("secret")?.as_str();
        (!is_own(name)).then(|| {
            format!("`spec.secret` has no `{name}`; use one of the names in `spec.secret`")
        })
    });
    misplaced.into_iter().chain(others)
}

/// Calls a function for every text in a value, including the names of fields.
fn texts(value: &Value, path: &FieldPath, check: &mut impl FnMut(&str, Text, &FieldPath)) {
    match value {
        Value::String(text) => check(text, Text::Value, path),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                texts(item, &path.index(index), check);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = below(path, name);
                check(name, Text::Name, &path);
                texts(value, &path, check);
            }
        }
        _ => {}
    }
}
