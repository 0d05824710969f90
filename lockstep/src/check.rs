//! `lockstep check`: the desk.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;
use shared_validation::{Candidate, Verdict, Violation};

use crate::desk::document::{self, Document, Place};
use crate::desk::kinds::Kinds;
use crate::desk::{jsonl, sources};
use crate::kinds;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Files, folders, or - for standard input. YAML and JSON, also several documents in one file.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Judges objects of other kinds too, by the `CustomResourceDefinition`s in this file or folder.
    #[arg(long = "crd", value_name = "FILE")]
    crds: Vec<PathBuf>,
    /// Reads `{"id","op","object","old"}` a line, with the objects as JSON text, and writes a verdict
    /// a line.
    #[arg(long)]
    jsonl: bool,
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

/// What every document is judged with.
struct Desk {
    kinds: Kinds,
    old: Option<Value>,
    output: Output,
    tally: Tally,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let rulesets = match kinds::rulesets() {
        Ok(rulesets) => rulesets,
        Err(error) => return unusable(&format!("{error:#}")),
    };
    let kinds = match Kinds::new(rulesets, &args.crds) {
        Ok(kinds) => kinds,
        Err(error) => return unusable(&error),
    };
    if args.jsonl {
        return jsonl(&kinds, &args.files);
    }
    let old = match args.old.as_ref().map(read_one).transpose() {
        Ok(old) => old,
        Err(error) => return unusable(&error),
    };
    let mut desk = Desk {
        kinds,
        old,
        output: args.output,
        tally: Tally::default(),
    };
    let mut out = std::io::stdout().lock();
    match desk.judge_all(&args.files, &mut out) {
        // Whoever read has seen enough; the verdict stands in the exit code.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            unusable(&format!("cannot print: {error}"))
        }
        _ => desk.tally.exit_code(),
    }
}

impl Tally {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self {
                unreadable: 1.., ..
            } => ExitCode::from(2),
            Self { invalid: 1.., .. } => ExitCode::from(1),
            _ => ExitCode::SUCCESS,
        }
    }
}

/// Judges the lines of one file, or of standard input.
fn jsonl(kinds: &Kinds, files: &[PathBuf]) -> ExitCode {
    let [file] = files else {
        return unusable("--jsonl takes one file, or - for standard input");
    };
    let out = &mut std::io::BufWriter::new(std::io::stdout().lock());
    let count = if file.as_os_str() == "-" {
        jsonl::run(kinds, std::io::stdin().lock(), out)
    } else {
        match std::fs::File::open(file) {
            Ok(opened) => jsonl::run(kinds, std::io::BufReader::new(opened), out),
            Err(error) => return unusable(&format!("{}: {error}", file.display())),
        }
    };
    match count.and_then(|count| out.flush().map(|()| count)) {
        Ok(jsonl::Count {
            unreadable: 1.., ..
        }) => ExitCode::from(2),
        Ok(jsonl::Count { invalid: 1.., .. }) => ExitCode::from(1),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => unusable(&format!("cannot read or print: {error}")),
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

impl Desk {
    /// Judges every document of what is named, and goes on when one cannot be read.
    fn judge_all(&mut self, files: &[PathBuf], out: &mut impl Write) -> std::io::Result<()> {
        for source in sources::read_all(files) {
            match source.text.and_then(|text| document::read(&text)) {
                Ok(documents) => {
                    for document in documents {
                        self.judge(&source.name, &document, out)?;
                    }
                }
                Err(error) => {
                    self.tally.unreadable += 1;
                    eprintln!("{}: cannot be read: {error}", source.name);
                }
            }
        }
        let Tally {
            judged,
            invalid,
            skipped,
            unreadable,
        } = self.tally;
        eprintln!(
            "{judged} judged, {invalid} invalid, {skipped} of other kinds skipped, {unreadable} unreadable"
        );
        Ok(())
    }

    fn judge(
        &mut self,
        file: &str,
        document: &Document,
        out: &mut impl Write,
    ) -> std::io::Result<()> {
        let object = document.to_value();
        // A file may begin or end with a separator.
        if object.is_null() {
            return Ok(());
        }
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default();
        let Some(ruleset) = self.kinds.find(api_version, kind) else {
            let served = self.kinds.versions(api_version, kind);
            if served.is_empty() {
                self.tally.skipped += 1;
                return Ok(());
            }
            self.tally.unreadable += 1;
            let Place { line, column } = document.locate("apiVersion");
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            eprintln!(
                "{file}:{line}:{column}: apiVersion: `{version}` is not served; use {group}/{}",
                served.join(" or ")
            );
            return Ok(());
        };
        if let Some(old) = &self.old
            && let Some(difference) = identity_difference(old, &object)
        {
            self.tally.unreadable += 1;
            eprintln!("{file}: --old is another object: its {difference}");
            return Ok(());
        }
        let candidate = match &self.old {
            Some(old) => Candidate::update(&object, old),
            None => Candidate::create(&object),
        };
        let verdict = ruleset.check(&candidate.strict());
        self.tally.judged += 1;
        self.tally.invalid += usize::from(!verdict.is_valid());
        match self.output {
            Output::Text => write_text(out, file, document, &verdict),
            Output::Json => writeln!(out, "{}", to_json(file, document, &object, &verdict)),
        }
    }
}

/// In what two objects are not the same one.
fn identity_difference(old: &Value, new: &Value) -> Option<String> {
    [
        "/apiVersion",
        "/kind",
        "/metadata/namespace",
        "/metadata/name",
    ]
    .into_iter()
    .find_map(|field| {
        let (old, new) = (old.pointer(field), new.pointer(field));
        let shown = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
        (old != new).then(|| {
            format!(
                "`{}` is {}, not {}",
                field[1..].replace('/', "."),
                shown(old),
                shown(new)
            )
        })
    })
}

fn write_text(
    out: &mut impl Write,
    file: &str,
    document: &Document,
    verdict: &Verdict,
) -> std::io::Result<()> {
    for (label, violations) in [("", &verdict.errors), ("warning: ", &verdict.warnings)] {
        for violation in violations {
            let Place { line, column } = document.locate(violation.error.path.as_str());
            // A structural rule's message is the API server's own and does not carry the id.
            let id = format!("[{}]", violation.rule);
            let message = violation.error.to_string();
            let missing = if message.ends_with(&id) {
                String::new()
            } else {
                format!(" {id}")
            };
            writeln!(out, "{file}:{line}:{column}: {label}{message}{missing}")?;
        }
    }
    Ok(())
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
