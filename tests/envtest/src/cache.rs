//! Cache of built and installed programs. In the repository of this crate it is below the target directory, so that
//! `cargo clean` deletes it. For other packages, which get this crate from a registry, it is in the cache of the user, so
//! that several of them share it.

use std::env;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Returns the folder of this crate, which contains the Go modules and the Python requirements.
pub(crate) fn source() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the cache directory.
pub(crate) fn directory() -> PathBuf {
    if let Some(target) = env::var_os("CARGO_TARGET_DIR") {
        return PathBuf::from(target).join("control-plane");
    }
    let repository = source().join("../..");
    if repository.join("Cargo.toml").is_file() {
        return repository.join("target/control-plane");
    }
    user_cache().join("lockstep/control-plane")
}

/// Returns the folder for cached files of the user, or that for temporary files if the environment names none.
fn user_cache() -> PathBuf {
    let folder = |name: &str| {
        env::var_os(name)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    };
    let in_home = || Some(folder("HOME")?.join(".cache"));
    folder("XDG_CACHE_HOME")
        .or_else(|| folder("LOCALAPPDATA"))
        .or_else(in_home)
        .unwrap_or_else(env::temp_dir)
}

/// Locks one entry of the cache: one process at a time creates it, and the others wait and then find it.
pub(crate) fn lock(entry: &str) -> Result<File, Error> {
    let cache = directory();
    fs::create_dir_all(&cache).map_err(Error::file(&cache))?;
    let path = cache.join(format!("{entry}.lock"));
    let file = File::create(&path).map_err(Error::file(&path))?;
    file.lock().map_err(Error::file(&path))?;
    Ok(file)
}

/// Returns the name of an entry that is made from these files with these flags.
pub(crate) fn entry(name: &str, files: &[PathBuf], flags: &str) -> Result<String, Error> {
    let mut hasher = DefaultHasher::new();
    flags.hash(&mut hasher);
    for file in files {
        let content = fs::read(file).map_err(Error::file(file.as_path()))?;
        content.hash(&mut hasher);
    }
    Ok(format!("{name}-{:016x}", hasher.finish()))
}

/// Returns the first file of this name in the directories of the `PATH`.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

/// Returns a file in `KUBEBUILDER_ASSETS`, if it exists.
pub(crate) fn asset(name: &str) -> Option<PathBuf> {
    let path = Path::new(&env::var_os("KUBEBUILDER_ASSETS")?).join(name);
    path.is_file().then_some(path)
}
