//! Usage of a process, for measurements.

/// CPU time and memory of a process.
pub struct Usage {
    /// CPU time since its start, in seconds.
    pub cpu: f64,
    /// Resident memory, in MiB.
    pub memory: u64,
}

impl Usage {
    /// Reads the usage of a process. It is zero if the process has ended.
    pub fn of(process: u32) -> Self {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let fields: Vec<_> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split(' ')
            .collect();
        let ticks: f64 = [12, 13]
            .iter()
            .filter_map(|at| fields.get(*at)?.parse::<f64>().ok())
            .sum();
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let mut lines = status.lines();
        let memory = lines.find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.and_then(|text| text.trim().split(' ').next()?.parse::<u64>().ok());
        Self {
            cpu: ticks / 100.0,
            memory: memory.unwrap_or_default() / 1024,
        }
    }
}
