//! What Vector puts in the place of a part of a text: variables of the agent's environment, and secrets.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use shared_validation::{Diagnostics, FieldError, FieldPath, RuleContext};

use super::{SECRET, each};
use crate::option_errors::below;
use crate::pipeline::Pipeline;
use crate::tenant_policy::TenantPolicy;

/// How many findings are made: what is found in one text is made for each part of it.
const MOST_FOUND: usize = 200;

/// As Vector reads them in the text of a configuration, wherever they stand.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$\$|\$(?P<plain>[[:word:].]+)|\$\{(?P<braced>[[:word:].]+)(?P<end>\}?)|SECRET\[(?P<secret>[[:word:]]+)\.")
        .expect("a pattern")
});

/// What a text is.
#[derive(Clone, Copy, PartialEq)]
enum Text {
    Name,
    Value,
}

pub(super) fn validate<K: Pipeline>(subject: &RuleContext<'_, K>, findings: &mut Diagnostics) {
    let secrets = &subject.object.spec().secret;
    let mut found = 0;
    each(subject, |component, path, policy| {
        // Its selectors are read by the operator itself, which replaces no names of secrets in them.
        let has_secrets = component.kind() != Some("kubernetes_logs");
        let mut judge = |text: &str, what: Text, path: &FieldPath| {
            let problems =
                environment(text, what, policy).chain(secret(text, what, has_secrets, |name| {
                    secrets.contains_key(name)
                }));
            for detail in problems.take(MOST_FOUND.saturating_sub(found)) {
                found += 1;
                findings.push(FieldError::invalid_hidden(path.clone(), detail));
            }
        };
        judge(component.id, Text::Name, path);
        texts(component.value, path, &mut judge);
    });
}

/// What is wrong with the variables in a text.
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
                "Vector replaces `${name}` by a variable of the agent's environment, which is not the tenant's; write `$$` for a `$`"
            ))
        } else if !is_alone {
            // Which of the two is read is not known here, and each would have to be judged with all around it.
            Some(format!("a variable has its name alone, without a default: `${{{name}}}`"))
        } else {
            (what == Text::Name).then(|| "a variable has its place in a value, not in a name".to_owned())
        }
    })
}

/// What is wrong with the secrets in a text.
fn secret<'a>(
    text: &'a str,
    what: Text,
    has_secrets: bool,
    is_own: impl Fn(&str) -> bool + 'a,
) -> impl Iterator<Item = String> {
    let is_misplaced = (what == Text::Name || !has_secrets) && text.contains(SECRET);
    let misplaced = is_misplaced.then(|| match what {
        Text::Name => "a secret has its place in a value, not in a name".to_owned(),
        Text::Value => "no option of this component is secret; write it out".to_owned(),
    });
    let named = NAMED.captures_iter(text);
    let others = named.filter_map(move |named| {
        let name = named.name("secret")?.as_str();
        (!is_own(name))
            .then(|| format!("`spec.secret` has no `{name}`; name one of its own secrets"))
    });
    misplaced.into_iter().chain(others)
}

/// Calls with every text in a value, names of fields included.
fn texts(value: &Value, path: &FieldPath, judge: &mut impl FnMut(&str, Text, &FieldPath)) {
    match value {
        Value::String(text) => judge(text, Text::Value, path),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                texts(item, &path.index(index), judge);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = below(path, name);
                judge(name, Text::Name, &path);
                texts(value, &path, judge);
            }
        }
        _ => {}
    }
}
