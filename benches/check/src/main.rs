//! Benchmark of `lockstep check`, compared with kubeconform on the same generated documents.
//!
//! The two programs do not do the same work. kubeconform validates a document against a JSON schema. Lockstep validates
//! it as the API server does, sets the defaults, evaluates the CEL rules of the CRD and the Rust rules of the kind, and
//! reports the line and column of each error. It therefore has to find more errors. The benchmark fails if one of the
//! programs does not find exactly the errors that were planted for it. It does not require any time limit, because the
//! speed of a machine varies.

mod documents;
mod json_schema;
mod measure;
mod programs;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::{Parser, Subcommand, ValueEnum};

use crate::documents::{Document, Planted};
use crate::measure::{Run, Spread};
use crate::programs::Program;

/// Compare the speed of `lockstep check` with that of kubeconform on the same generated documents.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    args: Args,
}

#[derive(clap::Args)]
struct Args {
    /// Number of documents.
    #[arg(long, default_value = "5000")]
    documents: NonZeroUsize,
    /// Number of runs of each program, after one warm-up run.
    #[arg(long, default_value = "10")]
    runs: NonZeroUsize,
    /// Seed of the random documents. The same seed gives the same documents.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Distribution of the documents over files; default: both.
    #[arg(long)]
    layout: Option<Layout>,
    /// Folder in which the documents and the schema are kept; default: a temporary folder.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Run one program and print its resource usage as JSON.
    #[command(hide = true)]
    Measure(measure::Args),
}

/// Number of documents per bundle. The YAML parser accepts at most 1,024.
const BUNDLE: usize = 1000;

#[derive(Clone, Copy, ValueEnum)]
enum Layout {
    /// One file per document, in one folder.
    Files,
    /// Files with many documents.
    Bundles,
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Measure(args)) => measure::measure(&args),
        None => compare(&cli.args),
    }
}

fn compare(args: &Args) -> anyhow::Result<()> {
    let temporary = tempfile::tempdir()?;
    let folder = args.keep.as_deref().unwrap_or(temporary.path());
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let schemas = folder.join("schemas");
    json_schema::write(
        &bench_harness::root().join("manifests/config/crds/clouddatabases.yaml"),
        &schemas,
    )?;
    let programs = [programs::lockstep()?, programs::kubeconform(&schemas)?];
    let documents = documents::generate(args.documents.get(), args.seed)?;
    describe(&documents, args);
    for layout in Layout::value_variants() {
        let name = layout.to_possible_value().expect("every layout has a name");
        if args
            .layout
            .is_none_or(|chosen| chosen as u8 == *layout as u8)
        {
            let input = folder.join(name.get_name());
            write(&documents, *layout, &input)?;
            println!("\n{}", name.get_name());
            race(&programs, &input, &documents, args.runs, folder)?;
        }
    }
    Ok(())
}

fn describe(documents: &[Document], args: &Args) {
    let count = |planted| {
        documents
            .iter()
            .filter(|document| document.planted == Some(planted))
            .count()
    };
    let mut sizes: Vec<_> = documents
        .iter()
        .map(|document| document.text.len())
        .collect();
    sizes.sort_unstable();
    println!(
        "{} documents (seed {}), {} to {} bytes, median {}, total {} KiB",
        documents.len(),
        args.seed,
        sizes[0],
        sizes[sizes.len() - 1],
        sizes[sizes.len() / 2],
        sizes.iter().sum::<usize>() / 1024
    );
    println!(
        "invalid documents: {} by the schema, {} by a CEL rule, {} by a Rust rule",
        count(Planted::Schema),
        count(Planted::Cel),
        count(Planted::Rust)
    );
}

fn write(documents: &[Document], layout: Layout, to: &Path) -> anyhow::Result<()> {
    // Files of an earlier run must not be included.
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    match layout {
        Layout::Files => {
            for (index, document) in documents.iter().enumerate() {
                fs::write(to.join(format!("{index:05}.yaml")), &document.text)?;
            }
        }
        Layout::Bundles => {
            for (index, documents) in documents.chunks(BUNDLE).enumerate() {
                let texts: Vec<_> = documents
                    .iter()
                    .map(|document| document.text.as_str())
                    .collect();
                fs::write(to.join(format!("{index:05}.yaml")), texts.join("---\n"))?;
            }
        }
    }
    Ok(())
}

/// Runs the programs alternately, so that a slower machine affects both.
fn race(
    programs: &[Program; 2],
    input: &Path,
    documents: &[Document],
    count: NonZeroUsize,
    folder: &Path,
) -> anyhow::Result<()> {
    let mut runs = [Vec::new(), Vec::new()];
    for turn in 0..=count.get() {
        for (program, runs) in programs.iter().zip(&mut runs) {
            let run = program.run(input, folder)?;
            let expected = documents
                .iter()
                .filter(|document| document.planted.is_some_and(program.finds))
                .count();
            ensure!(
                run.invalid == expected,
                "{} reported {} invalid documents instead of {expected}",
                program.name,
                run.invalid
            );
            // The first turn warms the caches.
            if turn > 0 {
                runs.push(run);
            }
        }
    }
    print(programs, &runs);
    Ok(())
}

/// Row of the report: its name, its value in a run, and its unit.
type Row = (&'static str, fn(&Run) -> f64, &'static str);

const ROWS: [Row; 3] = [
    ("wall time", |run| run.usage.wall_seconds * 1000.0, "ms"),
    ("CPU time", |run| run.usage.cpu_seconds * 1000.0, "ms"),
    ("peak memory", |run| run.usage.peak_kib / 1024.0, "MiB"),
];

fn print(programs: &[Program; 2], runs: &[Vec<Run>; 2]) {
    let [own, other] = programs;
    println!(
        "  {:<12} {:>30} {:>30}   ratio",
        format!("{} runs", runs[0].len()),
        own.name,
        other.name
    );
    for (name, of, unit) in ROWS {
        let [own, other] = runs.each_ref().map(|runs| Spread::of(runs.iter().map(of)));
        println!(
            "  {name:<12} {:>30} {:>30}   {:.2}",
            own.show(unit),
            other.show(unit),
            own.median / other.median
        );
    }
    let [own, other] = runs.each_ref().map(|runs| runs[0].invalid);
    println!("  {:<12} {own:>30} {other:>30}", "invalid");
}
