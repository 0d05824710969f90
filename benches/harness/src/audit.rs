//! Calls to an API server, read from its audit log.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

/// Audit log of an API server.
pub struct Audit {
    policy: PathBuf,
    log: PathBuf,
}

/// Completed call. A watch is in the log from its start on.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// Verb, such as `patch`.
    pub verb: String,
    /// User agent of the client.
    #[serde(default)]
    pub user_agent: String,
    /// User of the client.
    pub user: User,
    /// Called object; none for calls such as that of the list of the API groups.
    pub object_ref: Option<ObjectReference>,
    stage: String,
}

/// User of a client.
#[derive(Debug, Deserialize)]
pub struct User {
    /// Name, such as `system:serviceaccount:default:operator`.
    #[serde(default)]
    pub username: String,
}

/// Called object.
#[derive(Debug, Deserialize)]
pub struct ObjectReference {
    /// Resource, such as `configmaps`.
    #[serde(default)]
    pub resource: String,
    /// Subresource, such as `status`.
    pub subresource: Option<String>,
}

impl Audit {
    /// Writes a policy into a folder, in which the audit log will be. It logs the calls that match one of the rules.
    pub fn within(folder: &Path, rules: &Value) -> anyhow::Result<Self> {
        let audit = Self {
            policy: folder.join("policy.yaml"),
            log: folder.join("audit.log"),
        };
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": rules,
        });
        std::fs::write(&audit.policy, policy.to_string())?;
        Ok(audit)
    }

    /// Returns the arguments that make an API server write the audit log. It keeps all calls in one file.
    pub fn arguments(&self) -> [String; 2] {
        [
            format!("--audit-policy-file={}", self.policy.display()),
            format!("--audit-log-path={}", self.log.display()),
        ]
    }

    /// Returns the current length of the audit log.
    pub fn position(&self) -> anyhow::Result<u64> {
        Ok(std::fs::metadata(&self.log)?.len())
    }

    /// Returns the calls from an offset on. A watch is counted when it starts, other calls when they complete.
    pub fn calls(&self, from: u64) -> anyhow::Result<Vec<Call>> {
        let mut file = File::open(&self.log)?;
        file.seek(SeekFrom::Start(from))?;
        let mut calls = Vec::new();
        for line in BufReader::new(file).lines() {
            let call: Call = serde_json::from_str(&line?)?;
            let counts = match call.verb.as_str() {
                "watch" => call.stage == "ResponseStarted",
                _ => call.stage == "ResponseComplete",
            };
            if counts {
                calls.push(call);
            }
        }
        Ok(calls)
    }
}
