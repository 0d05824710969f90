//! Components with which Vector itself tells in its log which configuration it runs.
//!
//! For each file of the configuration, a source prints one line when it starts, and never again. It is part of the same Secret,
//! and the line has a fingerprint of the file. A configuration that Vector refuses starts no source, and one whose reload waits
//! for a component that does not end starts its sources after that. All versions since 0.40 have both components.

use std::collections::BTreeMap;

use lockstep_vector_assembly::fingerprint;
use serde_json::json;

/// Beginning of the names of the components. No component of a pipeline has such a name: a namespace has no underscore.
const COMPONENT: &str = "lockstep_loaded";

/// Number of characters of the fingerprint.
const FINGERPRINT: usize = 32;

/// Returns the line that a Vector prints once it runs a file.
pub(crate) fn line(file: &str, content: &[u8]) -> String {
    let hash = fingerprint(&json!([file, String::from_utf8_lossy(content)]));
    format!("lockstep has loaded {file} {}", &hash[..FINGERPRINT])
}

/// Returns the lines that a Vector prints once it runs all files.
pub(crate) fn lines(files: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    files
        .iter()
        .map(|(name, content)| line(name, content))
        .collect()
}

/// Returns the name and the content of the file with the components that print the line.
pub(crate) fn file(file: &str, content: &[u8]) -> (String, Vec<u8>) {
    let stem = file.trim_end_matches(".json").replace('-', "_");
    let source = format!("{COMPONENT}_{stem}");
    let sink = format!("{source}_log");
    let config = json!({
        "sources": {(&source): {
            "type": "demo_logs", "format": "shuffle", "lines": [line(file, content)], "count": 1,
        }},
        "sinks": {(sink): {"type": "console", "inputs": [source], "encoding": {"codec": "text"}}},
    });
    (format!("loaded-{file}"), config.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lockstep_vector_api::{
        Catalogue, InProcessCompiler, ProgramScope, VectorVersion, VrlEnvironment, validate_config,
    };

    use super::*;

    #[test]
    fn the_line_changes_with_the_file_and_its_components_are_valid() {
        let (name, content) = file("agent-1.json", b"{}");
        assert_eq!(name, "loaded-agent-1.json");
        let config = serde_json::from_slice(&content).expect("JSON");
        for version in VectorVersion::MEASURED {
            let catalogue = Catalogue::of_version(version).expect("a catalogue");
            let environment = VrlEnvironment::shared(InProcessCompiler::boxed);
            let none = BTreeSet::new();
            let found =
                validate_config(catalogue, &config, &none, &environment, ProgramScope::Start);
            assert_eq!(found, []);
        }
        let one = line("agent.json", b"{}");
        assert!(String::from_utf8_lossy(&file("agent.json", b"{}").1).contains(&one));
        assert_ne!(one, line("agent.json", b"{ }"));
        assert_ne!(one, line("config.json", b"{}"));
    }
}
