//! Texts that a component parses when it is built: addresses, templates, headers and programs.

use http::{HeaderName, HeaderValue, Uri};
use serde_json::Value;
use vrl::compiler::compile;

use crate::start::component::Component;

/// Options with a URI, by the type of the sink (`UriSerde` in `sinks/util/uri.rs`, and `sinks/elasticsearch/common.rs`).
const URIS: [(&str, &str); 4] = [
    ("clickhouse", "endpoint"),
    ("elasticsearch", "endpoints"),
    ("loki", "endpoint"),
    ("prometheus_remote_write", "endpoint"),
];

/// Option by which a sink permits templates that events could lead anywhere.
const UNCONFINED: &str = "dangerously_allow_unconfined_template_resolution";

/// Number of opening parentheses from which on Vector's parser has no stack left.
const DEEPEST: usize = 2_000;

/// Errors of functions that this build of VRL does not have.
const UNKNOWN_FUNCTION: [usize; 2] = [105, 610];

pub(crate) fn check(component: &Component<'_>) -> Result<(), String> {
    let Component { block, id, options } = component;
    let type_ = component.type_();
    let failed = |reason: String| format!("{block}.{id}: {reason}");
    match *block {
        "sinks" => {
            for (_, option) in URIS.iter().filter(|(of, _)| *of == type_) {
                check_uris(&options[*option]).map_err(failed)?;
            }
            if type_ == "http" {
                check_template(options).map_err(failed)?;
                check_headers(&options["request"]["headers"]).map_err(failed)?;
            }
        }
        "transforms" => {
            let condition = &options["condition"];
            let condition = condition.as_str().or(condition["source"].as_str());
            let program = options["source"].as_str().filter(|_| type_ == "remap");
            for program in program.into_iter().chain(condition) {
                check_program(program).map_err(failed)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn check_uris(value: &Value) -> Result<(), String> {
    match value {
        Value::Array(items) => items.iter().try_for_each(check_uris),
        Value::String(text) => match text.parse::<Uri>() {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("invalid uri: {error}")),
        },
        _ => Ok(()),
    }
}

/// Checks the URI of `http`, which is a template (`template.rs`): events must not choose the host.
fn check_template(options: &Value) -> Result<(), String> {
    let uri = options["uri"].as_str().unwrap_or_default();
    if uri.trim_start().starts_with("{{") && options[UNCONFINED] != true {
        return Err("template references event fields but has no literal string prefix".to_owned());
    }
    Ok(())
}

/// Checks headers (`sinks/http/config.rs`). A value with a template is checked with each event.
fn check_headers(headers: &Value) -> Result<(), String> {
    for (name, value) in headers.as_object().into_iter().flatten() {
        HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("invalid HTTP header name: {name}"))?;
        let value = value.as_str().filter(|value| !value.contains("{{"));
        HeaderValue::from_bytes(value.unwrap_or_default().as_bytes())
            .map_err(|_| format!("invalid HTTP header value of {name}"))?;
    }
    Ok(())
}

fn check_program(program: &str) -> Result<(), String> {
    if program.matches('(').count() > DEEPEST {
        return Err("the stack overflows".to_owned());
    }
    let Err(diagnostics) = compile(program, &vrl::stdlib::all()) else {
        return Ok(());
    };
    let mut errors = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.is_problem());
    match errors.find(|error| !UNKNOWN_FUNCTION.contains(&error.code)) {
        Some(error) => Err(format!("error[E{}]: {}", error.code, error.message)),
        None => Ok(()),
    }
}
