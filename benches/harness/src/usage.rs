//! Memory and CPU time of a process, read from `/proc`.

use std::fs;

use anyhow::Context;

/// Memory of a process in MiB.
pub struct Memory {
    /// Current memory.
    pub now: f64,
    /// Part of the current memory that consists of pages of files, mostly of the program's own.
    pub files: f64,
    /// Most memory so far.
    pub peak: f64,
}

/// Returns the memory of a process.
pub fn memory(pid: u32) -> anyhow::Result<Memory> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| -> anyhow::Result<f64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.split_whitespace().next());
        let kib: f64 = kib.context("/proc does not contain the field")?.parse()?;
        Ok(kib / 1024.0)
    };
    Ok(Memory {
        now: field("VmRSS:")?,
        files: field("RssFile:")?,
        peak: field("VmHWM:")?,
    })
}

/// Returns the used CPU time of a process in seconds.
pub fn cpu(pid: u32) -> anyhow::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The program name, in parentheses, may contain any character.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: Vec<f64> = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / 100.0)
}

/// Returns the load average of the machine over a minute.
pub fn load() -> anyhow::Result<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    let first = text.split_whitespace().next();
    Ok(first.context("/proc/loadavg is empty")?.parse()?)
}
