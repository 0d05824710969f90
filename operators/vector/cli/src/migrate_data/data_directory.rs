//! Vector's data directory.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

use lockstep_vector_assembly::DataMove;

/// Vector's data directory.
pub(super) struct DataDirectory {
    path: PathBuf,
}

impl DataDirectory {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Returns the directory with the read positions of a source.
    pub(super) fn of_source(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the directory with the disk buffer of a sink.
    pub(super) fn of_buffer(&self, name: &str) -> PathBuf {
        self.path.join("buffer").join("v2").join(name)
    }
}

/// Returns the moves that can be made, in any order. The others are reported.
pub(super) fn valid<'m>(moves: &'m [DataMove], report: &mut Vec<String>) -> Vec<&'m DataMove> {
    let targets: BTreeSet<_> = moves.iter().map(|it| &it.to).collect();
    let valid = moves.iter().filter(|it| {
        // A name with a path would lead elsewhere. A name that is old and new would be moved twice.
        let is_valid = is_one_name(&it.from) && is_one_name(&it.to) && !targets.contains(&it.from);
        if !is_valid {
            report.push(format!(
                "{:?} is left as it is: {:?} is not another name",
                it.from, it.to
            ));
        }
        is_valid
    });
    valid.collect()
}

/// Returns true if a name is the name of a directory, and not a path.
fn is_one_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    let is_name = matches!(components.next(), Some(Component::Normal(it)) if it == name);
    is_name && components.next().is_none()
}

/// Renames a directory. Returns false if it does not exist, or if there is a directory with the new name already.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<bool> {
    // Without this, an empty directory with the new name would be replaced, and a file.
    if !exists(from)? || exists(to)? {
        return Ok(false);
    }
    fs::rename(from, to)?;
    sync_parent(to)?;
    Ok(true)
}

/// Returns true if there is a directory, a file or a link with this name.
pub(super) fn exists(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes a file so that it has its old or its new content whenever the process or the node stops.
pub(super) fn replace(path: &Path, content: &[u8], like: &Path) -> io::Result<()> {
    let new = path.with_extension("json.migrated");
    let mut file = File::create(&new)?;
    file.write_all(content)?;
    same_owner(&new, like)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_parent(path)
}

/// Creates a directory if it does not exist, with the owner of another one: Vector may run as another user.
pub(super) fn create(path: &Path, like: &Path) -> io::Result<()> {
    if !exists(path)? {
        fs::create_dir(path)?;
        same_owner(path, like)?;
        sync_parent(path)?;
    }
    Ok(())
}

#[cfg(unix)]
fn same_owner(path: &Path, like: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, chown};
    let (own, like) = (fs::metadata(path)?, fs::metadata(like)?);
    if (own.uid(), own.gid()) == (like.uid(), like.gid()) {
        return Ok(());
    }
    chown(path, Some(like.uid()), Some(like.gid()))
}

#[cfg(not(unix))]
fn same_owner(_: &Path, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes the names in a directory durable.
fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if cfg!(unix) => File::open(parent)?.sync_all(),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(from: &str, to: &str) -> DataMove {
        DataMove {
            from: from.to_owned(),
            to: to.to_owned(),
        }
    }

    #[test]
    fn no_move_leaves_the_data_directory_or_depends_on_the_order() {
        let mut report = Vec::new();
        let moves = [
            pair("a", "b"),
            pair("../a", "c"),
            pair("d", "../../etc"),
            pair("e/f", "g"),
            pair("h", "/i"),
            pair("", "j"),
            pair("..", "k"),
            pair("b", "l"),
        ];
        let found = valid(&moves, &mut report);
        assert_eq!(found, [&moves[0]]);
        assert_eq!(report.len(), moves.len() - 1);
    }
}
