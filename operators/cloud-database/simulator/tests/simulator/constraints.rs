//! Constraints in the documentation of the service model, and what enforces each in `CloudDatabase`. The list is in
//! `constraints.yaml` of the kind, and this test says which statements are missing there or are no longer documented.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use lockstep_cloud_database_api::effects::{Effect, SETTINGS};
use lockstep_cloud_database_api::ruleset;
use lockstep_shared_validation::Validator;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;
use serde::Deserialize;
use serde_json::Value;

use crate::model::{botocore, service};

/// Operations whose parameters are settings of an instance.
const OPERATIONS: [&str; 2] = ["CreateDBInstance", "ModifyDBInstance"];

/// Other operations that the controller calls with values of the spec.
const OTHER_OPERATIONS: [&str; 5] = [
    "RestoreDBInstanceFromDBSnapshot",
    "RestoreDBInstanceToPointInTime",
    "CreateDBInstanceReadReplica",
    "PromoteReadReplica",
    "DeleteDBInstance",
];

/// Operation that sets tags. Its limits are in the documentation of the shape `Tag`, whose members are named after the shape.
const TAGGING: &str = "AddTagsToResource";

/// Words by which a sentence is about a limit.
const LIMITS: [&str; 5] = [
    " must ",
    " can be from ",
    " can only ",
    " only if ",
    " only supported ",
];

/// Reasons why no rule enforces a constraint, with their words in the documentation.
const REASONS: [(&str, &str); 5] = [
    ("controller", "the requests of the controller satisfy it"),
    ("information", "no limit on a value"),
    ("other-engine", "another engine"),
    (
        "secret",
        "the controller checks the Secret before each call",
    ),
    (
        "state-of-aws",
        "RDS checks it: it depends on what exists in AWS",
    ),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    without_field: BTreeSet<String>,
    constraints: Vec<Constraint>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Constraint {
    parameter: String,
    operations: BTreeSet<String>,
    statement: String,
    #[serde(default)]
    rules: Vec<String>,
    #[serde(default)]
    reason: Option<String>,
}

/// Parameter and statement.
type Key = (String, String);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn list() -> List {
    let path = root().join("operators/cloud-database/api/constraints.yaml");
    let text = fs::read_to_string(path).expect("the list");
    serde_saphyr::from_str(&text).expect("a list")
}

/// Members of the parameters of an operation.
fn parameters<'a>(
    service: &'a Value,
    operation: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let shape = format!("{operation}Message");
    let members = service["shapes"][shape]["members"].as_object();
    members.expect("parameters").iter()
}

/// Reads the statements about limits in the documentation of a parameter: the items of lists of constraints and of valid
/// values, and sentences with words of [`LIMITS`]. An item has the engine before it if the list is about one.
fn statements(documentation: &str) -> Vec<String> {
    let mut found = Statements::default();
    let mut reader = Reader::from_str(documentation);
    loop {
        match reader.read_event().expect("well-formed documentation") {
            Event::Start(tag) => found.start(tag.name().as_ref()),
            Event::End(tag) => found.end(tag.name().as_ref()),
            Event::Text(text) => found.text(&text.decode().expect("UTF-8")),
            Event::GeneralRef(name) => {
                let name = name.decode().expect("UTF-8");
                found.text(resolve_predefined_entity(&name).expect("a predefined entity"));
            }
            Event::Eof => return found.all,
            _ => {}
        }
    }
}

#[derive(Default)]
struct Statements {
    all: Vec<String>,
    /// Engine that a list is about.
    engine: String,
    text: String,
    /// Depth in nested lists.
    depth: usize,
    /// If true, the items of the next list are statements.
    is_list: bool,
}

impl Statements {
    fn start(&mut self, tag: &[u8]) {
        match tag {
            b"li" => {
                self.depth += 1;
                if self.depth == 1 {
                    self.text.clear();
                }
            }
            b"p" | b"dt" if self.depth == 0 => self.text.clear(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.text += text;
    }

    fn end(&mut self, tag: &[u8]) {
        match tag {
            b"dt" => self.engine = normal(&self.text),
            b"dd" => self.engine.clear(),
            b"li" => {
                self.depth -= 1;
                if self.depth == 0 && self.is_list {
                    self.add(&self.text.clone());
                }
            }
            b"p" if self.depth == 0 => self.paragraph(&normal(&self.text.clone())),
            _ => {}
        }
    }

    fn paragraph(&mut self, text: &str) {
        let headings = ["onstraints", "Valid Values", "values are valid"];
        self.is_list = text.ends_with(':') && headings.iter().any(|it| text.contains(it));
        if self.is_list {
            return;
        }
        for heading in ["Constraints:", "Valid Values:"] {
            if let Some(rest) = text.strip_prefix(heading) {
                self.add(rest);
                return;
            }
        }
        let is_limit = |it: &&str| LIMITS.iter().any(|words| it.contains(words));
        for sentence in text.split(". ").filter(is_limit) {
            self.add(sentence);
        }
    }

    fn add(&mut self, text: &str) {
        let text = normal(text);
        let text = text.trim_end_matches('.');
        self.all.push(if self.engine.is_empty() {
            text.to_owned()
        } else {
            format!("{}: {text}", self.engine)
        });
    }
}

fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads the statements about the parameters of all operations, with the operations whose documentation has them.
fn documented(
    service: &Value,
    without_field: &BTreeSet<String>,
) -> BTreeMap<Key, BTreeSet<String>> {
    let all = OPERATIONS.into_iter().chain(OTHER_OPERATIONS);
    let parameters = all.flat_map(|operation| {
        let parameters = parameters(service, operation);
        parameters.map(move |(name, member)| (operation, name.clone(), member))
    });
    let tag = service["shapes"]["Tag"]["members"].as_object();
    let tag = tag.expect("a shape").iter();
    let tag = tag.map(|(name, member)| (TAGGING, format!("Tag.{name}"), member));
    let mut documented: BTreeMap<Key, BTreeSet<String>> = BTreeMap::new();
    for (operation, name, member) in parameters.chain(tag) {
        if without_field.contains(&name) {
            continue;
        }
        let documentation = member["documentation"].as_str().unwrap_or_default();
        for statement in statements(documentation) {
            let operations = documented.entry((name.clone(), statement)).or_default();
            operations.insert(operation.to_owned());
        }
    }
    documented
}

#[test]
fn each_documented_constraint_has_a_rule_or_a_reason() {
    let service = service(&botocore(), "rds/2014-10-31");
    let list = list();
    let documented = documented(&service, &list.without_field);
    assert!(documented.len() > 200, "{}", documented.len());
    let listed = list.constraints.iter();
    let listed = listed.map(|it| {
        let key = (it.parameter.clone(), it.statement.clone());
        (key, it.operations.clone())
    });
    let listed: BTreeMap<_, _> = listed.collect();
    let missing: Vec<_> = documented
        .iter()
        .filter(|(key, operations)| listed.get(*key) != Some(operations))
        .collect();
    assert!(missing.is_empty(), "add to constraints.yaml: {missing:#?}");
    let gone: Vec<_> = listed
        .keys()
        .filter(|key| !documented.contains_key(*key))
        .collect();
    assert!(gone.is_empty(), "remove from constraints.yaml: {gone:#?}");
    let rules = ruleset().expect("the rules").rules();
    let rules: BTreeSet<_> = rules.into_iter().map(|rule| rule.id).collect();
    for it in &list.constraints {
        let reason = it.reason.as_deref();
        let is_known = reason.is_some_and(|it| REASONS.iter().any(|(known, _)| *known == it));
        assert!(
            is_known == it.rules.is_empty(),
            "{}: {} needs rules or a reason",
            it.parameter,
            it.statement
        );
        for rule in &it.rules {
            assert!(rules.contains(rule), "{}: no rule {rule}", it.parameter);
        }
    }
}

#[test]
fn each_setting_is_a_parameter_and_those_that_can_change_are_parameters_of_a_modification() {
    let service = service(&botocore(), "rds/2014-10-31");
    let names = |operation: &str| -> BTreeSet<String> {
        parameters(&service, operation)
            .map(|(name, _)| name.clone())
            .collect()
    };
    let [create, modify] = OPERATIONS.map(names);
    let list = list();
    // Replicas are created and promoted by operations of their own.
    for setting in SETTINGS.iter().filter(|it| it.field != "replicaOf") {
        let name = setting.parameter;
        let is_fixed = setting.effect == Effect::Denied;
        // Tags have operations of their own.
        let is_known =
            modify.contains(name) || (is_fixed || name == "Tags") && create.contains(name);
        assert!(is_known, "{}: {name}", setting.field);
        assert!(!list.without_field.contains(name), "{name} is a field");
    }
}

#[test]
fn the_page_of_the_constraints_is_current() {
    let list = list();
    let mut page = "# Constraints of RDS\n\n\
        This page lists what the documentation of the operations of RDS says about the parameters that are fields of a \
        [CloudDatabase](cloud-database.md), and the [rule](rules.md) that enforces it before RDS is called. \
        Statements about other engines are left out. The page is generated, and a test compares it with the service model of \
        RDS.\n\n| parameter | operations | statement of RDS | enforced by |\n|---|---|---|---|\n"
        .to_owned();
    for it in &list.constraints {
        let reason = it.reason.as_deref();
        if reason == Some("other-engine") {
            continue;
        }
        let reason = REASONS.iter().find(|(name, _)| Some(*name) == reason);
        let enforced = match reason {
            Some((_, words)) => (*words).to_owned(),
            None => {
                let rules = it.rules.iter().map(|rule| format!("`{rule}`"));
                rules.collect::<Vec<_>>().join(", ")
            }
        };
        let statement = it.statement.replace('|', "\\|");
        let operations = it.operations.iter().map(|it| format!("`{it}`"));
        let operations = operations.collect::<Vec<_>>().join(", ");
        let parameter = &it.parameter;
        writeln!(
            page,
            "| `{parameter}` | {operations} | {statement} | {enforced} |"
        )
        .expect("a line");
    }
    let path = root().join("docs/cloud-database-constraints.md");
    if std::env::var_os("LOCKSTEP_UPDATE").is_some() {
        fs::write(&path, &page).expect("the page is written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == page, "write the page with LOCKSTEP_UPDATE=1");
}
