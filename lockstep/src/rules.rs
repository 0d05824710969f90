//! `lockstep rules`: every rule, listed and explained.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use shared_validation::{Layer, RuleInfo, Severity, Validator};

use crate::{kinds, stdout};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The rule to explain; without one, all are listed.
    id: Option<String>,
    /// Only the rules of this kind.
    #[arg(long)]
    kind: Option<String>,
    /// Writes the page that explains every rule of every kind to this file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "kind"])]
    output_file: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let rulesets = kinds::rulesets()?;
    let mut chosen: Vec<&dyn Validator> = rulesets
        .iter()
        .map(|ruleset| ruleset.as_ref() as &dyn Validator)
        .collect();
    if let Some(path) = &args.output_file {
        return fs::write(path, page(&chosen)).with_context(|| path.display().to_string());
    }
    if let Some(kind) = &args.kind {
        let known: Vec<_> = chosen
            .iter()
            .map(|ruleset| ruleset.kind().to_owned())
            .collect();
        chosen.retain(|ruleset| ruleset.kind().eq_ignore_ascii_case(kind));
        if chosen.is_empty() {
            bail!("no kind `{kind}`; the kinds are {}", known.join(", "));
        }
    }
    match &args.id {
        Some(id) => stdout::print(&explain(&chosen, id)?)?,
        None => stdout::print(&list(&chosen))?,
    }
    Ok(())
}

fn list(rulesets: &[&dyn Validator]) -> String {
    let mut out = String::new();
    for ruleset in rulesets {
        let catalogue = ruleset.rules();
        let width = catalogue
            .iter()
            .map(|entry| entry.id.len())
            .max()
            .unwrap_or_default();
        let _ = writeln!(
            out,
            "{} ({}/{})",
            ruleset.kind(),
            ruleset.group(),
            ruleset.version()
        );
        for entry in catalogue {
            let RuleInfo {
                id,
                layer,
                severity,
                description: sentence,
                ..
            } = &entry;
            let warns = if *severity == Severity::Warning {
                " (warns)"
            } else {
                ""
            };
            let _ = writeln!(
                out,
                "  {:10}  {id:width$}  {sentence}{warns}",
                layer.as_str()
            );
        }
    }
    out
}

fn explain(rulesets: &[&dyn Validator], id: &str) -> anyhow::Result<String> {
    let mut out = String::new();
    for ruleset in rulesets {
        for entry in ruleset.rules().iter().filter(|entry| entry.id == id) {
            let _ = writeln!(out, "{} ({})\n", entry.id, ruleset.kind());
            let _ = writeln!(out, "  {}\n", entry.description);
            let _ = writeln!(
                out,
                "  layer     {}, enforced by {}",
                entry.layer.as_str(),
                enforcers(entry.layer)
            );
            let _ = writeln!(out, "  severity  {}", severity(entry.severity));
            let _ = writeln!(out, "  fields    {}", entry.fields.join(", "));
            if let Some(expression) = &entry.expression {
                let _ = writeln!(out, "  written   {expression}");
            }
            let _ = writeln!(out, "  source    {}", entry.reference);
        }
    }
    if out.is_empty() {
        bail!("no rule `{id}`; `lockstep rules` lists them");
    }
    Ok(out)
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn enforcers(layer: Layer) -> &'static str {
    match layer {
        Layer::Schema | Layer::Cel => "the API server, the gate and the loop",
        Layer::Rust => "the gate and the loop; a policy can make it warn or only count",
    }
}

/// The page for the documentation.
fn page(rulesets: &[&dyn Validator]) -> String {
    let mut out = String::from(
        "# Every rule\n\nWritten by `lockstep rules --write docs/rules.md`. The id of a rule ends the messages of CEL and Rust\n\
         rules in brackets; the desk prints it behind every error, and metrics and audit annotations name it.\n",
    );
    for ruleset in rulesets {
        let _ = writeln!(
            out,
            "\n## {} ({}/{})",
            ruleset.kind(),
            ruleset.group(),
            ruleset.version()
        );
        let catalogue = ruleset.rules();
        for layer in [Layer::Rust, Layer::Cel, Layer::Schema] {
            let title = match layer {
                Layer::Schema => "The schema",
                Layer::Cel => "CEL",
                Layer::Rust => "Rust",
            };
            let _ = writeln!(out, "\n### {title}\n\nEnforced by {}.\n", enforcers(layer));
            let _ = writeln!(
                out,
                "| rule | severity | demands | source |\n|---|---|---|---|"
            );
            for entry in catalogue.iter().filter(|entry| entry.layer == layer) {
                let RuleInfo {
                    id,
                    severity: own,
                    description: sentence,
                    reference: source,
                    ..
                } = entry;
                let source = if source.starts_with("http") {
                    format!("<{source}>")
                } else {
                    source.clone()
                };
                // A bar within a cell would end it.
                let sentence = sentence.replace('|', "\\|");
                let _ = writeln!(
                    out,
                    "| `{id}` | {} | {sentence} | {source} |",
                    severity(*own)
                );
            }
        }
    }
    out
}
