//! Subscription of the source `kafka`. The source ends if it fails, and Vector with it.

use std::collections::BTreeSet;

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{SetOption, refuse, require};
use crate::start_up::kafka::client::{Client, State};
use crate::start_up::kafka::{c_number, posix_pattern};

pub(crate) fn validate(client: &Client<'_>, problems: &mut DiagnosticList) {
    let group = match client.state("group.id") {
        State::Is(text) => Some(c_number::trim_start(text)),
        State::Unset | State::Unknown => None,
    };
    if group == Some("") {
        let path = client.options.path("group_id");
        require(path, "must not be empty", problems);
    }
    let Some(found) = client.options.get("topics") else {
        return;
    };
    let items = found.value.as_array();
    if items.is_some_and(Vec::is_empty) {
        require(found.path.clone(), "must not be empty", problems);
    }
    let mut known = BTreeSet::new();
    for (index, value) in items.into_iter().flatten().enumerate() {
        let Some(topic) = value.as_str() else {
            continue;
        };
        let path = found.path.index(index);
        if topic.is_empty() {
            require(path, "must not be empty", problems);
        } else if client.options.is_replaced(topic) {
        } else if !known.insert(topic) {
            SetOption { path, value }.refuse("is listed twice; remove one of them", problems);
        } else if topic.starts_with('^')
            && let Some(detail) = posix_pattern::wrong(topic)
        {
            let detail = format!("is no regular expression: it {detail}");
            refuse(path, topic, detail, problems);
        }
    }
}
