//! Check that the rules of all kinds can be compiled, although each is compiled only for its first review.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use lockstep_webhook::off_the_runtime;

use crate::registry::Registry;

/// Time after which the process is not waited for any longer.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Compiles the rules of all kinds in a process of its own, which takes the memory for them with it when it ends.
///
/// Without it, a kind that cannot be compiled would be noticed when its first review fails, and after a rollout that nothing has
/// stopped.
///
/// If the process does not succeed, whatever the reason, this one compiles them: the program may be one that cannot start itself.
///
/// # Errors
///
/// If the rules of a kind cannot be compiled.
pub(super) async fn check(registry: &Registry) -> anyhow::Result<()> {
    let compile = || registry.validators().map(drop);
    check_by(std::env::current_exe, compile).await
}

async fn check_by(
    program: impl FnOnce() -> io::Result<PathBuf> + Send + 'static,
    compile: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let compiled = tokio::task::spawn_blocking(|| compile_in(&program()?));
    let compiled = match tokio::time::timeout(TIMEOUT, compiled).await {
        Ok(ended) => ended?,
        Err(timeout) => Err(timeout.into()),
    };
    let Err(problem) = compiled else {
        return Ok(());
    };
    let problem = format!("{problem:#}");
    tracing::info!(
        problem,
        "another process of this program could not compile all rules; compiling them in this one"
    );
    off_the_runtime(compile).context("the rules are not usable")
}

/// Runs a program with the command that lists all rules.
fn compile_in(program: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(program);
    command.arg("rules");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let output = command
        .output()
        .with_context(|| program.display().to_string())?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "`rules` ended with {}: {}",
        output.status,
        problem.trim()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    /// Returns the error of the check, and whether this process has compiled the rules.
    async fn checked(program: &'static str, are_usable: bool) -> (Option<String>, bool) {
        let mut has_compiled = false;
        let compile = || {
            has_compiled = true;
            if !are_usable {
                bail!("no field `a`");
            }
            Ok(())
        };
        let checked = check_by(|| Ok(program.into()), compile).await;
        (
            checked.err().map(|error| format!("{error:#}")),
            has_compiled,
        )
    }

    #[tokio::test]
    async fn this_process_decides_unless_another_one_has_compiled_all_rules() {
        assert!(Path::new("/bin/true").exists() && Path::new("/bin/false").exists());
        assert_eq!(checked("/bin/true", false).await, (None, false));
        for program in ["/bin/false", "/nowhere"] {
            assert_eq!(checked(program, true).await, (None, true));
            let problem = "the rules are not usable: no field `a`".to_owned();
            assert_eq!(checked(program, false).await, (Some(problem), true));
        }
    }
}
