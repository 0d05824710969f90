//! Components with which Vector itself tells in its log which configuration it runs.
//!
//! For each file of the configuration, a source prints one line when it starts, and never again. It is part of the same Secret,
//! and the line has a fingerprint of the file. A configuration that Vector refuses starts no source, and one whose reload waits
//! for a component that does not end starts its sources after that. All versions since 0.40 have both components.

use std::collections::BTreeMap;

use serde_json::json;

/// Beginning of the names of the components. No component of a pipeline has such a name: a namespace has no underscore.
const COMPONENT: &str = "lockstep_loaded";

/// Number of characters of the fingerprint.
const FINGERPRINT: usize = 32;

/// Returns the lines that a Vector prints once it runs all files, by the names of the files. Each changes with the configuration, also
/// with the other files: Vector prints a line only if it has changed, and the log does not keep older ones.
pub(crate) fn lines<'a>(
    files: impl Iterator<Item = &'a String>,
    config_hash: &str,
) -> BTreeMap<String, String> {
    let hash = &config_hash[..FINGERPRINT];
    let line = |file: &String| format!("lockstep has loaded {file} {hash}");
    files.map(|file| (file.clone(), line(file))).collect()
}

/// Returns the name and the content of the file with the components that print the line.
pub(crate) fn file(file: &str, line: &str) -> (String, Vec<u8>) {
    let stem = file.trim_end_matches(".json").replace('-', "_");
    let source = format!("{COMPONENT}_{stem}");
    let sink = format!("{source}_log");
    let config = json!({
        "sources": {(&source): {
            "type": "demo_logs", "format": "shuffle", "lines": [line], "count": 1,
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
    use lockstep_vector_assembly::fingerprint;

    use super::*;

    #[test]
    fn each_line_changes_with_the_configuration_and_its_components_are_valid() {
        let files = ["agent-1.json", "agent.json"].map(str::to_owned);
        let hashes = [json!({}), json!({"sources": {}})].map(|config| fingerprint(&config));
        let [before, after] = hashes.map(|hash| lines(files.iter(), &hash));
        assert!(before.iter().all(|(file, line)| after[file] != *line));
        assert_ne!(before["agent.json"], before["agent-1.json"]);
        let line = &before["agent-1.json"];
        let (name, content) = file("agent-1.json", line);
        assert_eq!(name, "loaded-agent-1.json");
        assert!(String::from_utf8_lossy(&content).contains(line));
        let config = serde_json::from_slice(&content).expect("JSON");
        for version in VectorVersion::MEASURED {
            let catalogue = Catalogue::of_version(version).expect("a catalogue");
            let environment = VrlEnvironment::shared(InProcessCompiler::boxed);
            let none = BTreeSet::new();
            let found =
                validate_config(catalogue, &config, &none, &environment, ProgramScope::Start);
            assert_eq!(found, []);
        }
    }
}
