//! The serving pair in the volume that the gate reads.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

use crate::authority::CertKeyPair;
use crate::secret::{CERTIFICATE, KEY};

/// The link that both names lead through, as in a volume that the kubelet writes.
const CURRENT: &str = "..data";

/// Writes `tls.crt` and `tls.key`, if they differ: both at once, since half a pair is none.
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

/// The pair that the gate finds.
pub(crate) fn read(directory: &Path) -> Option<CertKeyPair> {
    Some(CertKeyPair {
        certificate: fs::read_to_string(directory.join(CERTIFICATE)).ok()?,
        key: fs::read_to_string(directory.join(KEY)).ok()?,
    })
}

/// A name of a folder that nobody has used; what a writer that was cut off has left is cleared away.
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
    // The gate runs as the same group and reads only.
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o640)
        .open(path)?;
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
    fn a_pair_replaces_the_one_before_and_leaves_nothing_of_it() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["a", "b", "b", "c"] {
            write(directory.path(), &pair(name)).expect("it is written");
            assert!(read(directory.path()).is_some_and(|read| read == pair(name)));
        }
        let entries = fs::read_dir(directory.path()).expect("a directory");
        assert_eq!(entries.count(), 4, "two names, a link and its folder");
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
    fn what_a_writer_left_that_was_cut_off_does_not_matter() {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), &pair("a")).expect("it is written");
        fs::create_dir(directory.path().join("..odd")).expect("a folder");
        fs::write(directory.path().join("..odd").join(KEY), "half").expect("a file");
        symlink("nowhere", directory.path().join("....data.partial")).expect("a link");
        write(directory.path(), &pair("b")).expect("it is written");
        assert!(read(directory.path()).is_some_and(|read| read == pair("b")));
    }
}
