//! The policy file: reading, validation, and reloading when it changes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use lockstep_shared_validation::{Policy, PolicyHandle, ValidatorRegistry};
use lockstep_webhook::off_the_runtime;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde_json::Value;

use crate::check::diagnostic::ParseError;
use crate::check::yaml::document;
use crate::read_error::describe_read_error;

/// Interval at which mounted files are checked. The kubelet takes about a minute to update the files of a changed
/// `ConfigMap`.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(2);

#[derive(clap::Args)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PolicyArgs {
    /// File that sets `deny`, `warn` or `audit` for Rust rules. It is reloaded when it changes. If it does not
    /// exist, the severity of each rule applies.
    #[arg(long = "policy", value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Reads a policy file that must exist.
pub(crate) fn read(path: &Path, validators: &ValidatorRegistry) -> anyhow::Result<Policy> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| anyhow!("the policy file {name} {}", describe_read_error(&error)))?;
    parse(&text, validators).map_err(|error| anyhow!("the policy file {name} is invalid: {error}"))
}

fn parse(text: &str, validators: &ValidatorRegistry) -> Result<Policy, String> {
    let documents: Result<Vec<_>, _> = document::read(text).into_iter().collect();
    let documents = documents.map_err(|ParseError { location, message }| {
        let at = location.map(|at| format!("line {}, column {}: ", at.line, at.column));
        format!("{}the YAML {message}", at.unwrap_or_default())
    })?;
    let file = match &documents[..] {
        [] => Value::Null,
        [file] => file.to_value(),
        more => return Err(format!("it has {} documents; write one", more.len())),
    };
    Policy::read(&file, validators).map_err(|error| error.to_string())
}

impl PolicyArgs {
    /// Loads the policy and reloads it when the file changes. If the file is invalid, the last valid policy stays
    /// in force: a typing error must neither stop the webhook nor disable its rules. Calls `on_change` whenever another
    /// policy comes into force.
    pub(crate) fn watch(
        &self,
        validators: &ValidatorRegistry,
        registry: &mut Registry,
        on_change: impl Fn() + Send + 'static,
    ) -> PolicyHandle {
        let current = PolicyHandle::default();
        let Some(path) = self.file.clone() else {
            return current;
        };
        let valid = Gauge::<i64>::default();
        registry.register(
            "lockstep_policy_valid",
            "1 if the current policy file is valid and in force, 0 otherwise",
            valid.clone(),
        );
        let rules = Gauge::<i64>::default();
        registry.register(
            "lockstep_policy_rules",
            "Number of rules that the policy in force configures",
            rules.clone(),
        );
        let mut watcher = PolicyWatcher {
            path,
            validators: validators.clone(),
            current: current.clone(),
            valid,
            rules,
            seen: None,
        };
        watcher.reload();
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(POLL_INTERVAL);
            loop {
                ticks.tick().await;
                // The rules of a kind that the policy names are compiled.
                if off_the_runtime(|| watcher.reload()) {
                    on_change();
                }
            }
        });
        current
    }
}

struct PolicyWatcher {
    path: PathBuf,
    validators: ValidatorRegistry,
    current: PolicyHandle,
    valid: Gauge,
    rules: Gauge,
    /// Result of the last reading: the content, or why it cannot be read.
    seen: Option<Result<String, String>>,
}

impl PolicyWatcher {
    /// Reads the file. Returns true if another policy has come into force.
    fn reload(&mut self) -> bool {
        let content = match std::fs::read_to_string(&self.path) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(format!("the file {}", describe_read_error(&error))),
        };
        if self.seen.as_ref() == Some(&content) {
            return false;
        }
        let path = self.path.display();
        let policy = content
            .clone()
            .and_then(|text| parse(&text, &self.validators));
        let is_valid = policy.is_ok();
        match policy {
            Ok(policy) => {
                tracing::info!(%path, "the policy was loaded and is in force");
                self.rules
                    .set(i64::try_from(policy.len()).unwrap_or(i64::MAX));
                self.current.set(policy);
                self.valid.set(1);
            }
            Err(error) => {
                tracing::error!(%path, error, "the policy file is invalid; the last valid policy stays in force");
                self.valid.set(0);
            }
        }
        self.seen = Some(content);
        is_valid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_policy_file_is_reported_with_its_name_the_problem_and_what_to_do() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let error = |name: &str| {
            let error = read(&path(name), &ValidatorRegistry::default());
            let error = error.expect_err("the file is invalid").to_string();
            let prefix = format!("the policy file {} ", path(name).display());
            error.strip_prefix(&prefix).expect(&error).to_owned()
        };
        std::fs::create_dir(path("folder")).expect("a folder");
        assert_eq!(
            error("none.yaml"),
            "cannot be read: it does not exist; check its path"
        );
        assert_eq!(
            error("folder"),
            "cannot be read: it is a folder; name a file in it"
        );
        for (content, expected) in [
            (
                &b"rules: \xff"[..],
                "cannot be read: it is not UTF-8 text; save it as UTF-8",
            ),
            (b"rules: {a", "is invalid: line 1, column "),
            (
                b"- rules",
                "is invalid: the policy is a list and must be a mapping; a policy contains `rules:`",
            ),
            (
                b"rulez: {}",
                "is invalid: rulez: the key is unknown; a policy contains `rules:`",
            ),
            (
                b"rules: {Echo: {}}",
                "is invalid: rules.Echo: the kind is unknown; the registered kinds are ",
            ),
        ] {
            std::fs::write(path("policy.yaml"), content).expect("a file");
            let found = error("policy.yaml");
            assert!(found.starts_with(expected), "{found}");
            assert!(!found.contains('\n'), "no excerpt of the parser: {found}");
        }
        std::fs::write(path("empty.yaml"), "").expect("a file");
        let empty = read(&path("empty.yaml"), &ValidatorRegistry::default());
        assert_eq!(empty.expect("an empty policy"), Policy::default());
    }
}
