//! `lockstep vector graph`: draws the components of configurations and pipelines.

mod drawn;
mod mermaid;
mod svg;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;

use crate::catalogue_files::VersionArgs;
use crate::common_args::CommonArgs;
use crate::flow::{Flow, FlowConfig};
use crate::graph::drawn::Graph;
use crate::loaded::{EX_CONFIG, Loaded, Scope};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Configuration files, or files with the manifest of one pipeline each.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Format of the graph.
    #[arg(long, value_enum, default_value_t = Format::Mermaid)]
    format: Format,
    #[command(flatten)]
    version: VersionArgs,
}

/// Format of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text for Mermaid, which GitHub and GitLab draw in Markdown.
    Mermaid,
    /// Image.
    Svg,
}

pub(crate) fn run(args: &Args, common: &CommonArgs) -> ExitCode {
    let loaded = match Loaded::read(&args.files, &args.version, common, Scope::Everything) {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("lockstep: {error}");
            return ExitCode::from(EX_CONFIG);
        }
    };
    let configurations = loaded.configurations.iter();
    let graphs = configurations.map(|loaded_config| {
        let flow = Flow::new(&FlowConfig::new(&loaded.catalogue, &loaded_config.config));
        Graph::new(&loaded_config.name, &flow)
    });
    let graphs: Vec<_> = graphs.collect();
    let text = match args.format {
        Format::Mermaid => mermaid::draw(&graphs),
        Format::Svg => svg::draw(&graphs),
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockstep: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::Catalogue;
    use serde_json::json;

    use super::*;

    fn graphs() -> Vec<Graph> {
        let config = json!({
            "sources": {"in": {"type": "demo_logs", "format": "json"}},
            "transforms": {"by": {"type": "route", "inputs": ["in"], "route": {"a\"<b>": "true"}}},
            "sinks": {"out": {"type": "blackhole", "inputs": ["by.*"]}},
        });
        vec![Graph::new(
            "team/logs",
            &Flow::new(&FlowConfig::new(Catalogue::shipped(), &config)),
        )]
    }

    #[test]
    fn a_graph_has_its_components_and_the_outputs_between_them() {
        let text = mermaid::draw(&graphs());
        let expected = "flowchart LR\n  subgraph g0[\"team/logs\"]\n    g0n0[\"by<br/>route\"]\n    g0n1([\"in<br/>demo_logs\"])\n    g0n2[[\"out<br/>blackhole\"]]\n    g0n0 -->|\"a#quot;#lt;b#gt;\"| g0n2\n    g0n0 -->|\"_unmatched\"| g0n2\n    g0n1 --> g0n0\n  end\n";
        assert_eq!(text, expected);
        let image = svg::draw(&graphs());
        assert!(
            image.starts_with("<?xml") && image.contains("</svg>"),
            "{image}"
        );
        for text in ["demo_logs", "&lt;b&gt;", "team/logs"] {
            assert!(image.contains(text), "{text}: {image}");
        }
    }
}
