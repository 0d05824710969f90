//! Recorded metrics, and the tools of Prometheus that check rules and evaluate queries.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::error::Error;
use crate::process::{run, run_with_input};
use crate::tools;

/// Interval between two scrapes, as the recording is presented to Prometheus.
const SCRAPE_INTERVAL_SECONDS: u64 = 60;

/// Runs `promtool` in a directory and returns its standard output.
///
/// # Errors
///
/// If the program cannot be built or run, or reports a problem.
pub fn promtool(directory: &Path, args: &[&str]) -> Result<String, Error> {
    let program = tools::promtool()?;
    run(Command::new(program).current_dir(directory).args(args))
}

/// Metrics of some processes, scraped several times.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    targets: Vec<(BTreeMap<String, String>, Vec<String>)>,
}

/// Result of a query.
#[derive(Clone, Debug)]
pub struct QueryResult {
    /// Selectors that no recorded series matches, labels that none has, and errors of the evaluation.
    pub problems: Vec<String>,
    /// Returned series.
    pub series: Vec<Series>,
}

/// Labels and value of a returned series.
#[derive(Clone, Debug)]
pub struct Series {
    /// Labels of the series.
    pub labels: BTreeMap<String, String>,
    /// Value as Prometheus prints it.
    pub value: String,
}

impl Recording {
    /// Adds a scrape of the target with these labels. An empty text is a scrape that failed.
    pub fn add(&mut self, labels: &[(&str, &str)], text: String) {
        let labels: BTreeMap<_, _> = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        match self.targets.iter_mut().find(|(known, _)| *known == labels) {
            Some((_, scrapes)) => scrapes.push(text),
            None => self.targets.push((labels, vec![text])),
        }
    }

    /// Compares series, written as selectors, with the recorded series of the same metrics. Returns a problem for each
    /// that has a label that no recorded series of its metric has.
    ///
    /// # Errors
    ///
    /// If the program cannot be built or run.
    pub fn check_labels(&self, series: &[String]) -> Result<Vec<String>, Error> {
        let response = self.run_with_input("series", &json!(series))?;
        Ok(texts(&response["problems"]))
    }

    /// Evaluates queries at the time of the last scrape. The scrapes of a target count as one minute apart.
    ///
    /// # Errors
    ///
    /// If the program cannot be built or run.
    pub fn query(
        &self,
        queries: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, QueryResult>, Error> {
        let response = self.run_with_input("queries", &json!(queries))?;
        let answers = response["answers"].as_object().into_iter().flatten();
        Ok(answers
            .map(|(name, result)| (name.clone(), QueryResult::from_json(result)))
            .collect())
    }

    fn run_with_input(&self, what: &str, value: &Value) -> Result<Value, Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let targets: Vec<_> = self
            .targets
            .iter()
            .map(|(labels, scrapes)| json!({"labels": labels, "scrapes": scrapes}))
            .collect();
        let request = json!({
            "targets": targets,
            "intervalSeconds": SCRAPE_INTERVAL_SECONDS,
            "endSeconds": now.unwrap_or_default().as_secs(),
            what: value,
        });
        let response = run_with_input(&mut Command::new(tools::promql()?), &request.to_string())?;
        serde_json::from_str(&response)
            .map_err(|error| Error::Manifest(format!("the response of promql: {error}")))
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    list(value).iter().map(text).collect()
}

impl QueryResult {
    fn from_json(result: &Value) -> Self {
        let series = list(&result["series"]).iter().map(|one| Series {
            labels: one["labels"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, value)| (name.clone(), text(value)))
                .collect(),
            value: text(&one["value"]),
        });
        Self {
            problems: texts(&result["problems"]),
            series: series.collect(),
        }
    }
}
