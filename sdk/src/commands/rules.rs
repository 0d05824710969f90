//! `lockstep rules`: lists and explains the rules.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use lockstep_shared_validation::{Layer, RuleInfo, Severity, Validator};

use crate::environment::Environment;
use crate::printer;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Id of the rule to explain. Default: all rules are listed.
    id: Option<String>,
    /// Show only rules of this kind. Default: all kinds.
    #[arg(long)]
    kind: Option<String>,
    /// Write the Markdown page with all rules of all kinds to this file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "kind"])]
    output_file: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, environment: &Environment) -> anyhow::Result<()> {
    let validators = environment.registry().validators()?;
    let mut chosen: Vec<&dyn Validator> = validators
        .iter()
        .map(|ruleset| ruleset.as_ref() as &dyn Validator)
        .collect();
    if let Some(path) = &args.output_file {
        fs::write(path, page(&chosen, environment.name()))
            .with_context(|| path.display().to_string())?;
        return printer::print(&format!("Wrote {}\n", path.display()));
    }
    if let Some(kind) = &args.kind {
        let known: Vec<_> = chosen
            .iter()
            .map(|ruleset| ruleset.kind().to_owned())
            .collect();
        chosen.retain(|ruleset| ruleset.kind().eq_ignore_ascii_case(kind));
        if chosen.is_empty() {
            bail!("unknown kind `{kind}`; known kinds: {}", known.join(", "));
        }
    }
    match &args.id {
        Some(id) => printer::print(&explain(&chosen, id, environment.name())?)?,
        None => printer::print(&list(&chosen))?,
    }
    Ok(())
}

fn list(validators: &[&dyn Validator]) -> String {
    let mut out = String::new();
    for ruleset in validators {
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
                " (warning)"
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

fn explain(validators: &[&dyn Validator], id: &str, program: &str) -> anyhow::Result<String> {
    let mut out = String::new();
    for ruleset in validators {
        for entry in ruleset.rules().iter().filter(|entry| entry.id == id) {
            let _ = writeln!(out, "{} ({})\n", entry.id, ruleset.kind());
            let _ = writeln!(out, "  {}\n", entry.description);
            let _ = writeln!(
                out,
                "  layer     {}, enforced by {}",
                entry.layer.as_str(),
                enforced_by(entry.layer)
            );
            let _ = writeln!(out, "  severity  {}", severity(entry.severity));
            let _ = writeln!(out, "  fields    {}", entry.fields.join(", "));
            if let Some(expression) = &entry.expression {
                let _ = writeln!(out, "  CEL rule  {expression}");
            }
            let _ = writeln!(out, "  source    {}", entry.reference);
        }
    }
    if out.is_empty() {
        bail!("unknown rule `{id}`; `{program} rules` lists all rules");
    }
    Ok(out)
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn enforced_by(layer: Layer) -> &'static str {
    match layer {
        Layer::Schema | Layer::Cel => "the API server, the webhook and the controller",
        Layer::Rust => "the webhook and the controller; a policy can set `deny`, `warn` or `audit`",
    }
}

/// Beginning of the references to types of the Kubernetes API.
const KUBERNETES_API: &str = "https://kubernetes.io/docs/reference/kubernetes-api/";

/// Returns true for a rule about a field inside a field that has a type of the Kubernetes API. The page lists only the
/// rules of the outer field: its reference describes the others.
fn is_inside_kubernetes(rule: &RuleInfo, all: &[RuleInfo]) -> bool {
    let is_of_kubernetes = |rule: &RuleInfo| rule.reference.starts_with(KUBERNETES_API);
    is_of_kubernetes(rule)
        && all
            .iter()
            .filter(|other| is_of_kubernetes(other))
            .any(|outer| {
                let fields = rule.fields.iter().zip(&outer.fields);
                fields.into_iter().any(|(inner, outer)| {
                    let rest = inner.strip_prefix(outer.as_str());
                    rest.is_some_and(|rest| rest.starts_with(['.', '[']))
                })
            })
}

/// Returns the Markdown page for the documentation.
fn page(validators: &[&dyn Validator], program: &str) -> String {
    let mut out = format!(
        "# Rule reference\n\nGenerated by `{program} rules --output-file docs/rules.md`. Messages of CEL and Rust rules end with the rule id in\n\
        brackets. `{program} check` prints the id with every error; metrics and audit annotations use it, too.\n",
    );
    for ruleset in validators {
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
                Layer::Schema => "Schema",
                Layer::Cel => "CEL",
                Layer::Rust => "Rust",
            };
            let _ = writeln!(
                out,
                "\n### {title}\n\nEnforced by {}.\n",
                enforced_by(layer)
            );
            let _ = writeln!(
                out,
                "| rule | severity | description | source |\n|---|---|---|---|"
            );
            let own: Vec<_> = catalogue
                .iter()
                .filter(|entry| entry.layer == layer && !is_inside_kubernetes(entry, &catalogue))
                .collect();
            for entry in own {
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
                // An unescaped `|` would end the table cell.
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
