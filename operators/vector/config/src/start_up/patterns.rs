//! Regular expressions and glob patterns.

use glob::Pattern;
use regex::bytes::Regex;

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, refuse};

/// Sources that join lines by regular expressions.
const MULTILINE: &[&str] = &["aws_s3", "docker_logs", "file"];

/// Options that are lists of glob patterns: type of source, option.
const GLOBS: [(&str, &str); 11] = [
    ("file", "exclude"),
    ("file", "include"),
    ("kubernetes_logs", "exclude_paths_glob_patterns"),
    ("kubernetes_logs", "include_paths_glob_patterns"),
    ("aws_kinesis_firehose", "common_attributes"),
    ("heroku_logs", "query_parameters"),
    ("http", "headers"),
    ("http", "query_parameters"),
    ("http_server", "headers"),
    ("http_server", "query_parameters"),
    ("opentelemetry", "http.headers"),
];

/// Sources whose patterns are those of files.
const FILES: [&str; 2] = ["file", "kubernetes_logs"];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if options.is_source(MULTILINE) {
        expression(options, "multiline.start_pattern", problems);
        expression(options, "multiline.condition_pattern", problems);
    }
    if options.is_source(&["file"]) {
        expression(options, "message_start_indicator", problems);
    }
    for (kind, option) in GLOBS {
        if !options.is_source(&[kind]) {
            continue;
        }
        let of_names = !FILES.contains(&kind);
        for (path, text) in options.texts(option) {
            // The name of a header or a parameter is a pattern only if it has an asterisk.
            if of_names && !text.contains('*') {
                continue;
            }
            if let Err(error) = Pattern::new(text) {
                refuse(
                    path,
                    text,
                    format!("is no glob pattern: {}", error.msg),
                    problems,
                );
            }
        }
    }
}

fn expression(options: &ComponentOptions<'_>, option: &str, problems: &mut DiagnosticList) {
    let Some((path, text)) = options.text(option) else {
        return;
    };
    if Regex::new(text).is_err() {
        let detail = "is no regular expression: check the parentheses and brackets; look-around and back-references are not supported";
        refuse(path, text, detail, problems);
    }
}
