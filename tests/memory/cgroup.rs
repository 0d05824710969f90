//! Memory cgroup of a container, in version 1 or 2.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

/// Mount points of the memory controller, the unified hierarchy last.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"];

/// Cgroup that is removed when its value is dropped. Its processes must have ended.
pub struct Cgroup {
    directory: PathBuf,
    version: Version,
}

#[derive(Clone, Copy)]
enum Version {
    One,
    Two,
}

impl Cgroup {
    /// Returns an error if no cgroup can be created here.
    pub fn check() -> io::Result<()> {
        Self::create(1 << 30).map(drop)
    }

    /// Creates a cgroup with a limit.
    pub fn create(limit: u64) -> io::Result<Self> {
        let mut mounts = MOUNTS.map(Path::new).into_iter();
        let found = mounts.find_map(|mount| Some((mount, Version::mounted_at(mount)?)));
        let (mount, version) = found.ok_or(io::ErrorKind::NotFound)?;
        if let Version::Two = version {
            fs::write(mount.join("cgroup.subtree_control"), "+memory")?;
        }
        let directory = mount.join(format!("lockstep-memory-{}", process::id()));
        fs::create_dir(&directory)?;
        let cgroup = Self { directory, version };
        cgroup.write(version.files().limit, &limit.to_string())?;
        Ok(cgroup)
    }

    /// File to which a process writes its id to join.
    pub fn processes(&self) -> PathBuf {
        self.directory.join("cgroup.procs")
    }

    /// Peak memory since the last reset, in MiB.
    pub fn peak_mib(&self) -> u64 {
        let peak = self.read(self.version.files().peak);
        let peak: u64 = peak.trim().parse().expect("a number");
        peak >> 20
    }

    /// Resets the peak. Not every kernel can.
    pub fn reset_peak(&self) {
        let _ = self.write(self.version.files().peak, "0");
    }

    /// Number of processes that the kernel has killed.
    pub fn oom_kills(&self) -> u64 {
        let events = self.read(self.version.files().events);
        let kills = events
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill "));
        kills
            .and_then(|kills| kills.parse().ok())
            .expect("a number")
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.directory.join(file)).expect("a file of the cgroup")
    }

    fn write(&self, file: &str, content: &str) -> io::Result<()> {
        fs::write(self.directory.join(file), content)
    }
}

/// Names of the files of a cgroup.
struct Files {
    limit: &'static str,
    peak: &'static str,
    events: &'static str,
}

impl Version {
    /// Returns the version of the memory controller at a mount point.
    fn mounted_at(mount: &Path) -> Option<Self> {
        let controllers = fs::read_to_string(mount.join("cgroup.controllers"));
        match controllers {
            Ok(names) if names.split_whitespace().any(|name| name == "memory") => Some(Self::Two),
            _ => mount
                .join("memory.limit_in_bytes")
                .exists()
                .then_some(Self::One),
        }
    }

    fn files(self) -> Files {
        match self {
            Self::One => Files {
                limit: "memory.limit_in_bytes",
                peak: "memory.max_usage_in_bytes",
                events: "memory.oom_control",
            },
            Self::Two => Files {
                limit: "memory.max",
                peak: "memory.peak",
                events: "memory.events",
            },
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.directory);
    }
}
