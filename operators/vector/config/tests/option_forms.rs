//! Options whose values Vector reads with code of its own, or whose type differs from the schema that it prints.
//!
//! Each line of `option-forms.jsonl` names the Rust type in Vector 0.57 (`form`), a component with this option, and
//! values that Vector accepts and refuses, as its sources say.

use std::collections::BTreeSet;

use lockstep_vector_config::{Catalogue, ProgramScope, VrlEnvironment, validate_config};
use lockstep_vector_vrl::InProcessCompiler;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OptionForm {
    form: String,
    /// Block that contains the component, or `globals`.
    family: String,
    /// The component without the option.
    base: Map<String, Value>,
    /// Path of the option. If it is empty, the values are mappings of options.
    at: String,
    accepts: Vec<Value>,
    refuses: Vec<Value>,
}

impl OptionForm {
    /// Returns a configuration in which the option has a value.
    fn config(&self, value: &Value) -> Value {
        let mut component = Value::from(self.base.clone());
        let names: Vec<_> = self.at.split('.').filter(|name| !name.is_empty()).collect();
        let value = names
            .iter()
            .rev()
            .fold(value.clone(), |value, name| json!({ *name: value }));
        merge(&mut component, value);
        let mut config = json!({
            "sources": {"logs": {"type": "internal_logs"}, "metrics": {"type": "static_metrics", "metrics": []}},
            "sinks": {"out": {"type": "blackhole", "inputs": ["logs", "metrics"]}},
        });
        if self.family == "globals" {
            merge(&mut config, component);
            return config;
        }
        if self.family != "sources" {
            let kind = self.base["type"].as_str().unwrap_or_default();
            let input = if takes_only_metrics(kind) {
                "metrics"
            } else {
                "logs"
            };
            component["inputs"] = json!([input]);
        }
        merge(
            &mut config,
            json!({ self.family.as_str(): {"c": component} }),
        );
        config
    }
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                match into.get_mut(&name) {
                    Some(known) => merge(known, value),
                    None => drop(into.insert(name, value)),
                }
            }
        }
        (into, from) => *into = from,
    }
}

fn takes_only_metrics(kind: &str) -> bool {
    let others = [
        "metric_to_log",
        "prometheus_exporter",
        "prometheus_remote_write",
        "statsd",
    ];
    kind.ends_with("_metrics") || others.contains(&kind)
}

fn errors(config: &Value) -> Vec<String> {
    let found = validate_config(
        Catalogue::shipped(),
        config,
        &BTreeSet::new(),
        &VrlEnvironment::shared(InProcessCompiler::boxed),
        ProgramScope::Load,
    );
    let errors = found.iter().filter(|found| !found.check.is_warning());
    errors.map(|found| found.error.to_string()).collect()
}

#[test]
fn each_option_has_the_values_that_vector_accepts() {
    let mut wrong = Vec::new();
    for line in include_str!("option-forms.jsonl").lines() {
        let form: OptionForm = serde_json::from_str(line).expect("a line of the table");
        let place = format!(
            "{} ({}[{}].{})",
            form.form,
            form.family,
            form.base.get("type").unwrap_or(&Value::Null),
            form.at
        );
        for value in &form.accepts {
            let errors = errors(&form.config(value));
            if !errors.is_empty() {
                wrong.push(format!("{place} refuses {value}: {errors:?}"));
            }
        }
        for value in &form.refuses {
            if errors(&form.config(value)).is_empty() {
                wrong.push(format!("{place} accepts {value}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
