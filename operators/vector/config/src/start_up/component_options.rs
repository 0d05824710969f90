//! Options of a component by their names in the catalogue, whatever alias the configuration uses.

use lockstep_shared_validation::{FieldError, FieldPath};
use serde_json::Value;

use crate::catalogue::{Catalogue, Entry};
use crate::component::{Component, ComponentKind};
use crate::diagnostic::{Check, DiagnosticList};
use crate::interpolation::{Interpolation, has_secret};
use crate::options::Options;
use crate::start_up::sink_traits::{self, SinkTrait};
use crate::vector_version::VectorVersion;

/// Sinks that read their endpoint as a text.
const TEXT_ENDPOINTS: [&str; 6] = [
    "datadog_events",
    "datadog_logs",
    "datadog_metrics",
    "datadog_traces",
    "sematext_logs",
    "sematext_metrics",
];

/// Options of a component whose type the catalogue contains.
pub(crate) struct ComponentOptions<'a> {
    pub(crate) family: ComponentKind,
    pub(crate) kind: &'a str,
    component: Component<'a>,
    entry: &'a Entry,
    options: &'a Options,
    /// The option that holds the options of a wrapped component.
    within: Option<&'static str>,
    pub(crate) interpolation: Interpolation,
    /// Version of Vector for which the component is validated.
    pub(crate) version: VectorVersion,
}

/// Sink that wraps the sink `http` in an option.
const OPENTELEMETRY: &str = "opentelemetry";

/// Options that a component has itself if it wraps another one.
const OF_THE_WRAPPER: [&str; 2] = ["buffer", "proxy"];

/// Option that is set.
pub(crate) struct SetOption<'a> {
    pub(crate) path: FieldPath,
    pub(crate) value: &'a Value,
}

impl<'a> ComponentOptions<'a> {
    pub(crate) fn new(
        catalogue: &'a Catalogue,
        component: &Component<'a>,
        interpolation: Interpolation,
    ) -> Option<Self> {
        let kind = component.kind()?;
        let entry = catalogue.entry(component.family, kind)?;
        let wraps = component.family == ComponentKind::Sink && kind == OPENTELEMETRY;
        Some(Self {
            family: component.family,
            kind: if wraps { "http" } else { kind },
            component: *component,
            entry,
            options: catalogue.options(entry),
            within: wraps.then_some("protocol"),
            interpolation,
            version: catalogue.number(),
        })
    }

    /// Returns the type and the options as they are written.
    pub(crate) fn value(&self) -> &'a Value {
        self.component.value
    }

    /// Returns true if the version of Vector has this option at the top level of the component.
    pub(crate) fn is_known(&self, option: &str) -> bool {
        self.options.has(option)
    }

    /// Returns true if an option is an absolute URL, or a list of these, so that its format is validated with the options.
    pub(crate) fn is_http_endpoint(&self, option: &str) -> bool {
        self.options.is_http_endpoint(option)
    }

    /// Returns true if the component reads its endpoint as a text that must be an absolute URL when the sink is validated.
    pub(crate) fn has_text_endpoint(&self) -> bool {
        self.version >= VectorVersion::V0_58 && self.is_sink(&TEXT_ENDPOINTS)
    }

    /// Returns true if the component is of this family and type.
    pub(crate) fn is(&self, family: ComponentKind, kind: &str) -> bool {
        self.family == family && self.kind == kind
    }

    pub(crate) fn is_sink(&self, kinds: &[&str]) -> bool {
        self.family == ComponentKind::Sink && kinds.contains(&self.kind)
    }

    /// Returns true if the component is a sink with this part.
    pub(crate) fn has_trait(&self, part: SinkTrait) -> bool {
        self.family == ComponentKind::Sink && sink_traits::has(self.kind, part)
    }

    pub(crate) fn is_source(&self, kinds: &[&str]) -> bool {
        self.family == ComponentKind::Source && kinds.contains(&self.kind)
    }

    /// Returns an option by its path, with `.` between the names of nested options. A null counts as absent.
    pub(crate) fn get(&self, option: &str) -> Option<SetOption<'a>> {
        let mut parts = self.parts(option);
        let first = parts.next()?;
        let names = self.entry.names_of(first);
        let (name, value) = names
            .into_iter()
            .find_map(|name| Some((name, self.component.option(name)?)))?;
        let mut path = FieldPath::new(self.component.path()).child(name);
        let mut value = value;
        for part in parts {
            path = path.child(part);
            value = value.get(part)?;
        }
        (!value.is_null()).then_some(SetOption { path, value })
    }

    /// Returns an option that is a text. A text that Vector replaces with a variable or a secret is not returned,
    /// because its final value is unknown.
    pub(crate) fn text(&self, option: &str) -> Option<(FieldPath, &'a str)> {
        let found = self.get(option)?;
        let text = found.value.as_str()?;
        (!self.is_replaced(text)).then_some((found.path, text))
    }

    /// Returns the texts of an option that is a list of texts, without those that Vector replaces.
    pub(crate) fn texts(&self, option: &str) -> Vec<(FieldPath, &'a str)> {
        let Some(found) = self.get(option) else {
            return Vec::new();
        };
        let items = found.value.as_array().into_iter().flatten().enumerate();
        let texts = items.filter_map(|(index, item)| {
            let text = item.as_str()?;
            (!self.is_replaced(text)).then(|| (found.path.index(index), text))
        });
        texts.collect()
    }

    /// Returns true if Vector replaces a part of a text, so that the final text is unknown.
    pub(crate) fn is_replaced(&self, text: &str) -> bool {
        self.interpolation.is_replaced(text) || has_secret(text, self.version)
    }

    pub(crate) fn has(&self, option: &str) -> bool {
        self.get(option).is_some()
    }

    /// Returns true if an option has this text as value.
    pub(crate) fn equals(&self, option: &str, text: &str) -> bool {
        self.get(option).is_some_and(|found| found.value == text)
    }

    /// Returns true if an option is `true`.
    pub(crate) fn is_true(&self, option: &str) -> bool {
        let found = self.get(option);
        found.is_some_and(|found| *found.value == Value::Bool(true))
    }

    /// Returns true if an option is `false`.
    pub(crate) fn is_false(&self, option: &str) -> bool {
        let found = self.get(option);
        found.is_some_and(|found| *found.value == Value::Bool(false))
    }

    /// Returns the path of an option, which may be absent.
    pub(crate) fn path(&self, option: &str) -> FieldPath {
        let parts = self.parts(option);
        parts.fold(FieldPath::new(self.component.path()), |path, name| {
            path.child(name)
        })
    }

    /// Returns the names of an option and of the options that contain it.
    fn parts<'o>(&self, option: &'o str) -> impl Iterator<Item = &'o str> {
        let is_own = OF_THE_WRAPPER.iter().any(|own| option.starts_with(own));
        let within = self.within.filter(|_| !is_own);
        within.into_iter().chain(option.split('.'))
    }
}

impl SetOption<'_> {
    /// Reports the value. A text that may hold credentials is not printed.
    pub(crate) fn refuse(self, detail: impl Into<String>, problems: &mut DiagnosticList) {
        if let Some(text) = self.value.as_str() {
            return refuse(self.path, text, detail, problems);
        }
        let error = FieldError::invalid(self.path, self.value.clone(), detail);
        problems.add(Check::StartUp, error);
    }
}

/// Reports a text. It is not printed if it may hold credentials: the user part of a URI, or a parameter of a URI or of a
/// connection string.
pub(crate) fn refuse(
    path: FieldPath,
    text: &str,
    detail: impl Into<String>,
    problems: &mut DiagnosticList,
) {
    let error = if text.contains(['@', '=']) {
        FieldError::invalid_hidden(path, detail)
    } else {
        FieldError::invalid(path, text, detail)
    };
    problems.add(Check::StartUp, error);
}

/// Reports an option that is missing.
pub(crate) fn require(path: FieldPath, detail: impl Into<String>, problems: &mut DiagnosticList) {
    problems.add(Check::StartUp, FieldError::required(path, detail));
}

/// Reports an option that cannot be set beside others.
pub(crate) fn forbid(path: FieldPath, detail: impl Into<String>, problems: &mut DiagnosticList) {
    problems.add(Check::StartUp, FieldError::forbidden(path, detail));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::catalogue::Catalogue;
    use crate::confinement::OptOut;
    use crate::interpolation::Interpolation;
    use crate::start_up::validate_start_up;

    fn messages(block: &str, component: &Value) -> String {
        let config = json!({ (block): {"x": component} });
        let found = validate_start_up(
            Catalogue::shipped(),
            &config,
            OptOut::Author,
            Interpolation::On,
        );
        let found = found.iter().map(|problem| problem.error.to_string());
        found.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn credentials_in_connection_strings_are_not_printed() {
        for (block, component) in [
            (
                "sources",
                json!({"type": "postgresql_metrics", "endpoints": ["user=a password=hidden"]}),
            ),
            (
                "sources",
                json!({"type": "redis", "key": "k", "url": "http://a:hidden@example.com"}),
            ),
            (
                "sinks",
                json!({"type": "socket", "mode": "tcp", "address": "https://example.com?token=hidden"}),
            ),
            (
                "sinks",
                json!({"type": "azure_blob", "container_name": "c", "connection_string": "AccountKey=hidden"}),
            ),
        ] {
            let printed = messages(block, &component);
            assert!(printed.contains("[x]"), "{component}");
            assert!(!printed.contains("hidden"), "{printed}");
        }
    }

    #[test]
    fn a_text_that_vector_replaces_is_not_validated() {
        for endpoint in ["${HOST}", "SECRET[own.host]"] {
            let sink = json!({"type": "elasticsearch", "endpoints": [endpoint]});
            assert_eq!(messages("sinks", &sink), "");
        }
        let sink = json!({"type": "elasticsearch", "endpoints": ["host:9200"]});
        assert!(messages("sinks", &sink).contains("endpoints[0]"));
    }
}
