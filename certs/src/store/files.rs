//! Files of the TLS key pair in the volume that the webhook reads.

use std::fs;
use std::io::{self, Write};
#[cfg(unix)]
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

use crate::ca::authority::CertKeyPair;
use crate::store::secret::{CERTIFICATE, KEY};

/// Symlink in the path of both files, as in a volume that the kubelet writes.
const CURRENT: &str = "..data";

/// Writes `tls.crt` and `tls.key`, if they differ. Both are replaced atomically, because they must match.
pub(crate) fn write(directory: &Path, pair: &CertKeyPair) -> io::Result<()> {
    if read(directory).is_some_and(|found| found == *pair) {
        return Ok(());
    }
    fs::create_dir_all(directory)?;
    let before = fs::read_link(directory.join(CURRENT));
    let fresh = unused(directory)?;
    fs::create_dir(directory.join(&fresh))?;
    write_file(&directory.join(&fresh).join(KEY), &pair.key)?;
    write_file(&directory.join(&fresh).join(CERTIFICATE), &pair.certificate)?;
    replace_link(directory, CURRENT, &fresh)?;
    for name in [CERTIFICATE, KEY] {
        let target = format!("{CURRENT}/{name}");
        if fs::read_link(directory.join(name)).ok().as_deref() != Some(Path::new(&target)) {
            replace_link(directory, name, &target)?;
        }
    }
    match before {
        Ok(before) => fs::remove_dir_all(directory.join(before)),
        Err(_) => Ok(()),
    }
}

/// Returns the pair that the webhook reads.
pub(crate) fn read(directory: &Path) -> Option<CertKeyPair> {
    Some(CertKeyPair {
        certificate: fs::read_to_string(directory.join(CERTIFICATE)).ok()?,
        key: fs::read_to_string(directory.join(KEY)).ok()?,
    })
}

/// Returns the name of an unused directory, after removing what an interrupted writer may have left in it.
fn unused(directory: &Path) -> io::Result<String> {
    let current = fs::read_link(directory.join(CURRENT)).ok();
    let current = current.as_deref().and_then(Path::to_str);
    let fresh = if current == Some("..even") {
        "..odd"
    } else {
        "..even"
    };
    match fs::remove_dir_all(directory.join(fresh)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(fresh.to_owned()),
    }
}

fn write_file(path: &Path, content: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    // The webhook runs with the same group and only reads.
    #[cfg(unix)]
    options.mode(0o640);
    let mut file = options.open(path)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()
}

fn replace_link(directory: &Path, name: &str, target: &str) -> io::Result<()> {
    let partial = directory.join(format!("..{name}.partial"));
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(target, &partial)?;
    fs::rename(&partial, directory.join(name))
}

/// Fails: the atomic replacement of the pair needs the symbolic links of Unix. Clusters run the controller on Linux.
#[cfg(not(unix))]
fn symlink(_: &str, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str) -> CertKeyPair {
        CertKeyPair {
            certificate: format!("certificate {name}"),
            key: format!("key {name}"),
        }
    }

    #[test]
    fn a_pair_replaces_the_previous_one_and_leaves_no_files_of_it() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["a", "b", "b", "c"] {
            write(directory.path(), &pair(name)).expect("it is written");
            assert!(read(directory.path()).is_some_and(|read| read == pair(name)));
        }
        let entries = fs::read_dir(directory.path()).expect("a directory");
        assert_eq!(entries.count(), 4, "two names, a link and its directory");
    }

    #[test]
    fn plain_files_of_another_writer_are_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in [CERTIFICATE, KEY] {
            fs::write(directory.path().join(name), "old").expect("a file");
        }
        write(directory.path(), &pair("new")).expect("it is written");
        assert!(read(directory.path()).is_some_and(|read| read == pair("new")));
    }

    #[test]
    fn the_files_of_an_interrupted_writer_are_ignored() {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), &pair("a")).expect("it is written");
        fs::create_dir(directory.path().join("..odd")).expect("a folder");
        fs::write(directory.path().join("..odd").join(KEY), "half").expect("a file");
        symlink("nowhere", directory.path().join("....data.partial")).expect("a link");
        write(directory.path(), &pair("b")).expect("it is written");
        assert!(read(directory.path()).is_some_and(|read| read == pair("b")));
    }
}
