//! `lockstep vector trace`: shows what each component makes of an event.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lockstep_sdk::describe_read_error;
use lockstep_vector_api::{ComponentKind, Event};

use crate::catalogue_files::VersionArgs;
use crate::common_args::CommonArgs;
use crate::flow::{Flow, FlowConfig, Visit, VisitResult, event_of_line};
use crate::loaded::{EX_CONFIG, Loaded, Scope};

/// Exit code if only Vector runs a component that the event reaches.
const NOT_RUN: u8 = 2;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Configuration files, or a file with the manifest of one pipeline.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// File with an event on each line: a JSON object, or text, which becomes the message. `-` is standard input.
    #[arg(long, value_name = "FILE")]
    event: PathBuf,
    /// Component that the events leave, if it is a source, or enter. Default: the only source.
    #[arg(long, value_name = "COMPONENT")]
    at: Option<String>,
    #[command(flatten)]
    version: VersionArgs,
}

pub(crate) fn run(args: &Args, common: &CommonArgs) -> ExitCode {
    match traced(args, common) {
        Ok((text, is_complete)) => match io::stdout().lock().write_all(text.as_bytes()) {
            Ok(()) if is_complete => ExitCode::SUCCESS,
            Ok(()) => ExitCode::from(NOT_RUN),
            Err(error) => {
                eprintln!("lockstep: {error}");
                ExitCode::FAILURE
            }
        },
        Err(error) => {
            eprintln!("lockstep: {error}");
            ExitCode::from(EX_CONFIG)
        }
    }
}

/// Returns the trace of all events, and whether it is complete.
fn traced(args: &Args, common: &CommonArgs) -> Result<(String, bool), String> {
    let loaded = Loaded::read(&args.files, &args.version, common, Scope::Everything)?;
    let [only] = &loaded.configurations[..] else {
        return Err("name the files of one configuration, or one pipeline".to_owned());
    };
    let flow = Flow::new(&FlowConfig::new(&loaded.catalogue, &only.config));
    let at = entry(&flow, args.at.as_deref())?;
    let (mut text, mut is_complete) = (String::new(), true);
    for line in read(&args.event)?
        .lines()
        .filter(|line| !line.trim().is_empty())
    {
        let event = event_of_line(line);
        let _ = writeln!(text, "{at}\n  {}", event.to_json());
        let visits = visits(&flow, at, event);
        is_complete &= !visits
            .iter()
            .any(|visit| matches!(visit.result, VisitResult::NotRun(_)));
        for visit in &visits {
            describe(visit, &mut text);
        }
        text.push('\n');
    }
    Ok((text, is_complete))
}

fn visits(flow: &Flow, at: &str, event: Event) -> Vec<Visit> {
    if flow.has_transform(at) {
        flow.enter(at, event)
    } else {
        flow.leave_source(at, &event)
    }
}

/// Returns the component at which events begin.
fn entry<'a>(flow: &'a Flow, named: Option<&'a str>) -> Result<&'a str, String> {
    let sources = flow.sources();
    match (named, &sources[..]) {
        (Some(named), _) if sources.contains(&named) || flow.has_transform(named) => Ok(named),
        (Some(named), _) => Err(format!(
            "`{named}` is no source and no transform of the configuration"
        )),
        (None, [source]) => Ok(source),
        (None, _) => Err(format!(
            "the configuration has the sources `{}`; name one by --at",
            sources.join("`, `")
        )),
    }
}

fn read(file: &Path) -> Result<String, String> {
    if file.as_os_str() == "-" {
        let mut text = String::new();
        let read = io::stdin().lock().read_to_string(&mut text);
        return read.map(|_| text).map_err(|error| error.to_string());
    }
    let read = std::fs::read_to_string(file);
    read.map_err(|error| {
        format!(
            "the file {} {}",
            file.display(),
            describe_read_error(&error)
        )
    })
}

fn describe(visit: &Visit, text: &mut String) {
    let Visit {
        component, kind, ..
    } = visit;
    let noun = visit.family.noun();
    let _ = match &visit.result {
        VisitResult::Arrived(event) => {
            writeln!(text, "{component} ({noun} {kind})\n  {}", event.to_json())
        }
        VisitResult::Dropped(why) => writeln!(text, "{component} ({noun} {kind}) drops it: {why}"),
        VisitResult::NotRun(why) => {
            writeln!(text, "{component} ({noun} {kind}) is not run: {why}")
        }
        VisitResult::Passed { events, note } => {
            let note = note.as_ref().map(|note| format!(": {note}"));
            let _ = writeln!(
                text,
                "{component} ({noun} {kind}){}",
                note.unwrap_or_default()
            );
            for (output, event) in events {
                let route = if output == component {
                    String::new()
                } else {
                    format!("{output}: ")
                };
                let _ = writeln!(text, "  {route}{}", event.to_json());
            }
            if events.is_empty() {
                let _ = writeln!(text, "  no event");
            }
            Ok(())
        }
    };
    debug_assert!(
        visit.family != ComponentKind::Source,
        "nothing enters a source"
    );
}
