//! The serving pair in the volume that the gate reads.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::authority::KeyMaterial;

/// Writes `tls.crt` and `tls.key`, each atomically, and only when it differs. The CA's key is not
/// written.
pub(crate) fn write(directory: &Path, keys: &KeyMaterial) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    // The gate serves a pair only when both belong together, so the order does not matter.
    replace(directory, "tls.key", &keys.key)?;
    replace(directory, "tls.crt", &keys.certificate)
}

fn replace(directory: &Path, name: &str, content: &str) -> io::Result<()> {
    let path = directory.join(name);
    if fs::read(&path).is_ok_and(|existing| existing == content.as_bytes()) {
        return Ok(());
    }
    let partial = directory.join(format!(".{name}.partial"));
    // The gate runs as the same group and reads only.
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o640)
        .open(&partial)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()?;
    fs::rename(&partial, &path)
}
