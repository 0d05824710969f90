//! Quotas: what the pipelines of a namespace may take of one workload, which they share with those of other namespaces.

use std::io::{self, Write};

use lockstep_vector_config::Component;
use serde::Deserialize;

/// Maxima of what the pipelines of a namespace take together of one workload. None: there is no maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Quota {
    /// Number of pipelines.
    pub pipelines: Option<u64>,
    /// Number of components.
    pub components: Option<u64>,
    /// Bytes of the configuration, as JSON.
    pub configuration_bytes: Option<u64>,
    /// Bytes of the values of Secrets.
    pub secret_bytes: Option<u64>,
    /// Bytes of memory that buffers, batches and caches may take in each Pod.
    pub memory_bytes: Option<u64>,
    /// Bytes of disk buffers in each Pod.
    pub disk_bytes: Option<u64>,
    /// Connections in each Pod, as far as options limit them.
    pub connections: Option<u64>,
}

impl Quota {
    /// Maxima that suit an agent with 1 GiB of memory and tens of tenants.
    pub const DEFAULT: Self = Self {
        pipelines: Some(100),
        components: Some(1_000),
        configuration_bytes: Some(1 << 20),
        secret_bytes: Some(128 << 10),
        memory_bytes: Some(256 << 20),
        disk_bytes: Some(8 << 30),
        connections: Some(4_096),
    };

    /// Names of the maxima in the policy.
    pub(crate) const NAMES: [&str; 7] = [
        "components",
        "configurationBytes",
        "connections",
        "diskBytes",
        "memoryBytes",
        "pipelines",
        "secretBytes",
    ];

    /// Returns these maxima, and others where these are missing.
    pub(crate) fn or(self, others: Self) -> Self {
        Self {
            pipelines: self.pipelines.or(others.pipelines),
            components: self.components.or(others.components),
            configuration_bytes: self.configuration_bytes.or(others.configuration_bytes),
            secret_bytes: self.secret_bytes.or(others.secret_bytes),
            memory_bytes: self.memory_bytes.or(others.memory_bytes),
            disk_bytes: self.disk_bytes.or(others.disk_bytes),
            connections: self.connections.or(others.connections),
        }
    }
}

/// Returns the bytes of components as JSON.
#[must_use]
pub fn bytes<'a>(components: impl Iterator<Item = Component<'a>>) -> u64 {
    let mut count = Count(0);
    for component in components {
        // Quotes, a colon and a comma.
        count.0 += component.id.len() + 4;
        // Counting does not fail.
        drop(serde_json::to_writer(&mut count, component.value));
    }
    u64::try_from(count.0).unwrap_or(u64::MAX)
}

/// Writer that only counts the bytes.
struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
