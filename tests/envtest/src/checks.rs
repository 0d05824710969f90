//! External programs that check a server, or the files that install it.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::Value;

use crate::error::Error;
use crate::process::{run, run_with_input};
use crate::tools;

/// Checks metrics with the parser of Prometheus and its naming rules, as `promtool check metrics` does.
///
/// # Errors
///
/// If the program cannot be built or run, or reports a problem.
pub fn check_metrics(metrics: &str) -> Result<(), Error> {
    run_with_input(&mut Command::new(tools::promlint()?), metrics).map(drop)
}

/// Returns the status of an object as computed by kstatus, the library of cli-utils: `Current`, `InProgress`, `Failed`,
/// `Terminating`.
///
/// # Errors
///
/// If the program cannot be built or run, or cannot read the object.
pub fn kstatus(object: &Value) -> Result<String, Error> {
    let output = run_with_input(&mut Command::new(tools::kstatus()?), &object.to_string())?;
    Ok(output.trim().trim_matches('"').to_owned())
}

/// Returns a `helm` command without the user's plugins and repositories. It is built when it is first used.
///
/// # Errors
///
/// If the program cannot be built.
pub fn helm() -> Result<Command, Error> {
    let program = tools::helm()?;
    let home = program.with_file_name("home");
    let mut command = Command::new(program);
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(variable, &home);
    }
    Ok(command)
}

/// Checks a server against the specification of HTTP/2 and returns the last line of the report.
///
/// # Errors
///
/// If the program cannot be built or run, or the server fails a case.
pub fn h2spec(server: SocketAddr, path: &str) -> Result<String, Error> {
    let output = run(Command::new(tools::h2spec()?).args([
        "--host",
        &server.ip().to_string(),
        "--port",
        &server.port().to_string(),
        "--path",
        path,
        "--tls",
        "--insecure",
    ]))?;
    Ok(output.lines().last().unwrap_or_default().to_owned())
}
