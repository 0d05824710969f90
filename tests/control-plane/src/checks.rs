//! Other people's programs that hold a server against its specifications.

use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::process::run;
use crate::tools;

/// Holds metrics against Prometheus' reader and its naming rules, as `promtool check metrics` does.
///
/// # Errors
///
/// When the program cannot be built or run, or finds something.
pub fn check_metrics(metrics: &str) -> Result<(), Error> {
    let program = tools::promlint()?;
    let start = |source| Error::Start {
        program: program.display().to_string(),
        source,
    };
    let mut child = Command::new(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(start)?;
    // It reads everything before it prints anything.
    let mut stdin = child.stdin.take().expect("it was piped");
    stdin.write_all(metrics.as_bytes()).map_err(start)?;
    drop(stdin);
    let output = child.wait_with_output().map_err(start)?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Failed {
        command: "promlint".to_owned(),
        output: String::from_utf8_lossy(&output.stdout).into_owned(),
    })
}

/// Holds a server against the specification of HTTP/2, and gives what is said in the end.
///
/// # Errors
///
/// When the program cannot be built or run, or the server fails in a case.
pub fn h2spec(server: SocketAddr, path: &str) -> Result<String, Error> {
    let said = run(Command::new(tools::h2spec()?).args([
        "--host",
        &server.ip().to_string(),
        "--port",
        &server.port().to_string(),
        "--path",
        path,
        "--tls",
        "--insecure",
    ]))?;
    Ok(said.lines().last().unwrap_or_default().to_owned())
}
