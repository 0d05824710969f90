//! `lockstep check`: the desk.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;
use shared_validation::{Candidate, Rulesets, Verdict, Violation};

use crate::desk::document::{self, Document};
use crate::desk::sources;
use crate::kinds;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Files, folders, or - for standard input. YAML and JSON, also several documents in one file.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The object as it was: judges the change instead of a new object. Takes one document.
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,
    /// How the findings are printed.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Output {
    /// One line a finding, for people.
    Text,
    /// One JSON object a document, for programs.
    Json,
}

/// What has been seen.
#[derive(Default)]
struct Tally {
    judged: usize,
    invalid: usize,
    skipped: usize,
    unreadable: usize,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let rulesets = match kinds::rulesets() {
        Ok(rulesets) => rulesets,
        Err(error) => return unusable(&format!("{error:#}")),
    };
    let old = match args.old.as_ref().map(read_one).transpose() {
        Ok(old) => old,
        Err(error) => return unusable(&error),
    };
    let mut tally = Tally::default();
    for source in sources::read_all(&args.files) {
        let documents = source.text.and_then(|text| document::read(&text));
        match documents {
            Ok(documents) => {
                for document in documents {
                    judge(
                        &rulesets,
                        &source.name,
                        &document,
                        old.as_ref(),
                        args.output,
                        &mut tally,
                    );
                }
            }
            Err(error) => {
                tally.unreadable += 1;
                eprintln!("{}: cannot be read: {error}", source.name);
            }
        }
    }
    eprintln!(
        "{} judged, {} invalid, {} of other kinds skipped, {} unreadable",
        tally.judged, tally.invalid, tally.skipped, tally.unreadable
    );
    match tally {
        Tally {
            unreadable: 1.., ..
        } => ExitCode::from(2),
        Tally { invalid: 1.., .. } => ExitCode::from(1),
        _ => ExitCode::SUCCESS,
    }
}

fn unusable(error: &str) -> ExitCode {
    eprintln!("lockstep: {error}");
    ExitCode::from(2)
}

fn read_one(path: &PathBuf) -> Result<Value, String> {
    let mut sources = sources::read_all(std::slice::from_ref(path));
    let (name, text) = match (sources.pop(), sources.is_empty()) {
        (Some(source), true) => (source.name, source.text),
        _ => return Err(format!("{}: --old takes one file", path.display())),
    };
    let documents = text
        .and_then(|text| document::read(&text))
        .map_err(|error| format!("{name}: {error}"))?;
    match documents.as_slice() {
        [one] => Ok(one.to_value()),
        many => Err(format!(
            "{name}: --old takes one document, this has {}",
            many.len()
        )),
    }
}

fn judge(
    rulesets: &Rulesets,
    file: &str,
    document: &Document,
    old: Option<&Value>,
    output: Output,
    tally: &mut Tally,
) {
    let object = document.to_value();
    // A file may begin or end with a separator.
    if object.is_null() {
        return;
    }
    let (group, version) = object["apiVersion"]
        .as_str()
        .and_then(|v| v.split_once('/'))
        .unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    let Some(ruleset) = rulesets.get(group, kind) else {
        tally.skipped += 1;
        return;
    };
    if version != ruleset.version() {
        tally.unreadable += 1;
        let start = document.start();
        eprintln!(
            "{file}:{}:{}: apiVersion: `{version}` is not served; use {group}/{}",
            start.line,
            start.column,
            ruleset.version()
        );
        return;
    }
    let candidate = match old {
        Some(old) => Candidate::update(&object, old),
        None => Candidate::create(&object),
    };
    let verdict = ruleset.check(&candidate.strict());
    tally.judged += 1;
    tally.invalid += usize::from(!verdict.is_valid());
    match output {
        Output::Text => print_text(file, document, &verdict),
        Output::Json => println!("{}", to_json(file, document, &object, &verdict)),
    }
}

fn print_text(file: &str, document: &Document, verdict: &Verdict) {
    for (label, violations) in [("", &verdict.errors), ("warning: ", &verdict.warnings)] {
        for violation in violations {
            let place = document.locate(violation.error.path.as_str());
            // A structural rule's message is the API server's own and does not carry the id.
            let id = format!("[{}]", violation.rule);
            let message = violation.error.to_string();
            let shown = if message.ends_with(&id) {
                message
            } else {
                format!("{message} {id}")
            };
            println!("{file}:{}:{}: {label}{shown}", place.line, place.column);
        }
    }
}

fn to_json(file: &str, document: &Document, object: &Value, verdict: &Verdict) -> Value {
    let finding = |violation: &Violation| {
        let place = document.locate(violation.error.path.as_str());
        serde_json::json!({
            "type": violation.error.error_type.as_str(),
            "field": violation.error.path.to_string(),
            "detail": violation.error.detail,
            "message": violation.error.to_string(),
            "rule": violation.rule,
            "layer": format!("{:?}", violation.layer).to_lowercase(),
            "line": place.line,
            "column": place.column,
        })
    };
    serde_json::json!({
        "file": file,
        "name": object["metadata"]["name"],
        "valid": verdict.is_valid(),
        "errors": verdict.errors.iter().map(finding).collect::<Vec<_>>(),
        "warnings": verdict.warnings.iter().map(finding).collect::<Vec<_>>(),
    })
}
