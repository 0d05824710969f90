//! Texts that Vector parses as templates only when it builds the component.

use chrono::format::{Item, StrftimeItems};

use crate::confinement::uri::axiom_endpoint;
use crate::diagnostic::DiagnosticList;
use crate::option_format::fields_of_template;
use crate::start_up::component_options::{ComponentOptions, forbid, refuse};

/// Options that are templates: type of sink, option.
const TEMPLATES: [(&str, &str); 9] = [
    ("aws_s3", "key_prefix"),
    ("aws_s3", "ssekms_key_id"),
    ("aws_sns", "message_deduplication_id"),
    ("aws_sns", "message_group_id"),
    ("aws_sqs", "message_deduplication_id"),
    ("aws_sqs", "message_group_id"),
    ("gcp_cloud_storage", "key_prefix"),
    ("sematext_logs", "token"),
    ("webhdfs", "prefix"),
];

const DETAIL: &str = "must be a template: `{{ path }}` inserts a field, in which a name with other characters than letters, digits, `_` and `@` is in quotes (`{{ labels.\"app.kubernetes.io/name\" }}`), and `%` starts a time format specifier";

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    for (kind, option) in TEMPLATES {
        if options.is_sink(&[kind])
            && let Some((path, text)) = options.text(option)
            && fields_of_template(text).is_none()
        {
            if option == "token" {
                // It is a credential.
                forbid(path, DETAIL, problems);
            } else {
                refuse(path, text, DETAIL, problems);
            }
        }
    }
    if options.is_sink(&["clickhouse"]) {
        schema_of_table(options, problems);
    }
    if options.is_sink(&["axiom"])
        && let Some((option, endpoint)) = axiom_endpoint(options.value())
        && !options.is_replaced(&endpoint)
        && fields_of_template(&endpoint).is_none()
        && let Some((path, text)) = options.text(option)
    {
        refuse(path, text, DETAIL, problems);
    }
}

/// Validates that the table is known whose schema the sink reads at the start.
fn schema_of_table(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let is_read = options.equals("format", "arrow_stream") && options.has("batch_encoding");
    for option in ["table", "database"] {
        let text = options.text(option).filter(|_| is_read);
        let Some((path, text)) = text else { continue };
        let is_static = fields_of_template(text).is_none_or(|fields| fields.is_empty())
            && StrftimeItems::new(text)
                .all(|item| matches!(item, Item::Literal(_) | Item::Space(_)));
        if !is_static {
            let detail = "cannot depend on events or on the time with `batch_encoding`: Vector reads the schema of the table at start";
            refuse(path, text, detail, problems);
        }
    }
}
