//! `lockstep vector components`: lists the component types of Vector and their options.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::ValueEnum;
use lockstep_vector_api::{
    Catalogue, ComponentKind, Entry, OptionEntry, Requirement, similar_types,
};
use serde_json::{Value, json};

use crate::catalogue_files::VersionArgs;

/// Exit code for an unknown component type or catalogue.
const UNKNOWN_TYPE: u8 = 2;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Component type, such as `loki`, whose options are listed. Default: all types with their required options.
    #[arg(value_name = "TYPE")]
    name: Option<String>,
    #[command(flatten)]
    version: VersionArgs,
    /// Output format.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Text for people.
    Text,
    /// JSON: a list of component types, each with all options.
    Json,
}

/// Component type with its options.
struct Component<'a> {
    family: ComponentKind,
    name: &'a str,
    entry: &'a Entry,
    options: Vec<OptionEntry>,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let catalogue = match args.version.chosen() {
        Ok(catalogue) => catalogue,
        Err(error) => {
            eprintln!("lockstep: {error:#}");
            return ExitCode::from(UNKNOWN_TYPE);
        }
    };
    let chosen = components(&catalogue, args.name.as_deref());
    if let (Some(name), []) = (&args.name, &chosen[..]) {
        eprintln!("lockstep: {}", unknown(&catalogue, name));
        return ExitCode::from(UNKNOWN_TYPE);
    }
    let text = match args.output {
        OutputFormat::Json => format!("{:#}\n", json(&catalogue, &chosen)),
        OutputFormat::Text if args.name.is_some() => {
            let details = chosen
                .iter()
                .map(|component| detailed(&catalogue, component));
            details.collect::<Vec<_>>().join("\n")
        }
        OutputFormat::Text => overview(&catalogue, &chosen),
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has closed the pipe.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockstep: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the component types with a name, or all of them.
fn components<'a>(catalogue: &'a Catalogue, name: Option<&str>) -> Vec<Component<'a>> {
    let mut found = Vec::new();
    for family in ComponentKind::ALL {
        for kind in catalogue.kinds(family) {
            if name.is_none_or(|name| name == kind)
                && let Some(entry) = catalogue.entry(family, kind)
            {
                let options = catalogue.options(entry).list();
                found.push(Component {
                    family,
                    name: kind,
                    entry,
                    options,
                });
            }
        }
    }
    found
}

fn unknown(catalogue: &Catalogue, name: &str) -> String {
    let mut known: Vec<_> = ComponentKind::ALL
        .into_iter()
        .flat_map(|family| catalogue.kinds(family))
        .collect();
    known.sort_unstable();
    known.dedup();
    format!(
        "Vector {} has no component type `{name}`{}",
        catalogue.version,
        similar_types(name, &known)
    )
}

/// Lists all types, each with the options that it requires in any case.
fn overview(catalogue: &Catalogue, components: &[Component<'_>]) -> String {
    let mut out = format!(
        "Component types of Vector {}, with the options that each requires. `lockstep vector components TYPE` lists all options of a type.\n",
        catalogue.version
    );
    let width = components
        .iter()
        .map(|component| component.name.len())
        .max();
    let width = width.unwrap_or_default();
    for family in ComponentKind::ALL {
        let _ = writeln!(out, "\n{}", family.block());
        let own = components
            .iter()
            .filter(|component| component.family == family);
        for component in own {
            let required = required(component).join(", ");
            let line = format!("  {:width$}  {required}", component.name);
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
    out
}

/// Returns the options that a type requires, without those that are required only inside another optional one.
fn required<'a>(component: &'a Component<'_>) -> Vec<&'a str> {
    let options = component.options.iter();
    let required = options.filter(|option| option.requirement == Requirement::Required);
    let names: Vec<_> = required.map(|option| option.path.as_str()).collect();
    let is_inside_required = |path: &&&str| {
        let parents = path.match_indices('.').map(|(at, _)| &path[..at]);
        parents.into_iter().all(|parent| names.contains(&parent))
    };
    names.iter().filter(is_inside_required).copied().collect()
}

/// Lists all options of a type.
fn detailed(catalogue: &Catalogue, component: &Component<'_>) -> String {
    let mut out = format!(
        "{} {} (Vector {})\n",
        component.family.noun(),
        component.name,
        catalogue.version
    );
    let width = |text: fn(&OptionEntry) -> usize| {
        let widths = component.options.iter().map(text);
        widths.max().unwrap_or_default()
    };
    let path_width = width(|option| option.path.len());
    let requirement_width = width(|option| requirement(option).len());
    for option in &component.options {
        let line = format!(
            "  {:path_width$}  {:requirement_width$}  {}",
            option.path,
            requirement(option),
            option.expects
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn requirement(option: &OptionEntry) -> String {
    match &option.requirement {
        Requirement::Required => "required".to_owned(),
        Requirement::RequiredWith(conditions) if conditions.is_empty() => {
            "required in one form".to_owned()
        }
        Requirement::RequiredWith(conditions) if conditions.len() > 3 => {
            format!("required with {}, …", conditions[..3].join(", "))
        }
        Requirement::RequiredWith(conditions) => {
            format!("required with {}", conditions.join(", "))
        }
        Requirement::Optional => String::new(),
    }
}

fn json(catalogue: &Catalogue, components: &[Component<'_>]) -> Value {
    let option = |option: &OptionEntry| {
        let with: &[String] = match &option.requirement {
            Requirement::RequiredWith(conditions) => conditions,
            _ => &[],
        };
        json!({
            "path": option.path,
            "required": option.requirement == Requirement::Required,
            "requiredWith": with,
            "expects": option.expects,
        })
    };
    let component = |component: &Component<'_>| {
        json!({
            "kind": component.family.noun(),
            "type": component.name,
            "aliases": component.entry.aliases(),
            "options": component.options.iter().map(option).collect::<Vec<_>>(),
        })
    };
    json!({
        "vector": catalogue.version,
        "components": components.iter().map(component).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overview_lists_every_type_with_its_required_options() {
        let catalogue = Catalogue::shipped();
        let text = overview(catalogue, &components(catalogue, None));
        let line = |name: &str| {
            let mut lines = text.lines().map(str::split_whitespace);
            let line = lines.find(|words| words.clone().next() == Some(name));
            line.map(|words| words.skip(1).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(
            line("loki").as_deref(),
            Some("encoding, encoding.codec, endpoint, inputs, labels")
        );
        assert_eq!(line("kubernetes_logs").as_deref(), Some(""));
        let types = ComponentKind::ALL.map(|family| catalogue.kinds(family).len());
        let listed = text.lines().filter(|line| line.starts_with("  ")).count();
        assert_eq!(listed, types.iter().sum::<usize>());
    }

    #[test]
    fn a_type_is_listed_with_all_options_in_every_kind_that_has_it() {
        let catalogue = Catalogue::shipped();
        let file = components(catalogue, Some("file"));
        let kinds: Vec<_> = file.iter().map(|component| component.family).collect();
        assert_eq!(kinds, [ComponentKind::Source, ComponentKind::Sink]);
        let text = detailed(catalogue, &file[0]);
        assert!(text.starts_with("source file (Vector 0.57)\n"), "{text}");
        assert!(text.contains("  include "), "{text}");
        let json = json(catalogue, &file);
        assert_eq!(json["components"][1]["kind"], "sink");
        let mut options = json["components"][1]["options"]
            .as_array()
            .into_iter()
            .flatten();
        let path = options
            .find(|option| option["path"] == "path")
            .expect("a path");
        assert_eq!(path["required"], true);
        assert_eq!(path["expects"], "a string (template)");
    }

    #[test]
    fn an_unknown_type_is_answered_by_similar_ones() {
        assert_eq!(
            unknown(Catalogue::shipped(), "elastic"),
            "Vector 0.57 has no component type `elastic`; did you mean `elasticsearch`?"
        );
    }
}
