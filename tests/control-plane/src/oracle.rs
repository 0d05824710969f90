//! Kubernetes' own libraries, asked what they would say.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::Error;
use crate::tools;

/// What the libraries say to a question: `field-errors` prints a table of errors as apimachinery does,
/// `read-reviews` reads answers to reviews as strictly as it can, `rule-costs` estimates the CEL rules of a CRD as the API server does.
///
/// # Errors
///
/// When the program cannot be built or run, or refuses the input.
pub fn oracle(question: &str, input: &Value) -> Result<Value, Error> {
    let program = tools::oracle()?;
    let start = |source| Error::Start {
        program: program.display().to_string(),
        source,
    };
    let mut child = Command::new(&program)
        .arg(question)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(start)?;
    // It reads everything before it prints anything.
    let mut stdin = child.stdin.take().expect("it was piped");
    stdin
        .write_all(input.to_string().as_bytes())
        .map_err(start)?;
    drop(stdin);
    let output = child.wait_with_output().map_err(start)?;
    let failed = |output: String| Error::Failed {
        command: format!("oracle {question}"),
        output,
    };
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
}
