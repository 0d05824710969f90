//! Options that Vector confines, by type of sink.
//!
//! From the calls of `Template::confine` in the sinks of
//! <https://github.com/vectordotdev/vector/tree/v0.57.0/src/sinks>, compared with the real Vector in `measured.txt`.

use serde_json::Value;

use crate::vector_version::VectorVersion;

/// Sink whose paths have separate rules.
pub(crate) const FILE: &str = "file";

/// Sink with labels.
pub(crate) const LOKI: &str = "loki";

/// Sink that builds its endpoint from several options.
pub(crate) const AXIOM: &str = "axiom";

/// A type of sink with confined options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sink {
    kind: &'static str,
    /// The option that holds the confined ones and the opt-out, if they are not at the top of the sink.
    pub(crate) within: Option<&'static str>,
    /// If false, the sink has no option that turns confinement off.
    pub(crate) has_opt_out: bool,
    pub(crate) confined: &'static [Confined],
}

/// A confined option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confined {
    /// Name of the option, with `.` between the names of nested options.
    pub(crate) option: &'static str,
    pub(crate) holds: TemplateLocation,
    /// Value of `mode` for which Vector reads the option, if it does not read it in every mode.
    mode: Option<Mode>,
    /// An example of a literal prefix.
    pub(crate) prefix: &'static str,
    /// If true, the value is a credential and is not printed.
    pub(crate) is_hidden: bool,
    /// First version of Vector that no longer confines the option.
    until: Option<VectorVersion>,
}

/// The place of the templates in the value of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TemplateLocation {
    /// The value is a template.
    Template,
    /// The values of a mapping are templates, with the exception of one.
    Values { but: Option<&'static str> },
    /// The names and the values of a mapping are templates.
    NamesAndValues,
    /// The values of a mapping of headers are templates; some of them are credentials.
    Headers,
}

/// The mode of the `elasticsearch` sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Bulk,
    DataStream,
}

impl Sink {
    const fn within(self, option: &'static str) -> Self {
        Self {
            within: Some(option),
            ..self
        }
    }

    const fn without_opt_out(self) -> Self {
        Self {
            has_opt_out: false,
            ..self
        }
    }
}

impl Confined {
    const fn with_prefix(self, prefix: &'static str) -> Self {
        Self { prefix, ..self }
    }

    const fn hidden(self) -> Self {
        Self {
            is_hidden: true,
            ..self
        }
    }

    const fn in_mode(self, mode: Mode) -> Self {
        Self {
            mode: Some(mode),
            ..self
        }
    }

    const fn until(self, version: VectorVersion) -> Self {
        Self {
            until: Some(version),
            ..self
        }
    }

    /// Returns true if a version of Vector confines the option.
    pub(crate) fn is_in(&self, version: VectorVersion) -> bool {
        self.until.is_none_or(|until| version < until)
    }

    /// Returns true if Vector reads the option in the mode that the sink is in.
    pub(crate) fn applies_to(&self, options: &Value) -> bool {
        let mode = match options["mode"].as_str() {
            Some("data_stream") => Mode::DataStream,
            _ => Mode::Bulk,
        };
        self.mode.is_none_or(|own| own == mode)
    }
}

const fn holds(option: &'static str, holds: TemplateLocation) -> Confined {
    Confined {
        option,
        holds,
        mode: None,
        prefix: "logs-",
        is_hidden: false,
        until: None,
    }
}

const fn template(option: &'static str) -> Confined {
    holds(option, TemplateLocation::Template)
}

const fn sink(kind: &'static str, confined: &'static [Confined]) -> Sink {
    Sink {
        kind,
        within: None,
        has_opt_out: true,
        confined,
    }
}

const URI: Confined = template("uri").with_prefix("https://example.com/");
const HEADERS: Confined =
    holds("request.headers", TemplateLocation::Headers).with_prefix("tenant-");

const HTTP: &[Confined] = &[URI, HEADERS];
const HUMIO: &[Confined] = &[
    template("event_type"),
    template("index"),
    template("source"),
];
const SPLUNK: &[Confined] = &[
    template("index"),
    template("source"),
    template("sourcetype"),
];
const TABLE: &[Confined] = &[
    template("database").with_prefix("logs_"),
    template("table").with_prefix("logs_"),
];

/// Every sink with confined options, sorted by type.
const SINKS: &[Sink] = &[
    sink("amqp", &[template("exchange"), template("routing_key")]),
    sink(
        "aws_cloudwatch_logs",
        &[template("group_name"), template("stream_name")],
    ),
    sink(
        "aws_s3",
        &[
            template("key_prefix").with_prefix("logs/"),
            template("ssekms_key_id").with_prefix("alias/"),
        ],
    ),
    // Its URL, region and dataset are confined together; the organization becomes a header.
    sink(AXIOM, &[HEADERS, template("org_id").with_prefix("team-")]),
    sink(
        "azure_blob",
        &[template("blob_prefix").with_prefix("logs/")],
    ),
    sink("clickhouse", TABLE),
    sink("doris", TABLE),
    sink(
        "elasticsearch",
        &[
            template("bulk.index").in_mode(Mode::Bulk),
            template("data_stream.type").in_mode(Mode::DataStream),
            template("data_stream.dataset")
                .in_mode(Mode::DataStream)
                .with_prefix("app."),
            template("data_stream.namespace")
                .in_mode(Mode::DataStream)
                .with_prefix("team_"),
        ],
    ),
    // Its path has separate rules.
    sink(FILE, &[]),
    sink(
        "gcp_cloud_storage",
        &[template("key_prefix").with_prefix("logs/")],
    ),
    sink(
        "gcp_stackdriver_logs",
        &[
            template("log_id"),
            holds("labels", TemplateLocation::Values { but: None }).until(VectorVersion::V0_58),
            // The type of the resource is not a template; its labels are in the same mapping.
            holds("resource", TemplateLocation::Values { but: Some("type") })
                .until(VectorVersion::V0_58),
        ],
    ),
    sink(
        "greptimedb_logs",
        &[
            template("dbname").with_prefix("logs_"),
            template("table").with_prefix("logs_"),
            template("pipeline_name"),
            template("pipeline_version").with_prefix("v"),
        ],
    ),
    sink("http", HTTP),
    sink("humio_logs", HUMIO),
    sink("humio_metrics", HUMIO),
    sink("kafka", &[template("topic")]),
    sink(
        LOKI,
        &[
            template("tenant_id").with_prefix("team-"),
            holds("labels", TemplateLocation::NamesAndValues).with_prefix("app_"),
            holds("structured_metadata", TemplateLocation::NamesAndValues).with_prefix("app_"),
        ],
    ),
    sink("mqtt", &[template("topic")]),
    sink("nats", &[template("subject").with_prefix("logs.")]),
    sink("opentelemetry", HTTP).within("protocol"),
    sink(
        "prometheus_remote_write",
        &[template("tenant_id").with_prefix("team-")],
    ),
    sink("pulsar", &[template("topic")]),
    sink("redis", &[template("key").with_prefix("logs:")]),
    // The token is the index of the Elasticsearch API that it wraps.
    sink("sematext_logs", &[template("token").hidden()]).without_opt_out(),
    sink("splunk_hec_logs", SPLUNK),
    sink("splunk_hec_metrics", SPLUNK),
    sink("webhdfs", &[template("prefix").with_prefix("logs/")]),
];

/// Returns the confined options of a type of sink, if it has any.
pub(crate) fn of(kind: &str) -> Option<&'static Sink> {
    SINKS.iter().find(|sink| sink.kind == kind)
}
