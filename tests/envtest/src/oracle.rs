//! Reference implementation: the libraries of Kubernetes.

use std::process::Command;

use serde_json::Value;

use crate::error::Error;
use crate::process::run_with_input;
use crate::tools;

/// Returns the answer of the libraries of Kubernetes. `field-errors` prints a table of errors as apimachinery does,
/// `read-reviews` parses responses to reviews as strictly as possible, and `rule-costs` estimates the CEL rules of a
/// CRD as the API server does.
///
/// # Errors
///
/// If the program cannot be built or run, or rejects the input.
pub fn oracle(question: &str, input: &Value) -> Result<Value, Error> {
    let mut command = Command::new(tools::oracle()?);
    let output = run_with_input(command.arg(question), &input.to_string())?;
    serde_json::from_str(&output).map_err(|error| Error::Failed {
        command: format!("oracle {question}"),
        output: error.to_string(),
    })
}
