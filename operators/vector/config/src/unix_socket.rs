//! Unix sockets of components. Vector does not compare them when it reads a configuration, and panics when the second source
//! binds a socket.

use std::collections::BTreeMap;
use std::path::{Component as PathComponent, Path, PathBuf};

use lockstep_shared_validation::{FieldError, FieldPath};
use serde_json::{Map, Value};

use crate::component::{Component, ComponentKind, components};
use crate::diagnostic::{Check, DiagnosticList};

/// Option with the path of the socket, by type of source.
const PATHS: [(&str, &str); 5] = [
    ("dnstap", "socket_path"),
    ("fluent", "path"),
    ("socket", "path"),
    ("statsd", "path"),
    ("syslog", "path"),
];

/// Returns the path of the socket that a component binds. Paths that differ only in `.`, `..` and repeated slashes are equal.
#[must_use]
pub fn bound_by(component: &Component<'_>) -> Option<String> {
    let (_, path) = socket(component)?;
    Some(normalized(path))
}

/// Reports sources of one configuration that bind the same socket.
pub(crate) fn validate(config: &Map<String, Value>, problems: &mut DiagnosticList) {
    let mut bound: BTreeMap<String, Component<'_>> = BTreeMap::new();
    for component in components(config) {
        let Some((option, path)) = socket(&component) else {
            continue;
        };
        match bound.get(&normalized(path)) {
            Some(other) => {
                let field = FieldPath::new(component.path()).child(option);
                let detail = format!(
                    "is already used by the source `{}`; Vector panics when the second source binds the socket",
                    other.id
                );
                problems.add(Check::StartUp, FieldError::invalid(field, path, detail));
            }
            None => drop(bound.insert(normalized(path), component)),
        }
    }
}

/// Returns the option with the path of the socket that a component binds, and the path.
fn socket<'a>(component: &Component<'a>) -> Option<(&'static str, &'a str)> {
    let kind = component.kind()?;
    let (_, option) = PATHS.iter().find(|(source, _)| *source == kind)?;
    let mode = component.option("mode").and_then(Value::as_str);
    let is_unix = matches!(mode, Some("unix" | "unix_datagram" | "unix_stream"))
        // Before it had modes, `dnstap` had sockets only.
        || kind == "dnstap" && mode.is_none();
    if component.family != ComponentKind::Source || !is_unix {
        return None;
    }
    Some((option, component.option(option)?.as_str()?))
}

fn normalized(path: &str) -> String {
    let mut result = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            PathComponent::CurDir => {}
            PathComponent::ParentDir => drop(result.pop()),
            _ => result.push(part),
        }
    }
    result.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(sources: Value) -> Vec<String> {
        let config = Map::from_iter([("sources".to_owned(), sources)]);
        let mut problems = DiagnosticList::default();
        validate(&config, &mut problems);
        let problems = problems.into_diagnostics().into_iter();
        problems.map(|problem| problem.error.to_string()).collect()
    }

    #[test]
    fn two_sources_cannot_bind_one_socket() {
        let first = json!({"type": "socket", "mode": "unix_stream", "path": "/tmp/x.sock"});
        for second in [
            first.clone(),
            json!({"type": "socket", "mode": "unix_datagram", "path": "/tmp//./x.sock"}),
            json!({"type": "syslog", "mode": "unix", "path": "/tmp/y/../x.sock"}),
            json!({"type": "statsd", "mode": "unix", "path": "/tmp/x.sock"}),
            json!({"type": "fluent", "mode": "unix", "path": "/tmp/x.sock"}),
            json!({"type": "dnstap", "mode": "unix", "socket_path": "/tmp/x.sock"}),
            json!({"type": "dnstap", "socket_path": "/tmp/x.sock"}),
        ] {
            let found = messages(json!({"a": first, "b": second}));
            assert_eq!(found.len(), 1, "{second}");
            assert!(found[0].starts_with("sources[b]."), "{found:?}");
            assert!(found[0].contains("source `a`"), "{found:?}");
        }
        for second in [
            json!({"type": "socket", "mode": "unix_stream", "path": "/tmp/y.sock"}),
            json!({"type": "syslog", "mode": "tcp", "path": "/tmp/x.sock"}),
            json!({"type": "http_server", "path": "/tmp/x.sock"}),
        ] {
            assert_eq!(
                messages(json!({"a": first, "b": second})),
                [""; 0],
                "{second}"
            );
        }
    }
}
