//! The Grafana dashboards, and the conventions that each of them follows.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::env::root;

/// Time range that Grafana puts in for `$__rate_interval`: at least four scrapes.
const RATE_INTERVAL: &str = "4m";

/// Prefix of the line of a panel's description that gives the reason if the panel is empty in a healthy installation.
const EMPTY: &str = "Empty while ";

pub struct Dashboard {
    pub name: String,
    pub panels: Vec<Panel>,
    json: Value,
}

pub struct Panel {
    title: String,
    json: Value,
}

impl Panel {
    /// Queries of the panel by a name, as Grafana sends them.
    pub fn queries(&self) -> Vec<(String, String)> {
        let targets = list(&self.json["targets"]).iter();
        let named = targets.map(|target| {
            let name = format!("{} [{}]", self.title, text(&target["refId"]));
            (name, interpolated(text(&target["expr"])))
        });
        named.collect()
    }

    /// Reason for which the panel has no data in a healthy installation.
    pub fn reason_for_no_data(&self) -> Option<&str> {
        let description = text(&self.json["description"]);
        description.split_once(EMPTY).map(|(_, reason)| reason)
    }
}

/// Puts values in for the variables of Grafana.
fn interpolated(expr: &str) -> String {
    expr.replace("$__rate_interval", RATE_INTERVAL)
        .replace("$namespace", ".+")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub fn all() -> Vec<Dashboard> {
    let entries =
        fs::read_dir(root().join("manifests/monitoring/dashboards")).expect("the dashboards");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let dashboards = paths.iter().map(|path| {
        let content = fs::read_to_string(path).expect("a dashboard");
        let json: Value = serde_json::from_str(&content)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let panels = list(&json["panels"])
            .iter()
            .filter(|panel| panel["type"] != "row");
        Dashboard {
            name: path
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned(),
            panels: panels
                .map(|panel| Panel {
                    title: text(&panel["title"]).to_owned(),
                    json: panel.clone(),
                })
                .collect(),
            json,
        }
    });
    dashboards.collect()
}

/// Values of a query, in one line.
pub fn summary(values: &[&str]) -> String {
    match values {
        [] => "no data".to_owned(),
        [first, ..] if values.len() > 4 => format!("{first}, … ({} series)", values.len()),
        _ => values.join(", "),
    }
}

/// The conventions of Grafana's dashboard linter: variables for data source and job, a data source by variable,
/// titles, descriptions and units, and rates over the interval that fits the scrapes.
#[test]
fn dashboards_follow_the_conventions_of_the_grafana_linter() {
    let mut uids = BTreeSet::new();
    for Dashboard { name, panels, json } in all() {
        let uid = text(&json["uid"]).to_owned();
        assert!(
            !uid.is_empty() && uid.len() <= 40,
            "{name}: `uid` has up to 40 characters"
        );
        assert!(uids.insert(uid), "{name}: the `uid` is unique");
        assert!(json["id"].is_null(), "{name}: Grafana assigns the `id`");
        assert_eq!(
            json["editable"], false,
            "{name}: changes would be lost, since the file wins"
        );
        assert!(text(&json["title"]).starts_with("Lockstep / "), "{name}");
        let variables = list(&json["templating"]["list"]);
        assert_eq!(variables[0]["type"], "datasource", "{name}");
        assert_eq!(variables[0]["query"], "prometheus", "{name}");
        assert_eq!(variables[1]["name"], "namespace", "{name}");
        for variable in variables {
            assert!(
                !text(&variable["label"]).is_empty(),
                "{name}: {variable} has a label"
            );
        }
        let mut seen = BTreeSet::new();
        for panel in &panels {
            check_panel(&name, panel);
            assert!(
                seen.insert(&panel.title),
                "{name}: {} is unique",
                panel.title
            );
        }
        check_positions(&name, list(&json["panels"]));
    }
    assert!(uids.len() >= 4);
}

fn check_panel(dashboard: &str, panel: &Panel) {
    let what = format!("{dashboard}: {}", panel.title);
    let json = &panel.json;
    assert!(
        !panel.title.is_empty() && !text(&json["description"]).is_empty(),
        "{what}"
    );
    assert_eq!(json["datasource"]["uid"], "$datasource", "{what}");
    assert!(
        !text(&json["fieldConfig"]["defaults"]["unit"]).is_empty(),
        "{what} has a unit"
    );
    let targets = list(&json["targets"]);
    assert!(!targets.is_empty(), "{what} has a query");
    for target in targets {
        let expr = text(&target["expr"]);
        assert!(expr.contains("job="), "{what}: the query selects a job");
        assert!(
            expr.contains("namespace=~\"$namespace\"") || expr.contains("apiserver_"),
            "{what}: the query selects the namespace"
        );
        for function in ["rate(", "increase("] {
            let calls = expr.matches(function).count();
            assert!(
                calls == 0 || expr.matches("[$__rate_interval]").count() >= calls,
                "{what}: {function} has a range that fits the scrapes"
            );
        }
    }
}

/// Panels must not overlap on Grafana's grid, which is 24 columns wide.
fn check_positions(dashboard: &str, panels: &[Value]) {
    let mut cells = BTreeSet::new();
    for panel in panels {
        let place = |name: &str| panel["gridPos"][name].as_u64().expect("a position");
        let (x, y) = (place("x"), place("y"));
        assert!(
            x + place("w") <= 24,
            "{dashboard}: {} is on the grid",
            panel["title"]
        );
        for column in x..x + place("w") {
            for row in y..y + place("h") {
                assert!(
                    cells.insert((column, row)),
                    "{dashboard}: {} overlaps",
                    panel["title"]
                );
            }
        }
    }
}
