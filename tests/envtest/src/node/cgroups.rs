//! Control groups of a node's Pods.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::Error;

const ROOT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "lockstep-node-";

/// Control group, in every hierarchy, below which the kubelet creates those of the Pods. It is deleted with the value.
#[derive(Debug)]
pub(crate) struct Cgroups {
    name: String,
}

impl Cgroups {
    pub(crate) fn create() -> Result<Self, Error> {
        static NEXT: AtomicU8 = AtomicU8::new(0);
        remove_leftovers();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let cgroups = Self {
            name: format!("{PREFIX}{}-{number}", std::process::id()),
        };
        for hierarchy in hierarchies() {
            let directory = hierarchy.join(&cgroups.name);
            fs::create_dir_all(&directory).map_err(Error::file(&directory))?;
            inherit_cpus(&hierarchy, &directory)?;
        }
        Ok(cgroups)
    }

    /// Returns the path below the root of each hierarchy.
    pub(crate) fn path(&self) -> String {
        format!("/{}", self.name)
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        for hierarchy in hierarchies() {
            remove(&hierarchy.join(&self.name));
        }
    }
}

/// Returns the roots of the hierarchies: one with version 2, one for each controller with version 1.
fn hierarchies() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    if root.join("cgroup.controllers").is_file() {
        return vec![root.to_owned()];
    }
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.join("cgroup.procs").is_file())
        .collect()
}

/// With version 1, a new control group has no CPUs.
fn inherit_cpus(parent: &Path, directory: &Path) -> Result<(), Error> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let path = directory.join(file);
        // With version 2, empty means inherited.
        if parent.join("cgroup.clone_children").is_file() && path.is_file() {
            let inherited = fs::read_to_string(parent.join(file)).map_err(Error::file(&path))?;
            fs::write(&path, inherited).map_err(Error::file(&path))?;
        }
    }
    Ok(())
}

/// Removes the control groups of processes that were killed.
fn remove_leftovers() {
    for hierarchy in hierarchies() {
        for entry in fs::read_dir(hierarchy).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let owner = name
                .strip_prefix(PREFIX)
                .and_then(|rest| rest.split('-').next());
            if owner.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
                remove(&entry.path());
            }
        }
    }
}

/// Removes a control group and those below it. The files in them are no real files, and cannot be removed.
fn remove(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    if let Err(error) = fs::remove_dir(directory)
        && error.kind() != ErrorKind::NotFound
    {
        eprintln!("cannot remove {}: {error}", directory.display());
    }
}
