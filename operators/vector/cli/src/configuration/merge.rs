//! Parts of a configuration → the whole. Vector has a rule for each top-level option: components are added, and most
//! other options can be set in one file only.

use std::path::Path;

use toml::map::Entry;
use toml::{Table, Value};

/// Blocks whose entries have a name that is unique in all files.
const NAMED: [&str; 5] = [
    "sources",
    "transforms",
    "sinks",
    "enrichment_tables",
    "secret",
];

/// Options that have the same value in all files that set them.
const EQUAL: [&str; 4] = [
    "wildcard_matching",
    "timezone",
    "expire_metrics",
    "expire_metrics_secs",
];

/// Directory that Vector uses if no file sets `data_dir`. It gives way to any other.
const DEFAULT_DATA_DIR: &str = "/var/lib/vector";

/// Address that Vector's API has if no file sets it. It gives way to any other.
const DEFAULT_API_ADDRESS: &str = "127.0.0.1:8686";

/// Options of `log_schema` with their defaults.
const LOG_SCHEMA: [(&str, &str); 5] = [
    ("host_key", "host"),
    ("message_key", "message"),
    ("timestamp_key", "timestamp"),
    ("source_type_key", "source_type"),
    ("metadata_key", "metadata"),
];

/// Adds the content of another file. Returns the conflicts.
pub(crate) fn append(whole: &mut Table, part: Table) -> Vec<String> {
    let mut problems = Vec::new();
    if !part.contains_key("provider") {
        // The last file decides.
        whole.remove("provider");
    }
    for (name, value) in part {
        let before = match whole.entry(name.clone()) {
            Entry::Vacant(place) => {
                place.insert(value);
                continue;
            }
            Entry::Occupied(place) => place.into_mut(),
        };
        match (name.as_str(), before, value) {
            (_, Value::Table(before), Value::Table(more)) if NAMED.contains(&name.as_str()) => {
                add_named(&name, before, more, &mut problems);
            }
            ("tests", Value::Array(before), Value::Array(more)) => {
                add_tests(before, more, &mut problems);
            }
            ("expire_metrics_per_metric_set", Value::Array(before), Value::Array(mut more)) => {
                before.append(&mut more);
            }
            ("provider", before, value) => *before = value,
            ("acknowledgements", before, value) => acknowledgements(before, value, &mut problems),
            ("data_dir", before, value) => data_dir(before, value, &mut problems),
            ("log_schema", Value::Table(before), Value::Table(more)) => {
                log_schema(before, &more, &mut problems);
            }
            ("api", Value::Table(before), Value::Table(more)) => api(before, more, &mut problems),
            ("healthchecks", Value::Table(before), Value::Table(more)) => {
                combine(
                    before,
                    more,
                    &name,
                    &[("enabled", true), ("require_healthy", false)],
                    &[],
                    &mut problems,
                );
            }
            ("schema", Value::Table(before), Value::Table(more)) => {
                let flags = [("enabled", false), ("validation", false)];
                combine(
                    before,
                    more,
                    &name,
                    &flags,
                    &["log_namespace"],
                    &mut problems,
                );
            }
            ("proxy", Value::Table(before), Value::Table(more)) => {
                proxy(before, more, &mut problems);
            }
            ("telemetry", Value::Table(before), Value::Table(more)) => {
                let tags = |table: &Table| table.get("tags").and_then(Value::as_table).cloned();
                let mut all = tags(before).unwrap_or_default();
                for (tag, value) in tags(&more).unwrap_or_default() {
                    if all.get(&tag) != Some(&Value::Boolean(true)) {
                        all.insert(tag, value);
                    }
                }
                before.insert("tags".to_owned(), Value::Table(all));
            }
            (_, before, value) if EQUAL.contains(&name.as_str()) && *before != value => {
                problems.push(conflict(&name));
            }
            // The first file decides.
            _ => {}
        }
    }
    problems
}

/// Adds components that replace those of the same name, as Vector does with files in folders such as `sinks`.
pub(crate) fn replace(whole: &mut Table, block: &str, components: Table) {
    if block == "tests" {
        let tests = components.into_iter().map(|(_, test)| test);
        let before = whole
            .entry(block)
            .or_insert_with(|| Value::Array(Vec::new()));
        // Validation reports a value of another type.
        if let Value::Array(before) = before {
            before.extend(tests);
        }
    } else if let Value::Table(before) = whole
        .entry(block)
        .or_insert_with(|| Value::Table(Table::new()))
    {
        before.extend(components);
    }
}

fn conflict(option: &str) -> String {
    format!("{option}: another file sets a different value; set it in one of them")
}

fn add_named(block: &str, before: &mut Table, more: Table, problems: &mut Vec<String>) {
    for (name, value) in more {
        match before.entry(name) {
            Entry::Vacant(place) => drop(place.insert(value)),
            Entry::Occupied(place) => problems.push(format!(
                "{block}[{}]: the name is already used in another file; rename one of them",
                place.key()
            )),
        }
    }
}

fn add_tests(before: &mut Vec<Value>, more: Vec<Value>, problems: &mut Vec<String>) {
    let name = |test: &Value| test.get("name").and_then(Value::as_str).map(str::to_owned);
    let names: Vec<_> = before.iter().filter_map(name).collect();
    for test in more {
        match name(&test).filter(|name| names.contains(name)) {
            Some(name) => problems.push(format!(
                "tests: another file has a test `{name}`; rename one of them"
            )),
            None => before.push(test),
        }
    }
}

/// Merges `acknowledgements`, which is a boolean or a table with `enabled`.
fn acknowledgements(before: &mut Value, value: Value, problems: &mut Vec<String>) {
    let enabled = |value: &Value| match value {
        Value::Table(table) => table.get("enabled").cloned(),
        value => Some(value.clone()),
    };
    match (enabled(before), enabled(&value)) {
        (Some(before), Some(value)) if before != value => {
            problems.push(conflict("acknowledgements"));
        }
        (None, _) => *before = value,
        _ => {}
    }
}

fn data_dir(before: &mut Value, value: Value, problems: &mut Vec<String>) {
    let path = |value: &Value| value.as_str().map(|path| Path::new(path).to_owned());
    let is_default =
        |value: &Value| path(value).is_some_and(|path| path == Path::new(DEFAULT_DATA_DIR));
    if is_default(before) {
        *before = value;
    } else if !is_default(&value) && path(before) != path(&value) {
        problems.push(conflict("data_dir"));
    }
}

/// Merges `log_schema`. In Vector, an option that a file leaves out has its default, which differs from a value that
/// another file has set before.
fn log_schema(before: &mut Table, more: &Table, problems: &mut Vec<String>) {
    let value = |table: &Table, name: &str, default: &str| {
        table
            .get(name)
            .cloned()
            .unwrap_or_else(|| Value::from(default))
    };
    if LOG_SCHEMA
        .iter()
        .all(|(name, default)| value(more, name, default).as_str() == Some(default))
    {
        return;
    }
    for (name, default) in LOG_SCHEMA {
        let (old, new) = (value(before, name, default), value(more, name, default));
        if old.as_str() != Some(default) && old != new {
            problems.push(format!(
                "log_schema.{name}: an earlier file sets it, and this one has another value or its default, `{default}`; set all options of `log_schema` in one file"
            ));
        } else {
            before.insert(name.to_owned(), new);
        }
    }
}

fn api(before: &mut Table, mut more: Table, problems: &mut Vec<String>) {
    let is_default = |value: &Value| value.as_str() == Some(DEFAULT_API_ADDRESS);
    if let Some(address) = more
        .remove("address")
        .filter(|address| !is_default(address))
    {
        match before.get("address").filter(|before| !is_default(before)) {
            Some(before) if *before != address => problems.push(conflict("api.address")),
            _ => drop(before.insert("address".to_owned(), address)),
        }
    }
    combine(before, more, "api", &[("enabled", false)], &[], problems);
}

fn proxy(before: &mut Table, mut more: Table, problems: &mut Vec<String>) {
    let is_set = |table: &Table| match table.get("no_proxy") {
        Some(Value::Array(hosts)) => !hosts.is_empty(),
        value => value.is_some(),
    };
    if is_set(before) && is_set(&more) {
        problems
            .push("proxy.no_proxy: another file sets it, too; set it in one of them".to_owned());
        more.remove("no_proxy");
    }
    if !is_set(before) {
        before.remove("no_proxy");
    }
    combine(
        before,
        more,
        "proxy",
        &[("enabled", true)],
        &["http", "https"],
        problems,
    );
}

/// Merges the options of a table. A flag has its default unless one of the files sets the opposite; `equal` options
/// have the same value in all files that set them.
fn combine(
    before: &mut Table,
    more: Table,
    block: &str,
    flags: &[(&str, bool)],
    equal: &[&str],
    problems: &mut Vec<String>,
) {
    for (name, value) in more {
        let flag = flags.iter().find(|(flag, _)| *flag == name);
        match before.entry(name.clone()) {
            Entry::Vacant(place) => drop(place.insert(value)),
            Entry::Occupied(mut place) => {
                if flag.is_some_and(|(_, default)| value == Value::Boolean(!default)) {
                    place.insert(value);
                } else if equal.contains(&name.as_str()) && *place.get() != value {
                    problems.push(conflict(&format!("{block}.{name}")));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
