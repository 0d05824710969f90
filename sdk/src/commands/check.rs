//! `lockstep check`: offline validation of files.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;

use lockstep_shared_validation::{Policy, report_all};
use serde_json::Value;

use crate::args::input_format::InputFormat;
use crate::args::policy;
use crate::check::checker::{Checker, OldObject};
use crate::check::cluster;
use crate::check::crd_lookup::{self, CrdLookup};
use crate::check::diagnostic::FileReport;
use crate::check::inputs::Source;
use crate::check::render::{Format, Tool, Writer};
use crate::check::yaml::document;
use crate::check::{batch, inputs};
use crate::environment::Environment;

#[allow(clippy::struct_excessive_bools, reason = "each is an option")]
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Files, folders, glob patterns, or `-` for standard input. Accepts YAML and JSON, files with several
    /// documents, and lists of objects.
    #[arg(required_unless_present = "input_format", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// File with the previous state of the object, as one document. Validates an update instead of a creation.
    #[arg(long, value_name = "FILE", conflicts_with = "against_cluster")]
    old_object: Option<PathBuf>,
    /// Validate the updates that applying the files would make to the objects in the cluster, using the current
    /// kubeconfig.
    #[arg(long)]
    against_cluster: bool,
    /// File or folder with `CustomResourceDefinition`s, to validate objects of these kinds, too. Can be repeated.
    #[arg(long = "crd", value_name = "FILE")]
    crds: Vec<PathBuf>,
    /// Policy file that sets `deny`, `warn` or `audit` for Rust rules. Default: the severity of each rule.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Fail on objects of unknown kinds (exit code 2) instead of skipping them.
    #[arg(long)]
    fail_on_unknown_kind: bool,
    /// Show a diff between each valid object as written and as the cluster would store it.
    #[arg(long)]
    show_defaulted: bool,
    /// Show all errors and warnings of an object, instead of the first 100 of each.
    #[arg(long)]
    all_errors: bool,
    /// Read one request `{"id","operation","object","oldObject"}` per line, with the objects as JSON text, and write
    /// one result per line. Without files, reads standard input.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["old_object", "against_cluster", "output", "fail_on_unknown_kind", "show_defaulted"])]
    input_format: Option<InputFormat>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Full)]
    output: Format,
}

/// Counts for the summary line and the exit code.
#[derive(Default)]
struct Summary {
    checked: usize,
    invalid: usize,
    skipped: usize,
    unreadable: usize,
}

pub(crate) fn run(args: &Args, environment: &Environment) -> ExitCode {
    match check(args, environment) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{}: {error}", environment.name());
            ExitCode::from(2)
        }
    }
}

fn check(args: &Args, environment: &Environment) -> Result<ExitCode, String> {
    let validators = environment.registry().lazy_validators();
    let policy = match &args.policy {
        Some(path) => {
            // A policy names rules of any kind.
            validators
                .iter()
                .try_for_each(crd_lookup::ensure_compiled)?;
            policy::read(path, &validators).map_err(|error| error.to_string())?
        }
        None => Policy::default(),
    };
    let kinds = CrdLookup::new(validators, &args.crds)?;
    if args.input_format == Some(InputFormat::Jsonl) {
        let check = || check_batch(&kinds, &policy, &args.files);
        return if args.all_errors {
            report_all(check)
        } else {
            check()
        };
    }
    if args.show_defaulted && !args.output.shows_defaulted() {
        return Err("--show-defaulted requires --output full, concise or json".to_owned());
    }
    let old = match &args.old_object {
        Some(path) => OldObject::File(read_one(path)?),
        None if args.against_cluster => OldObject::Cluster(cluster::object_source()?),
        None => OldObject::None,
    };
    let checker = Checker {
        kinds,
        policy,
        old,
        fails_on_unknown_kind: args.fail_on_unknown_kind,
        shows_defaulted: args.show_defaulted,
        shows_all_errors: args.all_errors,
    };
    let stdout = io::stdout();
    let colours = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let tool = Tool {
        name: environment.name(),
        version: environment.version(),
    };
    let out = io::BufWriter::new(stdout.lock());
    let writer = Writer::new(tool, args.output, colours, out);
    let sources = inputs::find(&args.files);
    let mut summary = Summary::default();
    match check_all(&checker, &sources, writer, &mut summary) {
        // The reader has closed the pipe, which is no error: the exit code still shows the result.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            return Err(format!("cannot write the output: {error}"));
        }
        _ => {}
    }
    let Summary {
        checked: validated,
        invalid,
        skipped,
        unreadable,
    } = summary;
    eprintln!(
        "{validated} checked, {invalid} invalid, {skipped} skipped (unknown kind), {unreadable} unreadable"
    );
    Ok(summary.exit_code())
}

impl Summary {
    fn count(&mut self, report: &FileReport) {
        self.checked += report.documents.len();
        self.invalid += report
            .documents
            .iter()
            .filter(|document| !document.is_valid())
            .count();
        self.skipped += report.skipped;
        self.unreadable += report.problems.len();
    }

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

/// Stack size of each thread. Deeply nested documents need much of it; unused stack costs nothing.
const STACK_BYTES: usize = 32 << 20;

/// Maximum number of reports of each thread that wait to be written, so that memory stays bounded.
const WAITING: usize = 64;

/// Validates all sources, with one thread for each processor, and writes the reports in the order of the sources.
fn check_all(
    checker: &Checker,
    sources: &[Source],
    mut writer: Writer<impl Write>,
    summary: &mut Summary,
) -> io::Result<()> {
    let threads = thread::available_parallelism().map_or(1, |count| count.get().min(sources.len()));
    let mut printing = Ok(());
    thread::scope(|scope| {
        let mut workers = Vec::new();
        // Each thread takes every n-th source, so that the reports can be received in order.
        for first in 0..threads {
            let (send, receive) = mpsc::sync_channel::<FileReport>(WAITING);
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            let started = thread.spawn_scoped(scope, move || {
                for source in sources.iter().skip(first).step_by(threads) {
                    // The receiver is gone if another thread has failed.
                    if send.send(checker.check(source)).is_err() {
                        return;
                    }
                }
            });
            if let Err(error) = started {
                printing = Err(error);
                return;
            }
            workers.push(receive);
        }
        for index in 0..sources.len() {
            let Ok(report) = workers[index % threads].recv() else {
                break;
            };
            summary.count(&report);
            if printing.is_ok() {
                printing = writer.add(report);
            }
        }
    });
    printing?;
    writer.finish()
}

fn read_one(path: &Path) -> Result<Value, String> {
    let sources = inputs::find(&[path.to_owned()]);
    let [source] = sources.as_slice() else {
        return Err(format!(
            "{}: --old-object takes exactly one file",
            path.display()
        ));
    };
    let name = &source.name;
    let text = source.read().map_err(|error| format!("{name}: {error}"))?;
    let documents = document::read_all(&text).map_err(|problem| format!("{name}:{problem}"))?;
    match documents.as_slice() {
        [one] => Ok(one.to_value()),
        many => Err(format!(
            "{name}: --old-object takes exactly one document, but the file has {}",
            many.len()
        )),
    }
}

/// Validates the lines of one file, or of standard input.
fn check_batch(kinds: &CrdLookup, policy: &Policy, files: &[PathBuf]) -> Result<ExitCode, String> {
    let out = &mut io::BufWriter::new(io::stdout().lock());
    let count = match files {
        [file] if file.as_os_str() != "-" => {
            let opened = std::fs::File::open(file)
                .map_err(|error| format!("{}: {error}", file.display()))?;
            batch::run(kinds, policy, io::BufReader::new(opened), out)
        }
        [] | [_] => batch::run(kinds, policy, io::stdin().lock(), out),
        _ => return Err("--input-format=jsonl takes one file or standard input".to_owned()),
    };
    match count.and_then(|count| out.flush().map(|()| count)) {
        Ok(batch::Count {
            unreadable: 1.., ..
        }) => Ok(ExitCode::from(2)),
        Ok(batch::Count { invalid: 1.., .. }) => Ok(ExitCode::from(1)),
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(format!(
            "cannot read the input or write the output: {error}"
        )),
    }
}
