//! Tests of a configuration (`tests:`): events enter transforms, and conditions are evaluated on what leaves others.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lockstep_shared_validation::shortened;
use lockstep_vector_api::{Event, NamedResult, TestResult};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::flow::{Flow, FlowConfig, InputProblem, VisitResult, event_of_test};

/// Number of events that a report shows.
const SHOWN: usize = 3;

/// Maximum length of a reason, in bytes: a program makes values of any length.
const MAX_REASON: usize = 10 << 10;

/// Definition of a test.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    #[serde(rename = "name")]
    _name: String,
    input: Option<Value>,
    #[serde(default)]
    inputs: Vec<Value>,
    #[serde(default)]
    outputs: Vec<Output>,
    #[serde(default)]
    no_outputs_from: Vec<String>,
}

/// Expected events.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Output {
    extract_from: OneOrMany,
    #[serde(default)]
    conditions: Vec<Value>,
    expected_event_count: Option<usize>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Many(names) => names,
        }
    }
}

/// Runs the tests of a configuration, one after another, and passes on the result of each.
pub(crate) fn run_all(flow_config: &FlowConfig, mut report: impl FnMut(NamedResult)) {
    let flow = Flow::new(flow_config);
    let cycle = flow.cycle();
    for (name, test) in tests(&flow_config.config) {
        let definition = Definition::deserialize(test);
        let result = match (definition, cycle) {
            (Err(error), _) => TestResult::Invalid(error.to_string()),
            (Ok(_), Some(id)) => {
                TestResult::Invalid(format!("the transform `{id}` reads its own events"))
            }
            (Ok(definition), None) => {
                let run = Run { flow: &flow };
                run.result(&definition).unwrap_or_else(|end| end)
            }
        };
        report(NamedResult {
            name,
            result: result.map_reasons(|reason| shortened(&reason, MAX_REASON).into_owned()),
        });
    }
}

/// Returns the tests of a configuration, with their names.
pub(crate) fn tests(config: &Map<String, Value>) -> impl Iterator<Item = (String, &Value)> {
    let tests = config.get("tests").and_then(Value::as_array);
    let tests = tests.into_iter().flatten().enumerate();
    tests.map(|(index, test)| {
        let name = test["name"].as_str().map(str::to_owned);
        (name.unwrap_or_else(|| format!("tests[{index}]")), test)
    })
}

/// Run of a test.
struct Run<'a> {
    flow: &'a Flow,
}

impl Run<'_> {
    fn result(&self, test: &Definition) -> Result<TestResult, TestResult> {
        let outputs = test.outputs.iter();
        let expected = outputs.flat_map(|output| output.extract_from.names());
        let owners = expected.chain(&test.no_outputs_from).map(|output| {
            let owner = self.flow.owner(output);
            owner.ok_or_else(|| {
                TestResult::Invalid(format!("no transform has the output `{output}`"))
            })
        });
        let owners = owners.collect::<Result<Vec<_>, _>>()?;
        if owners.is_empty() {
            let what = "it needs `outputs` or `no_outputs_from`";
            return Err(TestResult::Invalid(what.to_owned()));
        }
        let collected = self.collect(test, &owners)?;
        let mut failures = Vec::new();
        for output in &test.outputs {
            self.check(test, output, &collected, &mut failures)?;
        }
        for output in &test.no_outputs_from {
            let events = collected.get(output).map(Vec::as_slice);
            let events = events.unwrap_or_default();
            if !events.is_empty() {
                let shown = shown(events);
                failures.push(format!(
                    "`{output}` outputs {} events:{shown}",
                    events.len()
                ));
            }
        }
        Ok(if failures.is_empty() {
            TestResult::Passed
        } else {
            TestResult::Failed(failures)
        })
    }

    /// Returns the events that leave each output. `owners` are the transforms whose outputs the test reads.
    fn collect(
        &self,
        test: &Definition,
        owners: &[&str],
    ) -> Result<BTreeMap<String, Vec<Event>>, TestResult> {
        let mut collected: BTreeMap<String, Vec<Event>> = BTreeMap::new();
        let inputs: Vec<_> = test.input.iter().chain(&test.inputs).collect();
        if inputs.is_empty() {
            return Err(TestResult::Invalid("it needs `inputs`".to_owned()));
        }
        for input in inputs {
            let target = input["insert_at"].as_str().unwrap_or_default();
            if !self.flow.has_transform(target) {
                let why = format!("`insert_at: {target}` is no transform");
                return Err(TestResult::Invalid(why));
            }
            if !owners.iter().any(|owner| self.flow.reaches(target, owner)) {
                let why = format!("no event of `{target}` reaches an output of the test");
                return Err(TestResult::Invalid(why));
            }
            let event = event_of_test(input).map_err(|problem| match problem {
                InputProblem::OnlyVector(why) => TestResult::NotRun(why),
                InputProblem::Invalid(why) => TestResult::Invalid(why),
            })?;
            for visit in self.flow.enter(target, event) {
                match visit.result {
                    VisitResult::Passed { events, .. } => {
                        for (output, event) in events {
                            collected.entry(output).or_default().push(event);
                        }
                    }
                    VisitResult::NotRun(why) => {
                        let id = &visit.component;
                        if owners.iter().any(|owner| self.flow.reaches(id, owner)) {
                            return Err(TestResult::NotRun(format!("`{id}`: {why}")));
                        }
                    }
                    VisitResult::Dropped(_) | VisitResult::Arrived(_) => {}
                }
            }
        }
        Ok(collected)
    }

    fn check(
        &self,
        test: &Definition,
        output: &Output,
        collected: &BTreeMap<String, Vec<Event>>,
        failures: &mut Vec<String>,
    ) -> Result<(), TestResult> {
        let names = output.extract_from.names();
        if let Some(name) = names
            .iter()
            .find(|name| test.no_outputs_from.contains(name))
        {
            let why = format!("`{name}` is in `extract_from` and in `no_outputs_from`");
            return Err(TestResult::Invalid(why));
        }
        let conditions = self.flow.conditions(&output.conditions);
        let conditions = conditions.map_err(TestResult::NotRun)?;
        if output.expected_event_count == Some(0) && !conditions.is_empty() {
            let why = "`expected_event_count: 0` has no event for `conditions`";
            return Err(TestResult::Invalid(why.to_owned()));
        }
        let events = names
            .iter()
            .filter_map(|name| collected.get(name))
            .flatten();
        let events: Vec<Event> = events.cloned().collect();
        let name = names.join("`, `");
        let before = failures.len();
        if let Some(count) = output.expected_event_count
            && count != events.len()
        {
            failures.push(format!(
                "`{name}` outputs {} events, and {count} are expected",
                events.len()
            ));
        }
        if events.is_empty() {
            if output.expected_event_count != Some(0) {
                failures.push(format!("`{name}` outputs no event"));
            }
            return Ok(());
        }
        for (index, condition) in conditions.iter().enumerate() {
            let mut stops = Vec::new();
            let is_met = events.iter().any(|event| match condition.is_met(event) {
                Ok(is_met) => is_met,
                Err(stop) => {
                    stops.push(stop.to_string());
                    false
                }
            });
            if !is_met {
                let why = stops.first().cloned();
                let why = why.unwrap_or_else(|| "it is false for each event".to_owned());
                failures.push(format!("`{name}`, condition {index}: {why}"));
            }
        }
        if failures.len() > before {
            failures.push(format!("`{name}` outputs:{}", shown(&events)));
        }
        Ok(())
    }
}

/// Shows the first events.
fn shown(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events.iter().take(SHOWN) {
        let _ = write!(
            text,
            "\n  {}",
            shortened(&event.to_json().to_string(), MAX_REASON / (SHOWN + 1))
        );
    }
    if events.len() > SHOWN {
        let _ = write!(text, "\n  and {} more", events.len() - SHOWN);
    }
    text
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::Catalogue;
    use serde_json::json;

    use super::*;

    fn result(transforms: &Value, test: &Value) -> TestResult {
        let mut test = test.clone();
        test["name"] = json!("a");
        let config = json!({"transforms": transforms, "tests": [test]});
        let mut results = Vec::new();
        let config = FlowConfig::new(Catalogue::shipped(), &config);
        run_all(&config, |result| results.push(result));
        results.remove(0).result
    }

    fn remap(source: &str, inputs: &[&str]) -> Value {
        json!({"type": "remap", "inputs": inputs, "source": source})
    }

    fn log(target: &str, fields: &Value) -> Value {
        json!([{"insert_at": target, "type": "log", "log_fields": fields}])
    }

    #[test]
    fn a_test_passes_if_its_conditions_hold_and_fails_with_the_events_otherwise() {
        let transforms = json!({
            "parse": remap(".level = downcase!(.message)", &[]),
            "by_level": {
                "type": "route", "inputs": ["parse"], "route": {"error": ".level == \"error\""},
            },
            "errors": {"type": "filter", "inputs": ["by_level.error"], "condition": ".keep == true"},
        });
        let test = |message: &str, output: &str, condition: &str| {
            json!({
                "inputs": [{"insert_at": "parse", "value": message}],
                "outputs": [{"extract_from": output, "conditions": [condition]}],
            })
        };
        let passes = test("ERROR", "by_level.error", "assert_eq!(.level, \"error\")");
        assert_eq!(result(&transforms, &passes), TestResult::Passed);
        let fails = test("ERROR", "by_level.error", ".level == \"warn\"");
        let TestResult::Failed(reasons) = result(&transforms, &fails) else {
            panic!("it fails");
        };
        assert_eq!(
            reasons[0],
            "`by_level.error`, condition 0: it is false for each event"
        );
        assert!(reasons[1].contains("\"level\":\"error\""), "{reasons:?}");
        let none = test("ERROR", "errors", "true");
        let failed = TestResult::Failed(vec!["`errors` outputs no event".to_owned()]);
        assert_eq!(result(&transforms, &none), failed);
        let silent = json!({
            "inputs": log("parse", &json!({"message": "INFO"})),
            "outputs": [{"extract_from": "by_level._unmatched", "expected_event_count": 1}],
            "no_outputs_from": ["by_level.error"],
        });
        assert_eq!(result(&transforms, &silent), TestResult::Passed);
        let unknown = test("a", "by_level", "true");
        assert!(matches!(
            result(&transforms, &unknown),
            TestResult::Invalid(_)
        ));
    }

    #[test]
    fn a_test_that_cannot_end_or_has_no_way_to_its_output_is_invalid() {
        let test = json!({
            "inputs": log("first", &json!({})),
            "outputs": [{"extract_from": "last", "conditions": ["true"]}],
        });
        let invalid = |why: &str| TestResult::Invalid(why.to_owned());
        let apart = json!({"first": remap(".a = 1", &[]), "last": remap(".a = 1", &[])});
        let why = "no event of `first` reaches an output of the test";
        assert_eq!(result(&apart, &test), invalid(why));
        let cycle = json!({
            "first": remap(".a = 1", &[]),
            "middle": remap(".a = 1", &["first", "third"]),
            "third": remap(".a = 1", &["middle"]),
            "last": remap(".a = 1", &["third"]),
        });
        let why = "the transform `middle` reads its own events";
        assert_eq!(result(&cycle, &test), invalid(why));
    }

    #[test]
    fn a_test_with_more_events_than_are_followed_has_not_passed() {
        let many = format!(". = [{}]", vec!["{}"; 110].join(", "));
        let transforms = json!({
            "first": remap(&many, &[]),
            "second": remap(&many, &["first"]),
            "last": remap(".a = 1", &["second"]),
        });
        let test = json!({
            "inputs": log("first", &json!({})),
            "outputs": [{"extract_from": "last", "conditions": ["true"]}],
        });
        let found = result(&transforms, &test);
        let TestResult::NotRun(why) = found else {
            panic!("{found:?}");
        };
        assert!(why.contains("more than 10000 components"), "{why}");
    }

    #[test]
    fn what_only_vector_runs_is_named_and_passes_never() {
        let transforms = json!({
            "once": {"type": "dedupe", "inputs": []},
            "after": remap(".a = 1", &["once"]),
            "hash": remap(".a = dns_lookup(\"b\") ?? {}", &[]),
            "other": remap(".a = 1", &[]),
        });
        let test = |target: &str, output: &str| {
            json!({
                "inputs": log(target, &json!({})),
                "outputs": [{"extract_from": output, "conditions": ["true"]}],
            })
        };
        let not_run = |why: &str| TestResult::NotRun(why.to_owned());
        let found = result(&transforms, &test("once", "after"));
        let why = "`once`: only Vector runs transforms of the type `dedupe`";
        assert_eq!(found, not_run(why));
        let found = result(&transforms, &test("hash", "hash"));
        assert_eq!(
            found,
            not_run("`hash`: only Vector runs the function `dns_lookup`")
        );
        assert_eq!(
            result(&transforms, &test("other", "other")),
            TestResult::Passed
        );
        let metric = json!({
            "inputs": [{"insert_at": "other", "type": "metric", "metric": {}}],
            "outputs": [{"extract_from": "other"}],
        });
        assert!(matches!(
            result(&transforms, &metric),
            TestResult::NotRun(_)
        ));
    }
}
