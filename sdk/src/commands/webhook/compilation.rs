//! Check that the rules of all kinds can be compiled, although each is compiled only for its first review.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::ensure;

/// Compiles the rules of all kinds in a process of its own, which takes the memory for them with it when it ends.
///
/// Without it, a kind that cannot be compiled would be noticed when its first review fails, and after a rollout that nothing has
/// stopped.
///
/// If the process cannot be started or is killed, which says nothing about the rules, it is only logged: the webhook goes on.
///
/// # Errors
///
/// If the rules of a kind cannot be compiled.
pub(super) async fn check() -> anyhow::Result<()> {
    tokio::task::spawn_blocking(|| run(&std::env::current_exe()?)).await?
}

fn run(program: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(program);
    // The environment contains options of other commands.
    command.arg("rules").env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let output = match command.stderr(Stdio::piped()).output() {
        Ok(output) if output.status.code().is_some() => output,
        interrupted => {
            let problem = interrupted.map(|output| output.status);
            tracing::warn!(
                ?problem,
                "it is not known whether all rules can be compiled"
            );
            return Ok(());
        }
    };
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "the rules are not usable: `rules` ended with {}: {}",
        output.status,
        problem.trim()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_that_fails_is_an_error_and_has_its_reason() {
        let error = |program: &str| {
            let checked = run(Path::new(program));
            checked.err().map(|error| format!("{error:#}"))
        };
        assert_eq!(error("/bin/true"), None);
        let failed = error("/bin/ls").expect("there is no file of this name");
        assert!(
            failed.contains("`rules` ended with exit status: 2"),
            "{failed}"
        );
        assert!(failed.contains("No such file"), "{failed}");
        assert_eq!(error("/nowhere"), None);
    }
}
