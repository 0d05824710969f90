//! Validation of a configuration, where Vector builds its components.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

/// Environment variable with a type of sinks. If it is set, the stand-in rejects these sinks, as a build of Vector
/// without them does.
pub const MISSING_SINK: &str = "VECTOR_STAND_IN_MISSING_SINK";

/// Checks that Vector would start with the configuration of a directory.
pub(crate) fn validate(directory: &Path, configuration: &Value) -> anyhow::Result<()> {
    if let Ok(missing) = env::var(MISSING_SINK) {
        has_no_sink_of(&missing, configuration)?;
    }
    let mut command = Command::new("lockstep");
    command.args(["vector", "validate", "--start", "--config-dir"]);
    let output = command.arg(directory).output();
    let output = output.context("cannot run `lockstep vector validate`")?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        bail!("{}", String::from_utf8_lossy(&text).trim());
    }
    Ok(())
}

fn has_no_sink_of(missing: &str, configuration: &Value) -> anyhow::Result<()> {
    let sinks = configuration["sinks"].as_object().into_iter().flatten();
    for (id, sink) in sinks {
        if sink["type"] == missing {
            bail!("unknown variant `{missing}` in `sinks.{id}`");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sink_of_a_missing_type_is_an_error() {
        let configuration = json!({"sinks": {"out": {"type": "console"}}});
        let error = has_no_sink_of("console", &configuration).expect_err("it is missing");
        assert_eq!(
            error.to_string(),
            "unknown variant `console` in `sinks.out`"
        );
        has_no_sink_of("blackhole", &configuration).expect("no sink of this type");
        has_no_sink_of("console", &json!({})).expect("no sinks");
    }
}
