//! `lockstep check`: the desk.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;

use serde_json::Value;
use shared_validation::Policy;

use crate::desk::judge::{Checker, FileReport, OldObject};
use crate::desk::kinds::CrdLookup;
use crate::desk::output::{Format, Writer};
use crate::desk::sources::Source;
use crate::desk::{document, jsonl, sources};
use crate::{cluster, kinds, policy};

#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Files, folders, patterns, or - for standard input. YAML and JSON, also several documents in one
    /// file, and lists of objects.
    #[arg(required_unless_present = "jsonl", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The object as it was: judges the change instead of a new object. Takes one document.
    #[arg(long, value_name = "FILE", conflicts_with = "against_cluster")]
    old_object: Option<PathBuf>,
    /// Judges what applying the files would do to the objects that a cluster holds, with your kubeconfig.
    #[arg(long)]
    against_cluster: bool,
    /// Judges objects of other kinds too, by the `CustomResourceDefinition`s in this file or folder.
    #[arg(long = "crd", value_name = "FILE")]
    crds: Vec<PathBuf>,
    /// Judges under this policy: `deny`, `warn` or `audit` for Rust rules.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Refuses objects of kinds that are not known here, instead of skipping them.
    #[arg(long)]
    fail_on_unknown_kind: bool,
    /// Shows what the cluster would store, as a difference to what is written.
    #[arg(long)]
    show_defaulted: bool,
    /// Reads `{"id","op","object","old"}` a line, with the objects as JSON text, and writes a verdict
    /// a line. Without files it reads standard input.
    #[arg(long, conflicts_with_all = ["old", "against_cluster", "output", "strict", "show_stored"])]
    jsonl: bool,
    /// How the findings are printed.
    #[arg(long, value_enum, default_value_t = Format::Full)]
    output: Format,
}

/// What has been seen.
#[derive(Default)]
struct Summary {
    checked: usize,
    invalid: usize,
    skipped: usize,
    unreadable: usize,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match check(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lockstep: {error}");
            ExitCode::from(2)
        }
    }
}

fn check(args: &Args) -> Result<ExitCode, String> {
    let rulesets = kinds::rulesets().map_err(|error| format!("{error:#}"))?;
    let policy = match &args.policy {
        Some(path) => policy::read(path, &rulesets).map_err(|error| format!("{error:#}"))?,
        None => Policy::default(),
    };
    let kinds = CrdLookup::new(rulesets, &args.crds)?;
    if args.jsonl {
        return check_batch(&kinds, &policy, &args.files);
    }
    if args.show_defaulted && !args.output.shows_defaulted() {
        return Err("--show-stored is for --output text, short and json".to_owned());
    }
    let old = match &args.old_object {
        Some(path) => OldObject::File(read_one(path)?),
        None if args.against_cluster => OldObject::Cluster(cluster::object_source()?),
        None => OldObject::None,
    };
    let desk = Checker {
        kinds,
        policy,
        old,
        fails_on_unknown_kind: args.fail_on_unknown_kind,
        shows_defaulted: args.show_defaulted,
    };
    let stdout = io::stdout();
    let colours = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let writer = Writer::new(args.output, colours, io::BufWriter::new(stdout.lock()));
    let sources = sources::find(&args.files);
    let mut tally = Summary::default();
    match check_all(&desk, &sources, writer, &mut tally) {
        // Whoever read has seen enough; the verdict stands in the exit code.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            return Err(format!("cannot print: {error}"));
        }
        _ => {}
    }
    let Summary {
        checked: judged,
        invalid,
        skipped,
        unreadable,
    } = tally;
    eprintln!(
        "{judged} judged, {invalid} invalid, {skipped} of other kinds skipped, {unreadable} unreadable"
    );
    Ok(tally.exit_code())
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

/// Of a thread; deep documents take much of it, and what is not used costs nothing.
const STACK_BYTES: usize = 32 << 20;

/// How many reports may wait to be written: what is held in memory stays bounded.
const WAITING: usize = 64;

/// Judges every source, on as many threads as there are processors, and writes the reports in the order
/// of the sources.
fn check_all(
    desk: &Checker,
    sources: &[Source],
    mut writer: Writer<impl Write>,
    tally: &mut Summary,
) -> io::Result<()> {
    let threads = thread::available_parallelism().map_or(1, |count| count.get().min(sources.len()));
    let mut printing = Ok(());
    thread::scope(|scope| {
        let mut workers = Vec::new();
        // Each thread takes every n-th source, so that their reports can be read in order.
        for first in 0..threads {
            let (send, receive) = mpsc::sync_channel::<FileReport>(WAITING);
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            let started = thread.spawn_scoped(scope, move || {
                for source in sources.iter().skip(first).step_by(threads) {
                    // Nobody waits any more once printing has failed.
                    if send.send(desk.check(source)).is_err() {
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
            tally.count(&report);
            if printing.is_ok() {
                printing = writer.add(report);
            }
        }
    });
    printing?;
    writer.finish()
}

fn read_one(path: &Path) -> Result<Value, String> {
    let sources = sources::find(&[path.to_owned()]);
    let [source] = sources.as_slice() else {
        return Err(format!("{}: --old takes one file", path.display()));
    };
    let name = &source.name;
    let text = source.read().map_err(|error| format!("{name}: {error}"))?;
    let documents = document::read_all(&text).map_err(|problem| format!("{name}:{problem}"))?;
    match documents.as_slice() {
        [one] => Ok(one.to_value()),
        many => Err(format!(
            "{name}: --old takes one document, this has {}",
            many.len()
        )),
    }
}

/// Judges the lines of one file, or of standard input.
fn check_batch(kinds: &CrdLookup, policy: &Policy, files: &[PathBuf]) -> Result<ExitCode, String> {
    let out = &mut io::BufWriter::new(io::stdout().lock());
    let count = match files {
        [file] if file.as_os_str() != "-" => {
            let opened = std::fs::File::open(file)
                .map_err(|error| format!("{}: {error}", file.display()))?;
            jsonl::run(kinds, policy, io::BufReader::new(opened), out)
        }
        [] | [_] => jsonl::run(kinds, policy, io::stdin().lock(), out),
        _ => return Err("--jsonl takes one file, or standard input".to_owned()),
    };
    match count.and_then(|count| out.flush().map(|()| count)) {
        Ok(jsonl::Count {
            unreadable: 1.., ..
        }) => Ok(ExitCode::from(2)),
        Ok(jsonl::Count { invalid: 1.., .. }) => Ok(ExitCode::from(1)),
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(format!("cannot read or print: {error}")),
    }
}
