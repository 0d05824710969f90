//! Secrets of a whole configuration: the start of Vector reads them from the backends in the global option `secret`.

use std::collections::BTreeSet;

use lockstep_shared_validation::{FieldError, FieldPath};
use serde_json::Value;

use crate::catalogue::Catalogue;
use crate::diagnostic::{Check, Diagnostic, DiagnosticList};
use crate::interpolation::secret_backends;
use crate::texts::for_each_text;

/// Global option with the backends.
const BLOCK: &str = "secret";

/// Validates that each reference to a secret, such as `SECRET[backend.key]`, has a backend that can be read.
///
/// The configuration must be that of a whole Vector: the backends of a pipeline's secrets are in the configuration of its
/// agent or aggregator.
#[must_use]
pub fn validate_secrets(catalogue: &Catalogue, config: &Value) -> Vec<Diagnostic> {
    let mut problems = DiagnosticList::default();
    let mut used = BTreeSet::new();
    for_each_text(config, &FieldPath::root().lazy(), &mut |text, _, path| {
        for name in secret_backends(text, catalogue.number()) {
            used.insert(name.to_owned());
            if config[BLOCK].get(name).is_none() {
                let detail =
                    format!("refers to the secret backend `{name}`, which `{BLOCK}` does not have");
                let error = FieldError::invalid_hidden(path.to_path(), detail);
                problems.add(Check::StartUp, error);
            }
        }
    });
    for name in used {
        let backend = &config[BLOCK][&name];
        let is_empty = backend["command"].as_array().is_some_and(Vec::is_empty);
        if backend["type"] == "exec" && is_empty {
            let path = FieldPath::new(BLOCK).key(&name).child("command");
            let detail = "must not be empty: Vector panics at start";
            problems.add(Check::StartUp, FieldError::required(path, detail));
        }
    }
    problems.into_diagnostics()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(config: &Value) -> Vec<String> {
        let found = validate_secrets(Catalogue::shipped(), config);
        let paths = found.iter().map(|problem| problem.error.path.to_string());
        paths.collect()
    }

    #[test]
    fn a_secret_has_a_backend_that_can_be_read() {
        let nothing: [&str; 0] = [];
        let config = |secret: Value, text: &str| {
            json!({
                "secret": secret,
                "sinks": {"x": {"type": "http", "uri": "http://h", "auth": {"strategy": "bearer", "token": text}}},
            })
        };
        let file = json!({"b": {"type": "file", "path": "/s"}});
        let exec = json!({"b": {"type": "exec", "command": []}});
        let at_token = ["sinks.x.auth.token"];
        assert_eq!(paths(&config(file.clone(), "SECRET[b.k]")), nothing);
        assert_eq!(paths(&config(file.clone(), "SECRET[c.k]")), at_token);
        assert_eq!(paths(&config(json!({}), "a SECRET[b.k]")), at_token);
        // Vector does not read these as references.
        for text in ["SECRET[c]", "SECRET[c.]", "SECRET[.k]"] {
            assert_eq!(paths(&config(file.clone(), text)), nothing, "{text}");
        }
        assert_eq!(
            paths(&config(exec.clone(), "SECRET[b.k]")),
            ["secret[b].command"]
        );
        assert_eq!(paths(&config(exec, "x")), nothing);
        let named = json!({"sinks": {"SECRET[b.k]": {"type": "blackhole"}}});
        assert_eq!(paths(&named), ["sinks[SECRET[b.k]]"]);
    }
}
