//! The policy file: read, checked, and read again when it changes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde_json::Value;
use shared_validation::{Policy, PolicyHandle, ValidatorRegistry};

/// How often the file is looked at. The kubelet takes about a minute to bring a changed `ConfigMap`.
const LOOK_EVERY: Duration = Duration::from_secs(2);

#[derive(clap::Args)]
pub(crate) struct PolicyArgs {
    /// A file that sets `deny`, `warn` or `audit` for Rust rules. It is read again when it changes;
    /// while it is absent, every rule does what it says itself.
    #[arg(long = "policy", value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Reads a policy that must be there.
pub(crate) fn read(path: &Path, rulesets: &ValidatorRegistry) -> anyhow::Result<Policy> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse(&text, rulesets).with_context(|| path.display().to_string())
}

fn parse(text: &str, rulesets: &ValidatorRegistry) -> anyhow::Result<Policy> {
    let file: Value = serde_saphyr::from_str(text).context("not YAML")?;
    Ok(Policy::read(&file, rulesets)?)
}

impl PolicyArgs {
    /// Puts the policy in force and keeps it fresh. One that cannot be taken leaves the last good one in
    /// force: a typing error must neither stop the gate nor open it. Tells whenever another one is in force.
    pub(crate) fn watch(
        &self,
        rulesets: &ValidatorRegistry,
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
            "Whether the policy file as it is now is in force",
            valid.clone(),
        );
        let rules = Gauge::<i64>::default();
        registry.register(
            "lockstep_policy_rules",
            "How many rules the policy in force sets",
            rules.clone(),
        );
        let mut follower = PolicyWatcher {
            path,
            rulesets: rulesets.clone(),
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
    rulesets: ValidatorRegistry,
    current: PolicyHandle,
    valid: Gauge,
    rules: Gauge,
    /// What was read last.
    seen: Option<String>,
}

impl PolicyWatcher {
    /// Whether another policy has come into force.
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
            None => parse(&text, &self.rulesets),
        };
        let is_taken = policy.is_ok();
        match policy {
            Ok(policy) => {
                tracing::info!(%path, "the policy is in force");
                self.rules
                    .set(i64::try_from(policy.len()).unwrap_or(i64::MAX));
                self.current.set(policy);
                self.valid.set(1);
            }
            Err(error) => {
                tracing::error!(%path, error = format!("{error:#}"), "the policy is not taken; the last good one stays in force");
                self.valid.set(0);
            }
        }
        self.seen = Some(text);
        is_taken
    }
}
