//! Calls to an API server, read from its audit log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

/// Audit log of the calls on the objects under test and their children.
pub(crate) struct Audit {
    policy: PathBuf,
    log: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    stage: String,
    #[serde(default)]
    user_agent: String,
}

/// Number of calls by verb.
pub(crate) type Calls = BTreeMap<String, usize>;

impl Audit {
    pub(crate) fn within(folder: &Path) -> anyhow::Result<Self> {
        let audit = Self {
            policy: folder.join("policy.yaml"),
            log: folder.join("audit.log"),
        };
        let rules = json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata", "resources": [
                {"group": "scale.example.com"},
                {"group": "", "resources": ["configmaps", "events"]},
                {"group": "events.k8s.io"},
            ]}],
        });
        std::fs::write(&audit.policy, rules.to_string())?;
        Ok(audit)
    }

    /// Returns the arguments that make an API server write the audit log.
    pub(crate) fn arguments(&self) -> [String; 2] {
        [
            format!("--audit-policy-file={}", self.policy.display()),
            format!("--audit-log-path={}", self.log.display()),
        ]
    }

    /// Returns the current length of the audit log.
    pub(crate) fn position(&self) -> anyhow::Result<u64> {
        Ok(std::fs::metadata(&self.log)?.len())
    }

    /// Returns the calls of a user agent from an offset on.
    pub(crate) fn calls(&self, of: &str, from: u64) -> anyhow::Result<Calls> {
        let mut file = File::open(&self.log)?;
        file.seek(SeekFrom::Start(from))?;
        let mut calls = Calls::new();
        for line in BufReader::new(file).lines() {
            let event: Event = serde_json::from_str(&line?)?;
            // A watch is counted when it starts, other calls when they complete.
            let counts = match event.verb.as_str() {
                "watch" => event.stage == "ResponseStarted",
                _ => event.stage == "ResponseComplete",
            };
            if counts && event.user_agent == of {
                *calls.entry(event.verb).or_default() += 1;
            }
        }
        Ok(calls)
    }
}
