//! Graphs as an image.

use layout::backends::svg::SVGWriter;
use layout::core::base::Orientation;
use layout::core::color::Color;
use layout::core::geometry::Point;
use layout::core::style::StyleAttr;
use layout::std_shapes::shapes::{Arrow, Element, ShapeKind};
use layout::topo::layout::VisualGraph;
use lockstep_vector_api::ComponentKind;

use crate::graph::drawn::Graph;

/// Size of the text, and of a box with one line and one character more, in pixels.
const FONT: usize = 14;
const CHARACTER: f64 = 9.0;
const HEIGHT: f64 = 52.0;

/// Draws graphs. The name of each is above its first component.
pub(super) fn draw(graphs: &[Graph]) -> String {
    let mut image = VisualGraph::new(Orientation::LeftToRight);
    for graph in graphs {
        let handles: Vec<_> = graph
            .nodes
            .iter()
            .map(|node| {
                let label = format!("{}\n{}", node.id, node.kind);
                image.add_node(element(&label, color(node.family)))
            })
            .collect();
        for edge in &graph.edges {
            let label = edge.output.as_deref().unwrap_or_default();
            image.add_edge(Arrow::simple(label), handles[edge.from], handles[edge.to]);
        }
        let has_input = |at: usize| graph.edges.iter().any(|edge| edge.to == at);
        let name = image.add_node(element(&graph.name, "white"));
        for (at, handle) in handles.iter().enumerate() {
            if !has_input(at) {
                image.add_edge(Arrow::invisible(), name, *handle);
            }
        }
    }
    let mut writer = SVGWriter::new();
    image.do_it(false, false, false, &mut writer);
    writer.finalize()
}

fn element(label: &str, fill: &str) -> Element {
    let longest = label.lines().map(|line| line.chars().count()).max();
    let width = f64::from(u32::try_from(longest.unwrap_or(0)).unwrap_or(0) + 3) * CHARACTER;
    let look = StyleAttr::new(Color::fast("black"), 1, Some(Color::fast(fill)), 4, FONT);
    let size = Point::new(width, HEIGHT);
    Element::create(
        ShapeKind::new_box(label),
        look,
        Orientation::LeftToRight,
        size,
    )
}

fn color(family: ComponentKind) -> &'static str {
    match family {
        ComponentKind::Source => "honeydew",
        ComponentKind::Transform => "aliceblue",
        ComponentKind::Sink => "mistyrose",
    }
}
