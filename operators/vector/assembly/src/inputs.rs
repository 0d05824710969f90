//! Inputs of components: the outputs of components of the same pipeline.
//!
//! In the configuration of a whole workload, a pattern would match components of other pipelines. So patterns are
//! replaced with what they match within their pipeline, by the rules of Vector: a pattern matches every output but that
//! of the component itself; a text that matches nothing as a pattern is a name.

use std::collections::BTreeSet;

use glob::Pattern;
use serde_json::{Map, Value};

use crate::names::FinalNames;

/// Replaces the inputs of a component with their final names. `outputs` are the outputs of all components of the
/// pipeline.
pub(crate) fn rewrite(
    id: &str,
    component: &mut Map<String, Value>,
    outputs: &[String],
    names: &FinalNames,
) -> Result<(), String> {
    let Some(inputs) = component.get_mut("inputs") else {
        return Ok(());
    };
    let Some(written) = inputs.as_array() else {
        return Err(format!("`inputs` of `{id}` must be a list of names"));
    };
    let mut seen = BTreeSet::new();
    let mut rewritten = Vec::new();
    for input in written {
        let Some(input) = input.as_str() else {
            return Err(format!("`inputs` of `{id}` must be a list of names"));
        };
        let matched = matching(id, input, outputs);
        if matched.is_empty() {
            return Err(format!(
                "the input `{input}` of `{id}` matches no output of the pipeline"
            ));
        }
        let new = matched.into_iter().filter(|output| seen.insert(*output));
        // Vector reads each input as a pattern, and a name may have special characters.
        rewritten.extend(new.map(|output| Pattern::escape(&names.of_output(output))));
    }
    *inputs = rewritten.into();
    Ok(())
}

fn matching<'o>(id: &str, input: &str, outputs: &'o [String]) -> Vec<&'o str> {
    let others = outputs.iter().map(String::as_str);
    let others = others.filter(|output| *output != id);
    if let Ok(pattern) = Pattern::new(input) {
        let matched: Vec<_> = others
            .clone()
            .filter(|output| pattern.matches(output))
            .collect();
        if !matched.is_empty() {
            return matched;
        }
    }
    others.filter(|output| *output == input).collect()
}

/// Renames the inputs for which `graph.edge_attributes` describes how `vector graph` draws them. Besides `inputs`, it is
/// the only option of sources, transforms and sinks that contains names of components.
pub(crate) fn rewrite_graph(
    component: &mut Map<String, Value>,
    is_own: impl Fn(&str) -> bool,
    names: &FinalNames,
) {
    let graph = component.get_mut("graph");
    let edges = graph.and_then(|graph| graph.get_mut("edge_attributes"));
    if let Some(edges) = edges.and_then(Value::as_object_mut) {
        let renamed = std::mem::take(edges).into_iter().map(|(input, value)| {
            let input = if is_own(&input) {
                names.of_output(&input)
            } else {
                input
            };
            (input, value)
        });
        *edges = renamed.collect();
    }
}

/// Renames the components to which a component of a part refers. `renamed` returns the new name of one, if it has one. The
/// prefixes of pipelines have no special characters of patterns, so that it is the same in an escaped name.
pub(crate) fn rename(component: &mut Value, renamed: &impl Fn(&str) -> Option<String>) {
    let inputs = component.get_mut("inputs").and_then(Value::as_array_mut);
    for input in inputs.into_iter().flatten() {
        if let Some(new) = input.as_str().and_then(renamed) {
            *input = new.into();
        }
    }
    let graph = component.get_mut("graph");
    let edges = graph.and_then(|graph| graph.get_mut("edge_attributes"));
    if let Some(edges) = edges.and_then(Value::as_object_mut) {
        let all = std::mem::take(edges).into_iter();
        *edges = all
            .map(|(input, value)| (renamed(&input).unwrap_or(input), value))
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pipeline::PipelineKey;
    use lockstep_vector_api::ComponentNames;

    fn rewritten(id: &str, inputs: &Value, outputs: &[&str]) -> Result<Value, String> {
        let key = PipelineKey {
            namespace: Some("a".to_owned()),
            name: "p".to_owned(),
        };
        let names = FinalNames::of(ComponentNames::Underscores, &key, false).expect("names");
        let outputs: Vec<_> = outputs.iter().map(|output| (*output).to_owned()).collect();
        let mut component = Map::from_iter([("inputs".to_owned(), inputs.clone())]);
        rewrite(id, &mut component, &outputs, &names)?;
        Ok(component["inputs"].clone())
    }

    #[test]
    fn a_pattern_becomes_the_outputs_that_it_matches_within_the_pipeline() {
        let outputs = ["in", "in2", "r.a", "r._unmatched", "t", "t.dropped"];
        for (id, inputs, expected) in [
            ("t", json!(["in"]), json!(["a__p__in"])),
            ("t", json!(["in*"]), json!(["a__p__in", "a__p__in2"])),
            (
                "x",
                json!(["r.*"]),
                json!(["a__p__r.a", "a__p__r._unmatched"]),
            ),
            ("x", json!(["in?", "in*"]), json!(["a__p__in2", "a__p__in"])),
            // A component is no input of itself, while its other outputs are.
            ("t", json!(["t*"]), json!(["a__p__t.dropped"])),
            (
                "t",
                json!(["*"]),
                json!([
                    "a__p__in",
                    "a__p__in2",
                    "a__p__r.a",
                    "a__p__r._unmatched",
                    "a__p__t.dropped"
                ]),
            ),
        ] {
            assert_eq!(rewritten(id, &inputs, &outputs), Ok(expected), "{inputs}");
        }
    }

    #[test]
    fn a_name_that_is_no_pattern_for_vector_is_a_name() {
        // As a pattern, `[ab]` matches neither output.
        let outputs = ["r.[ab]", "[", "s.[c]", "s.c"];
        let escaped = |inputs| rewritten("x", &inputs, &outputs);
        assert_eq!(escaped(json!(["r.[ab]"])), Ok(json!(["a__p__r.[[]ab[]]"])));
        assert_eq!(escaped(json!(["["])), Ok(json!(["a__p__[[]"])));
        assert_eq!(escaped(json!(["s.[c]"])), Ok(json!(["a__p__s.c"])));
    }

    #[test]
    fn an_input_that_matches_no_output_of_the_pipeline_is_an_error() {
        for inputs in [json!(["b__p__in"]), json!(["a__p__in"]), json!(["x*"])] {
            let error = rewritten("x", &inputs, &["in"]).expect_err("an error");
            assert!(error.contains("matches no output"), "{error}");
        }
        for own in ["t", "[t]"] {
            let error = rewritten(own, &json!([own]), &["in", own]).expect_err("an error");
            assert!(error.contains("matches no output"), "{error}");
        }
        for inputs in [json!("in"), json!([1]), json!({"in": 1})] {
            let error = rewritten("x", &inputs, &["in"]).expect_err("an error");
            assert!(error.contains("must be a list"), "{error}");
        }
    }
}
