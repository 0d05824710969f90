//! Page with the effect of every field.

use super::{
    Effect, Row, of_aggregators, of_cluster_aggregator, of_every_workload, of_vector, pod,
};

#[test]
fn the_page_lists_every_field() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/vector/fields.md"
    );
    let page = page();
    if std::env::var_os("LOCKSTEP_UPDATE").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    let committed = std::fs::read_to_string(path).expect("the page");
    assert!(
        committed == page,
        "docs/vector/fields.md is not current: run this test with LOCKSTEP_UPDATE=1"
    );
}

fn page() -> String {
    let sections = [
        (
            "All kinds",
            "In `spec.agent` of a `Vector`, and in `spec` of a `VectorAggregator` and of a `ClusterVectorAggregator`.",
            of_every_workload(),
        ),
        (
            "Agents",
            "In `spec.agent` of a `Vector`.",
            pod::strategy_of_agents(),
        ),
        ("`Vector`", "In `spec`.", of_vector()),
        ("Both kinds of aggregators", "In `spec`.", of_aggregators()),
        (
            "`ClusterVectorAggregator`",
            "In `spec`.",
            of_cluster_aggregator(),
        ),
    ];
    let mut page = include_str!("page.md").to_owned();
    for (title, place, rows) in sections {
        page.push_str(&format!(
            "\n## {title}\n\n{place}\n\n| field | effect |\n|---|---|\n"
        ));
        for row in &rows {
            page.push_str(&format!("| `{}` | {} |\n", row.field, effect(row)));
        }
    }
    page
}

fn effect(row: &Row) -> String {
    let objects = match &row.effect {
        Effect::Configuration => return "the configuration of Vector".to_owned(),
        Effect::None(reason) => return format!("none: {reason}"),
        Effect::Objects(objects) => objects,
    };
    let mut places: Vec<(String, Vec<String>)> = Vec::new();
    for (kind, suffix, pointer, _) in objects {
        let (kind, path) = match (*kind, pointer.strip_prefix("/spec/template")) {
            ("workload", Some(in_template)) => ("Pods", in_template),
            ("workload", None) => ("DaemonSet, Deployment, StatefulSet", *pointer),
            (kind, _) => (kind, *pointer),
        };
        let object = match *suffix {
            "" => kind.to_owned(),
            suffix => format!("{kind} `…-{suffix}`"),
        };
        let path = field_path(path);
        match places.iter_mut().find(|(known, _)| *known == object) {
            Some((_, paths)) => paths.push(path),
            None => places.push((object, vec![path])),
        }
    }
    let places = places.into_iter();
    let places = places.map(|(object, paths)| format!("{object}: {}", paths.join(", ")));
    let places = places.collect::<Vec<_>>().join("; ");
    let given = row.given.as_object().into_iter().flatten();
    let given = given.map(|(name, value)| format!("`{name}: {value}`"));
    let given = given.collect::<Vec<_>>().join(", ");
    if given.is_empty() {
        places
    } else {
        format!("{places}; tested with {given}")
    }
}

/// Returns the path of a field in the form of `kubectl explain`, from a JSON pointer.
fn field_path(pointer: &str) -> String {
    let mut path = String::new();
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        if token.parse::<usize>().is_ok() || token.contains(['.', '/']) {
            path.push_str(&format!("[{token}]"));
        } else {
            let dot = if path.is_empty() { "" } else { "." };
            path.push_str(&format!("{dot}{token}"));
        }
    }
    if path.is_empty() {
        "the whole object".to_owned()
    } else {
        format!("`{path}`")
    }
}
