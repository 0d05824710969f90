//! The calls to an API server, as its audit log has them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

/// An audit log of calls that are about our objects and their children.
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

/// Calls by verb.
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

    /// What makes an API server write it.
    pub(crate) fn arguments(&self) -> [String; 2] {
        [
            format!("--audit-policy-file={}", self.policy.display()),
            format!("--audit-log-path={}", self.log.display()),
        ]
    }

    /// How far it has come.
    pub(crate) fn place(&self) -> anyhow::Result<u64> {
        Ok(std::fs::metadata(&self.log)?.len())
    }

    /// The calls of somebody from a place on.
    pub(crate) fn calls(&self, of: &str, from: u64) -> anyhow::Result<Calls> {
        let mut file = File::open(&self.log)?;
        file.seek(SeekFrom::Start(from))?;
        let mut calls = Calls::new();
        for line in BufReader::new(file).lines() {
            let event: Event = serde_json::from_str(&line?)?;
            // A watch counts when it begins, anything else when it is over.
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
