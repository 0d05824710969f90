//! Compares the rules engine with an API server.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use futures::stream::{self, StreamExt};
use parity::generate::Generator;
use parity::{Answer, Case, Difference, Server, compare};
use serde_json::Value;
use shared_validation::{CustomResource, Judge};

/// Whether the rules engine and the API server say the same of objects of any CRD.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare with answers that were recorded.
    Recorded {
        /// The `CustomResourceDefinition`.
        #[arg(long)]
        crd: PathBuf,
        /// The cases, one JSON object a line, as `live --record` writes them.
        #[arg(long)]
        cases: PathBuf,
    },
    /// Compare on random objects with an API server that is started for it.
    Live {
        /// The `CustomResourceDefinition`.
        #[arg(long)]
        crd: PathBuf,
        /// How many new objects.
        #[arg(long, default_value_t = 2000)]
        objects: usize,
        /// How many changes of stored objects.
        #[arg(long, default_value_t = 1000)]
        changes: usize,
        /// Where the random objects begin. The same seed gives the same objects.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Writes every case with the API server's answer.
        #[arg(long)]
        record: Option<PathBuf>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Cli::parse().command).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("parity: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn run(command: Command) -> anyhow::Result<bool> {
    match command {
        Command::Recorded { crd, cases } => {
            let resource = resource(&read_crd(&crd)?)?;
            let mut tally = Tally::default();
            let text = fs::read_to_string(&cases).with_context(|| cases.display().to_string())?;
            for line in text.lines() {
                let case: Case = serde_json::from_str(line)?;
                let answer = case
                    .answer
                    .clone()
                    .with_context(|| format!("{}: no answer", case.id))?;
                tally.count(&case, &answer, &resource)?;
            }
            Ok(tally.report())
        }
        Command::Live {
            crd,
            objects,
            changes,
            seed,
            record,
        } => {
            let crd = read_crd(&crd)?;
            let resource = resource(&crd)?;
            println!("seed {seed}");
            let cases = live(&crd, &resource, objects, changes, seed).await?;
            let mut tally = Tally::default();
            for case in &cases {
                let answer = case.answer.clone().context("every case was asked")?;
                tally.count(case, &answer, &resource)?;
            }
            if let Some(path) = record {
                let mut file = fs::File::create(&path)?;
                for case in &cases {
                    writeln!(file, "{}", serde_json::to_string(case)?)?;
                }
            }
            Ok(tally.report())
        }
    }
}

async fn live(
    crd: &Value,
    resource: &CustomResource,
    objects: usize,
    changes: usize,
    seed: u64,
) -> anyhow::Result<Vec<Case>> {
    let server = Server::start(crd, resource.version()).await?;
    let mut generator = Generator::new(crd, resource.version(), seed);
    let mut cases: Vec<_> = (0..objects)
        .map(|index| Case::create(format!("create-{seed}-{index}"), &generator.next_object()))
        .collect();
    // Several changes of each stored object.
    let olds = (0..changes.div_ceil(5))
        .map(|index| generator.named(&format!("stored-{index}")))
        .collect();
    let stored = server.store_unguarded(olds).await?;
    for (index, old) in stored
        .iter()
        .cycle()
        .take(changes.min(stored.len() * 5))
        .enumerate()
    {
        let new = generator.changed(old);
        cases.push(Case::update(
            format!("update-{seed}-{index}"),
            &new_on(old, new),
            old,
        ));
    }
    let server = &server;
    let answered = stream::iter(cases).map(|case| async move {
        let answer = server.ask(&case).await?;
        anyhow::Ok(Case {
            answer: Some(answer),
            ..case
        })
    });
    let answered: Vec<_> = answered.buffered(16).collect().await;
    answered.into_iter().collect()
}

/// An update that carries what the API server has added.
fn new_on(old: &Value, mut new: Value) -> Value {
    new["metadata"] = old["metadata"].clone();
    new
}

fn read_crd(path: &Path) -> anyhow::Result<Value> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_saphyr::from_str(&text).with_context(|| path.display().to_string())
}

fn resource(crd: &Value) -> anyhow::Result<CustomResource> {
    let mut served = CustomResource::compile_served(crd)?;
    Ok(served.remove(0))
}

#[derive(Default)]
struct Tally {
    cases: usize,
    refused: usize,
    wrong_accepts: usize,
    wrong_refusals: usize,
    errors: usize,
    messages: usize,
}

impl Tally {
    fn count(&mut self, case: &Case, answer: &Answer, judge: &dyn Judge) -> anyhow::Result<()> {
        self.cases += 1;
        self.refused += usize::from(!answer.valid);
        let Some(difference) = compare(answer, &case.judge(judge)?) else {
            return Ok(());
        };
        *match difference {
            Difference::WrongAccept => &mut self.wrong_accepts,
            Difference::WrongRefusal => &mut self.wrong_refusals,
            Difference::Errors(..) => &mut self.errors,
            Difference::Messages(_) => &mut self.messages,
        } += 1;
        println!("{}: {difference}\n  object {}", case.id, case.object);
        if let Some(old) = &case.old {
            println!("  old    {old}");
        }
        println!("  server {answer:?}\n  here   {:?}", case.judge(judge)?);
        Ok(())
    }

    /// Prints what was found; whether verdicts and errors are all equal.
    fn report(&self) -> bool {
        let Self {
            cases,
            refused,
            wrong_accepts,
            wrong_refusals,
            errors,
            messages,
        } = self;
        println!(
            "{cases} cases, {refused} refused by the API server: {wrong_accepts} wrongly accepted, {wrong_refusals} wrongly refused, \
             {errors} with other errors, {messages} with other messages"
        );
        wrong_accepts + wrong_refusals + errors == 0
    }
}
