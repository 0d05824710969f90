//! Encodings of sinks and the frames around the encoded events.

use serde_json::Value;

use crate::component::ComponentKind;
use crate::diagnostic::DiagnosticList;
use crate::option_path::below;
use crate::start_up::component_options::{ComponentOptions, forbid, refuse, require};

/// Maximum lengths of the fields of a CEF header in bytes.
const CEF_HEADER: [(&str, usize); 4] = [
    ("encoding.cef.device_vendor", 63),
    ("encoding.cef.device_product", 63),
    ("encoding.cef.device_version", 31),
    ("encoding.cef.device_event_class_id", 1_023),
];

/// Maximum length of the length field of a frame in bytes.
const MAX_LENGTH_FIELD: u64 = 8;

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if options.equals("framing.method", "length_delimited")
        && let Some(found) = options.get("framing.length_delimited.length_field_length")
        && found
            .value
            .as_u64()
            .is_some_and(|length| length == 0 || length > MAX_LENGTH_FIELD)
    {
        found.refuse("must be from 1 to 8 bytes", problems);
    }
    if options.family != ComponentKind::Sink {
        return;
    }
    if options.equals("encoding.codec", "csv")
        && let Some(found) = options.get("encoding.csv.fields")
        && found.value.as_array().is_some_and(Vec::is_empty)
    {
        require(found.path, "must have at least one field", problems);
    }
    if options.equals("encoding.codec", "cef") {
        cef(options, problems);
    }
    if options.kind == "http" {
        payload(options, problems);
    }
}

fn cef(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    for (option, maximum) in CEF_HEADER {
        let Some((path, text)) = options.text(option) else {
            continue;
        };
        let escaped = text.chars().filter(|c| ['\\', '|'].contains(c)).count();
        if text.len() + escaped > maximum {
            let detail =
                format!("must have at most {maximum} bytes, with a `\\` before each `\\` and `|`");
            refuse(path, text, detail, problems);
        }
    }
    let Some(extensions) = options.get("encoding.cef.extensions") else {
        return;
    };
    for name in extensions
        .value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
    {
        if !name.chars().all(|c| c.is_ascii_alphabetic()) {
            let detail = "the name of an extension has only letters";
            refuse(below(&extensions.path, name), name, detail, problems);
        }
    }
}

/// Validates that the text around the events makes one JSON document.
fn payload(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    let is_list = !options.has("framing")
        || (options.equals("framing.method", "character_delimited")
            && options.equals("framing.character_delimited.delimiter", ","));
    if !is_list || !options.equals("encoding.codec", "json") {
        return;
    }
    let names = ["payload_prefix", "payload_suffix"];
    if names.iter().all(|name| !options.has(name)) {
        return;
    }
    let texts = names.map(|name| match options.get(name) {
        Some(_) => options.text(name).map(|(_, text)| text),
        None => Some(""),
    });
    let [Some(prefix), Some(suffix)] = texts else {
        return;
    };
    if serde_json::from_str::<Value>(&format!("{prefix}{{}}{suffix}")).is_err() {
        let name = names
            .into_iter()
            .find(|name| options.has(name))
            .unwrap_or(names[0]);
        let detail = "`payload_prefix`, an event and `payload_suffix` must make one JSON document, such as `{\"events\": [` and `]}`";
        forbid(options.path(name), detail, problems);
    }
}
