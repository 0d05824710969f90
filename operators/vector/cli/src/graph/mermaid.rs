//! Graphs as text for Mermaid.

use std::fmt::Write as _;

use lockstep_vector_api::ComponentKind;

use crate::graph::drawn::Graph;

/// Draws graphs, each in a box of its own.
pub(super) fn draw(graphs: &[Graph]) -> String {
    let mut text = "flowchart LR\n".to_owned();
    for (index, graph) in graphs.iter().enumerate() {
        let _ = writeln!(text, "  subgraph g{index}[\"{}\"]", escaped(&graph.name));
        for (at, node) in graph.nodes.iter().enumerate() {
            let label = format!("\"{}<br/>{}\"", escaped(&node.id), escaped(&node.kind));
            let shape = match node.family {
                ComponentKind::Source => format!("([{label}])"),
                ComponentKind::Transform => format!("[{label}]"),
                ComponentKind::Sink => format!("[[{label}]]"),
            };
            let _ = writeln!(text, "    g{index}n{at}{shape}");
        }
        for edge in &graph.edges {
            let name = edge.output.as_ref();
            let name = name.map(|name| format!("|\"{}\"|", escaped(name)));
            let _ = writeln!(
                text,
                "    g{index}n{} -->{} g{index}n{}",
                edge.from,
                name.unwrap_or_default(),
                edge.to
            );
        }
        text.push_str("  end\n");
    }
    text
}

/// Replaces the characters that end a label, or that are HTML in it.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '"' => escaped.push_str("#quot;"),
            '<' => escaped.push_str("#lt;"),
            '>' => escaped.push_str("#gt;"),
            '#' => escaped.push_str("#35;"),
            '&' => escaped.push_str("#amp;"),
            character if character.is_control() => escaped.push(' '),
            character => escaped.push(character),
        }
    }
    escaped
}
