//! Texts that Vector parses as templates only when it builds the component.

use crate::confinement::uri::axiom_endpoint;
use crate::diagnostic::DiagnosticList;
use crate::option_format::fields_of_template;
use crate::start_up::component_options::{ComponentOptions, refuse};

/// Options that are templates: type of sink, option.
const TEMPLATES: [(&str, &str); 4] = [
    ("aws_s3", "key_prefix"),
    ("aws_s3", "ssekms_key_id"),
    ("gcp_cloud_storage", "key_prefix"),
    ("webhdfs", "prefix"),
];

const DETAIL: &str =
    "must be a template: `{{ path }}` inserts a field, and `%` starts a time format specifier";

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    for (kind, option) in TEMPLATES {
        if options.is_sink(&[kind])
            && let Some((path, text)) = options.text(option)
            && fields_of_template(text).is_none()
        {
            refuse(path, text, DETAIL, problems);
        }
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
