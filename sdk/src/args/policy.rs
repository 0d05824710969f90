//! The policy file: reading, validation, and reloading when it changes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde_json::Value;
use shared_validation::{Policy, PolicyHandle, ValidatorRegistry};

/// Interval at which the file is checked. The kubelet takes about a minute to update the files of a changed
/// `ConfigMap`.
const LOOK_EVERY: Duration = Duration::from_secs(2);

#[derive(clap::Args)]
pub(crate) struct PolicyArgs {
    /// File that sets `deny`, `warn` or `audit` for Rust rules. It is reloaded when it changes. If it does not
    /// exist, the severity of each rule applies.
    #[arg(long = "policy", value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Reads a policy file that must exist.
pub(crate) fn read(path: &Path, validators: &ValidatorRegistry) -> anyhow::Result<Policy> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse(&text, validators).with_context(|| path.display().to_string())
}

fn parse(text: &str, validators: &ValidatorRegistry) -> anyhow::Result<Policy> {
    let file: Value = serde_saphyr::from_str(text).context("the file is not valid YAML")?;
    Ok(Policy::read(&file, validators)?)
}

impl PolicyArgs {
    /// Loads the policy and reloads it when the file changes. If the file is invalid, the last valid policy stays
    /// in force: a typing error must neither stop the webhook nor disable its rules. Calls `tell` whenever another
    /// policy comes into force.
    pub(crate) fn watch(
        &self,
        validators: &ValidatorRegistry,
        registry: &mut Registry,
        tell: impl Fn() + Send + 'static,
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
        let mut follower = PolicyWatcher {
            path,
            validators: validators.clone(),
            current: current.clone(),
            valid,
            rules,
            seen: None,
        };
        follower.reload();
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(LOOK_EVERY);
            loop {
                ticks.tick().await;
                if follower.reload() {
                    tell();
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
    /// The content that was read last.
    seen: Option<String>,
}

impl PolicyWatcher {
    /// Reads the file. Returns true if another policy has come into force.
    fn reload(&mut self) -> bool {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => format!("\0{error}"),
        };
        if self.seen.as_ref() == Some(&text) {
            return false;
        }
        let path = self.path.display();
        let policy = match text.strip_prefix('\0') {
            Some(error) => Err(anyhow::anyhow!("{error}")),
            None => parse(&text, &self.validators),
        };
        let is_taken = policy.is_ok();
        match policy {
            Ok(policy) => {
                tracing::info!(%path, "the policy was loaded and is in force");
                self.rules
                    .set(i64::try_from(policy.len()).unwrap_or(i64::MAX));
                self.current.set(policy);
                self.valid.set(1);
            }
            Err(error) => {
                tracing::error!(%path, error = format!("{error:#}"), "the policy file is invalid; the last valid policy stays in force");
                self.valid.set(0);
            }
        }
        self.seen = Some(text);
        is_taken
    }
}
