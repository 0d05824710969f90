//! Template confinement: templates in options that select a destination must begin with literal text.
//!
//! Since 0.57, Vector compares each rendered template with its literal prefix, so that the fields of an event
//! cannot choose an arbitrary topic, key, path or host. Vector does not start with a template that has no such prefix.
//!
//! <https://vector.dev/docs/reference/configuration/template-syntax/>

pub(crate) mod fields;
#[cfg(test)]
mod measured;
pub(crate) mod path;
pub(crate) mod template;
pub(crate) mod unconfined;
pub(crate) mod uri;

use std::borrow::Cow;

use lockstep_shared_validation::{FieldError, FieldPath};
use serde_json::Value;

use crate::catalogue::Catalogue;
use crate::component::{Component, ComponentKind};
use crate::confinement::fields::{Confined, Sink, TemplateLocation};
use crate::confinement::template::Template;
use crate::confinement::unconfined::Unconfined;
use crate::diagnostic::{Check, DiagnosticList};
use crate::interpolation::Interpolation;
use crate::option_path::below;

/// The option that turns confinement off for one sink.
pub const OPT_OUT: &str = "dangerously_allow_unconfined_template_resolution";

/// The user who may turn confinement off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OptOut {
    /// The author of the configuration.
    Author,
    /// An administrator, in a `ClusterVectorPipeline`; the author is a tenant who is denied the option.
    Administrator,
    /// The author, for the values of labels of `loki`, and an administrator for all else.
    AuthorOfLabels,
}

/// Validates the templates of a sink.
pub(crate) fn validate(
    catalogue: &Catalogue,
    component: &Component<'_>,
    opt_out: OptOut,
    interpolation: Interpolation,
    problems: &mut DiagnosticList,
) {
    let Some(kind) = component.kind() else {
        return;
    };
    let Some(sink) = fields::of(kind) else {
        return;
    };
    let mut path = FieldPath::new(component.path());
    let mut options = component.value;
    if let Some(within) = sink.within {
        path = path.child(within);
        options = &options[within];
    }
    let report = Report {
        vector: &catalogue.version,
        opt_out,
        within: sink.within,
        has_opt_out: sink.has_opt_out,
    };
    let version = catalogue.number();
    let is_confined = !sink.has_opt_out || options[OPT_OUT] != true;
    if kind == fields::FILE {
        let found = path::validate(options, is_confined, interpolation);
        for (option, problem) in found {
            let detail = report.detail(&problem, "/var/log/vector/");
            let value = options[option].clone();
            let error = FieldError::invalid(path.child(option), value, detail);
            problems.add(Check::Confinement, error);
        }
    }
    if !is_confined {
        return;
    }
    for confined in sink.confined.iter().filter(|option| option.is_in(version)) {
        for found in texts(catalogue, kind, sink, confined, options, &path) {
            let Some(problem) = Template::read(found.text)
                .and_then(|template| template.unconfined(interpolation, version))
            else {
                continue;
            };
            let detail = report.detail_of(&problem, confined.prefix, found.place);
            problems.add(Check::Confinement, found.error(detail));
        }
    }
    if kind == fields::AXIOM
        && let Some((option, endpoint)) = uri::axiom_endpoint(options)
        && let Some(problem) = Template::read(&endpoint)
            .and_then(|template| template.unconfined(interpolation, version))
    {
        let detail = report.detail(&problem, "https://example.com/");
        let text = options[option].as_str().unwrap_or_default();
        let found = Located::value(path.child(option), text);
        problems.add(Check::Confinement, found.error(detail));
    }
}

/// Returns the errors of a `loki` sink in which its author may turn confinement off for the values of labels: `tenant_id` and the
/// names of labels begin with literal text nevertheless.
#[must_use]
pub fn validate_loki_names(
    catalogue: &Catalogue,
    options: &Value,
    path: &FieldPath,
) -> Vec<FieldError> {
    let Some(sink) = fields::of(fields::LOKI) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    for confined in sink.confined {
        for found in texts(catalogue, fields::LOKI, sink, confined, options, path) {
            let is_confined = match found.place {
                Place::LabelValue => true,
                Place::LabelMap => found.name.is_some_and(is_prefix_of_labels),
                Place::Option | Place::LabelName => is_confined_text(catalogue, found.text),
            };
            if is_confined {
                continue;
            }
            let prefix = confined.prefix;
            let detail = format!(
                "must begin with literal text, such as `{prefix}`: the policy lets tenants turn confinement off for the values of labels, so that event fields choose neither the tenant nor the names of labels"
            );
            errors.push(found.error(detail));
        }
    }
    errors
}

/// Returns true if no event chooses the start of a text, and no variable or secret is replaced in it: Vector, which does
/// not confine the sink, would replace either with a template.
fn is_confined_text(catalogue: &Catalogue, text: &str) -> bool {
    // Workloads may replace variables, whatever the webhook knows of them.
    let interpolation = Interpolation::On;
    let confines = |template: Template<'_>| {
        template
            .unconfined(interpolation, catalogue.number())
            .is_none()
            && !template.literal_prefix().trim().is_empty()
    };
    !interpolation.is_replaced(text) && Template::read(text).is_none_or(confines)
}

/// Returns true if the name of labels that ends with `*`, which stands for fields of an event, begins with literal text.
fn is_prefix_of_labels(name: &str) -> bool {
    let prefix = name.split(['*', '%', '{']).next().unwrap_or_default();
    !Interpolation::On.is_replaced(name) && !prefix.trim().is_empty()
}

/// Place of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Option,
    LabelName,
    LabelValue,
    /// Value whose fields become labels: the name ends with `*`.
    LabelMap,
}

/// A text that Vector reads as a confined template.
struct Located<'a> {
    path: FieldPath,
    text: &'a str,
    place: Place,
    /// Name of a label.
    name: Option<&'a str>,
    /// If true, the text may hold credentials and is not printed.
    is_hidden: bool,
}

impl<'a> Located<'a> {
    fn value(path: FieldPath, text: &'a str) -> Self {
        Self {
            path,
            text,
            place: Place::Option,
            name: None,
            // The user part of a URI.
            is_hidden: text.contains("://") && text.contains('@'),
        }
    }

    fn error(self, detail: String) -> FieldError {
        if self.is_hidden {
            FieldError::invalid_hidden(self.path, detail)
        } else {
            FieldError::invalid(self.path, self.text, detail)
        }
    }
}

/// Returns every text of a confined option, with its path.
fn texts<'a>(
    catalogue: &Catalogue,
    kind: &str,
    sink: &Sink,
    confined: &Confined,
    options: &'a Value,
    path: &FieldPath,
) -> Vec<Located<'a>> {
    if !confined.applies_to(options) {
        return Vec::new();
    }
    let mut parts = confined.option.split('.');
    let first = parts.next().unwrap_or_default();
    let rest: Vec<_> = parts.collect();
    let mut names = vec![first];
    // The catalogue knows the aliases of options at the top of a sink.
    let entry = catalogue.entry(ComponentKind::Sink, kind);
    if let Some(entry) = entry.filter(|_| sink.within.is_none()) {
        names = entry.names_of(first).collect();
    }
    let mut found = Vec::new();
    for name in names {
        let mut path = path.child(name);
        let mut value = &options[name];
        for part in &rest {
            path = path.child(part);
            value = &value[*part];
        }
        match confined.holds {
            TemplateLocation::Template => {
                let text = value.as_str().map(|text| Located::value(path, text));
                found.extend(text.map(|text| Located {
                    is_hidden: text.is_hidden || confined.is_hidden,
                    ..text
                }));
            }
            TemplateLocation::Headers => {
                let hides = |name: &str| {
                    let name = name.to_ascii_lowercase();
                    CREDENTIALS.iter().any(|word| name.contains(word))
                };
                found.extend(values(value, &path).map(|(name, text)| Located {
                    is_hidden: hides(name),
                    ..text
                }));
            }
            TemplateLocation::Values { but } => {
                let values = values(value, &path).filter(|(name, _)| Some(*name) != but);
                found.extend(values.map(|(_, text)| text));
            }
            TemplateLocation::NamesAndValues => {
                let fields = value.as_object().into_iter().flatten();
                found.extend(fields.map(|(name, _)| Located {
                    place: Place::LabelName,
                    ..Located::value(below(&path, name), name)
                }));
                found.extend(values(value, &path).map(|(name, text)| Located {
                    place: if name.trim_end().ends_with('*') {
                        Place::LabelMap
                    } else {
                        Place::LabelValue
                    },
                    name: Some(name),
                    ..text
                }));
            }
        }
    }
    found
}

/// Words in the names of headers that carry credentials.
const CREDENTIALS: [&str; 5] = ["auth", "cookie", "key", "secret", "token"];

fn values<'a>(
    mapping: &'a Value,
    path: &FieldPath,
) -> impl Iterator<Item = (&'a str, Located<'a>)> {
    let fields = mapping.as_object().into_iter().flatten();
    fields.filter_map(|(name, value)| {
        let text = Located::value(below(path, name), value.as_str()?);
        Some((name.as_str(), text))
    })
}

/// Wording of the errors.
struct Report<'a> {
    /// The version of Vector.
    vector: &'a str,
    opt_out: OptOut,
    /// The option that holds the opt-out, if it is not at the top of the sink.
    within: Option<&'a str>,
    /// If false, the sink has no opt-out to advise.
    has_opt_out: bool,
}

impl Report<'_> {
    /// Describes a problem at a place: what follows from a prefix there, and who may do without.
    fn detail_of(&self, problem: &Unconfined, prefix: &str, place: Place) -> String {
        let report = Self {
            opt_out: match self.opt_out {
                OptOut::AuthorOfLabels if matches!(place, Place::LabelValue | Place::LabelMap) => {
                    OptOut::Author
                }
                OptOut::AuthorOfLabels => OptOut::Administrator,
                other => other,
            },
            ..*self
        };
        let (Unconfined::NoPrefix { field } | Unconfined::RootPrefix { field }) = problem else {
            return report.detail(problem, prefix);
        };
        let reason = "without a literal prefix, event fields could choose any destination";
        let change = match place {
            Place::Option => return report.detail(problem, prefix),
            Place::LabelName => format!(
                "begin with one, such as `{prefix}{{{{ {field} }}}}`, which renames the label in queries and dashboards"
            ),
            Place::LabelValue => format!(
                "begin with one, such as `{prefix}{{{{ {field} }}}}`, which renames each value of the label in queries and dashboards"
            ),
            Place::LabelMap => format!(
                "a prefix would make one text of the fields, so name each label instead, such as `app: \"{prefix}{{{{ {field}.app }}}}\"`, which renames each of its values in queries and dashboards"
            ),
        };
        report.text(reason, &change)
    }

    /// Describes a problem: the reason, and the change that resolves it.
    fn detail(&self, problem: &Unconfined, prefix: &str) -> String {
        let vector = self.vector;
        let (reason, change): (_, Cow<'_, str>) = match problem {
            Unconfined::NoPrefix { field } => (
                "without a literal prefix, event fields could choose any destination",
                format!("begin with one, such as `{prefix}{{{{ {field} }}}}`").into(),
            ),
            Unconfined::RootPrefix { field } => (
                "with `/` alone as literal prefix, event fields could choose any destination",
                format!("begin with more, such as `{prefix}{{{{ {field} }}}}`").into(),
            ),
            Unconfined::NoHost => (
                "without a literal host, event fields could choose any host",
                "begin with a scheme and a host, such as `https://example.com/`".into(),
            ),
            Unconfined::PartialHost => (
                "without a `/` behind the host, event fields could choose another one",
                "write `/` before the first event field".into(),
            ),
            Unconfined::EncodedSeparator => (
                "some servers read `%2F`, `%5C`, `%25` and `\\` as separators of a path",
                "write `/` before the first event field".into(),
            ),
            Unconfined::QueryOrFragment => (
                "with `?` or `#`, event fields could choose more than a path",
                "leave out the query and the fragment, or the event fields".into(),
            ),
            Unconfined::NoDirectory { field } => (
                "without a literal directory, event fields could choose any file",
                format!(
                    "begin with one below `/`, such as `{prefix}{{{{ {field} }}}}`, or set `base_dir`"
                )
                .into(),
            ),
            // No opt-out is named: it does not resolve the first, and the second is a mistake without it, too.
            Unconfined::RelativeBase => {
                return format!(
                    "must be an absolute path, such as `{prefix}`: otherwise Vector {vector} does not start"
                );
            }
            Unconfined::OutsideBase => {
                return format!(
                    "must be a path within `base_dir`: otherwise Vector {vector} does not start"
                );
            }
        };
        self.text(reason, &change)
    }

    fn text(&self, reason: &str, change: &str) -> String {
        let vector = self.vector;
        let within = self.within.map(|option| format!("{option}."));
        let option = format!("{}{OPT_OUT}: true", within.unwrap_or_default());
        let opt_out = match self.opt_out {
            _ if !self.has_opt_out => String::new(),
            OptOut::Author => format!(", or turn confinement off with `{option}`"),
            OptOut::Administrator | OptOut::AuthorOfLabels => format!(
                "; only administrators can turn confinement off, with `{option}` in a ClusterVectorPipeline"
            ),
        };
        format!("Vector {vector} does not start: {reason}; {change}{opt_out}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::start_up::validate_start_up;

    /// Returns the errors of a sink.
    fn errors(sink: &Value, opt_out: OptOut) -> Vec<FieldError> {
        let config = json!({"sinks": {"out": sink}});
        let problems = validate_start_up(Catalogue::shipped(), &config, opt_out, Interpolation::On)
            .into_iter();
        let problems = problems.filter(|problem| problem.check == Check::Confinement);
        problems.map(|problem| problem.error).collect()
    }

    #[test]
    fn the_message_names_the_field_the_value_and_a_prefix() {
        let sink = json!({"type": "redis", "key": "%F:{{ app }}"});
        let [error] = &errors(&sink, OptOut::Author)[..] else {
            panic!("one error");
        };
        assert_eq!(
            error.to_string(),
            "sinks[out].key: Invalid value: \"%F:{{ app }}\": Vector 0.57 does not start: without a literal prefix, \
             event fields could choose any destination; begin with one, such as `logs:{{ app }}`, or turn confinement \
             off with `dangerously_allow_unconfined_template_resolution: true`"
        );
    }

    #[test]
    fn the_advice_about_a_label_says_what_a_prefix_does() {
        let detail = |name: &str, value: &str| {
            let sink = json!({
                "type": "loki", "endpoint": "http://h:1", "encoding": {"codec": "json"},
                "labels": {name: value},
            });
            let [error] = &errors(&sink, OptOut::AuthorOfLabels)[..] else {
                panic!("one error");
            };
            error.detail.clone()
        };
        let field = "kubernetes.pod_labels.\"app.kubernetes.io/name\"";
        let value = detail("app", &format!("{{{{ {field} }}}}"));
        assert!(
            value.contains(&format!(
                "such as `app_{{{{ {field} }}}}`, which renames each value of the label"
            )),
            "{value}"
        );
        assert!(value.contains("turn confinement off with"), "{value}");
        let map = detail("pod_*", "{{ kubernetes.pod_labels }}");
        assert!(
            map.contains("such as `app: \"app_{{ kubernetes.pod_labels.app }}\"`"),
            "{map}"
        );
        let name = detail("{{ x }}", "a");
        assert!(name.contains("renames the label"), "{name}");
        assert!(name.contains("only administrators"), "{name}");
    }

    #[test]
    fn events_choose_neither_a_tenant_nor_names_of_labels_of_an_unconfined_sink() {
        let errors = |options: Value| {
            let path = FieldPath::new("sinks[out]");
            validate_loki_names(Catalogue::shipped(), &options, &path).len()
        };
        for text in [
            "SECRET[a.b]",
            "${TENANT}",
            "a$TENANT",
            " {{ app }}",
            "%F{{ app }}",
        ] {
            assert_eq!(errors(json!({"tenant_id": text})), 1, "{text}");
            assert_eq!(errors(json!({"labels": {text: "a"}})), 1, "{text}");
        }
        for name in [
            "*",
            " *",
            "%.f*",
            "{{ a }}*",
            "a_{{ SECRET[a.b] }}*",
            "$A*",
            "a* *",
        ] {
            let is_prefix = name.starts_with("a* ");
            let errors = errors(json!({"labels": {name: "{{ app }}"}}));
            assert_eq!(errors == 0, is_prefix, "{name}");
        }
        let free = json!({"tenant_id": "team-{{ app }}", "labels": {
            "app": "{{ app }}", "secret": "SECRET[a.b]", "pod_*": "{{ kubernetes.pod_labels }}", "a%F": "b",
        }});
        assert_eq!(errors(free), 0);
    }

    #[test]
    fn a_tenant_is_not_advised_to_set_a_denied_option() {
        let sink = json!({"type": "nats", "subject": "{{ app }}"});
        let [error] = &errors(&sink, OptOut::Administrator)[..] else {
            panic!("one error");
        };
        assert!(error.detail.contains("only administrators can"), "{error}");
    }

    #[test]
    fn credentials_are_not_printed() {
        let uri = json!({"type": "http", "uri": "https://user:secret@example.com/?a={{ app }}"});
        let header = json!({"type": "http", "request": {"headers": {
            "Authorization": "{{ user }}:secret",
        }}});
        for sink in [uri, header] {
            let errors = errors(&sink, OptOut::Author);
            assert_eq!(errors.len(), 1, "{errors:?}");
            assert!(!errors[0].to_string().contains("secret"), "{errors:?}");
        }
    }

    #[test]
    fn options_that_are_passed_to_a_wrapped_sink_are_confined() {
        let token = json!({"type": "sematext_logs", "token": "{{ app }}secret", (OPT_OUT): true});
        let [error] = &errors(&token, OptOut::Author)[..] else {
            panic!("one error");
        };
        assert_eq!(error.path.as_str(), "sinks[out].token");
        let text = error.to_string();
        assert!(!text.contains("secret"), "{text}");
        assert!(!text.contains(OPT_OUT), "{text}");
        let organization = |extra: bool| {
            let sink = json!({
                "type": "axiom", "dataset": "d", "org_id": "{{ app }}", (OPT_OUT): extra,
            });
            errors(&sink, OptOut::Author).len()
        };
        assert_eq!(organization(false), 1);
        assert_eq!(organization(true), 0);
    }

    #[test]
    fn an_index_is_confined_in_its_mode_and_under_each_name() {
        let unconfined = json!({"index": "{{ app }}"});
        let paths = |mode: &str, option: &str| {
            let sink = json!({"type": "elasticsearch", "mode": mode, (option): unconfined});
            let errors = errors(&sink, OptOut::Author).into_iter();
            let paths = errors.map(|error| error.path.as_str().to_owned());
            paths.collect::<Vec<_>>()
        };
        assert_eq!(paths("bulk", "bulk"), ["sinks[out].bulk.index"]);
        assert_eq!(paths("normal", "normal"), ["sinks[out].normal.index"]);
        assert!(paths("data_stream", "bulk").is_empty());
    }

    #[test]
    fn the_labels_of_a_resource_are_confined_and_not_its_type() {
        let sink = json!({"type": "gcp_stackdriver_logs", "resource": {
            "type": "{{ app }}", "zone": "{{ zone }}", "node": "node-{{ node }}",
        }});
        let errors = errors(&sink, OptOut::Author);
        let paths: Vec<_> = errors.iter().map(|error| error.path.as_str()).collect();
        assert_eq!(paths, ["sinks[out].resource.zone"]);
    }

    #[test]
    fn values_of_other_types_are_not_reported() {
        for sink in [
            json!({"type": "loki", "labels": ["{{ app }}"], "tenant_id": 1}),
            json!({"type": "http", "request": "{{ app }}"}),
            json!({"type": "opentelemetry", "protocol": "{{ app }}"}),
            json!({"type": "file", "path": 1, "base_dir": 2}),
            json!("{{ app }}"),
        ] {
            assert!(errors(&sink, OptOut::Author).is_empty(), "{sink}");
        }
    }
}
