//! Machine on which Vector starts.

/// Machine on which Vector starts.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Memory that the process may take, in bytes.
    pub memory_bytes: u64,
    /// Size of the disk with the data directory, in bytes.
    pub disk_bytes: u64,
}
