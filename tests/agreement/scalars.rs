//! Comparison with the real Vector for scalars in YAML, each as a text, an integer, a float, a boolean and a key.

use serde_json::{Value, json};

use crate::{recorded, valid_lines};

/// Recording of `vector validate --no-environment` for one configuration per scalar and place.
const RECORDING: &str = "yaml-scalars-0.57.jsonl.gz";

#[test]
fn scalars_in_yaml_are_read_as_the_real_vector_reads_them() {
    let recorded = recorded(RECORDING);
    assert!(recorded.len() > 600, "recorded results are missing");
    let id = |line: &Value| format!("{} as {}", line["scalar"], line["place"]);
    let lines: Vec<_> = recorded
        .iter()
        .map(|line| json!({"id": id(line), "config": line["yaml"], "format": "yaml"}))
        .collect();
    let ours = valid_lines(&lines.iter().collect::<Vec<_>>(), &[]);
    let different: Vec<_> = recorded
        .iter()
        .filter(|line| line["vector"] != ours[&id(line)])
        .map(|line| {
            format!(
                "{}: Vector says {} {}",
                id(line),
                line["vector"],
                line["vector_says"]
            )
        })
        .collect();
    assert_eq!(different, Vec::<String>::new());
}
