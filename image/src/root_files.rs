//! Files in the root file system of an image.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// CA certificates of Debian and its descendants.
pub const CA_CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// User and group of the process, as `nonroot` in distroless images.
pub(crate) const USER: u32 = 65532;

/// Files by path, without the leading slash.
#[derive(Debug, Default)]
pub(crate) struct RootFiles(BTreeMap<PathBuf, File>);

#[derive(Debug)]
struct File {
    mode: u32,
    content: Vec<u8>,
}

impl RootFiles {
    fn add(&mut self, path: &Path, mode: u32, content: Vec<u8>) {
        let path = path.strip_prefix("/").unwrap_or(path);
        self.0.insert(path.to_owned(), File { mode, content });
    }

    /// Adds the program, and returns its path in the image.
    pub(crate) fn add_program(&mut self, program: &Path) -> Result<String, Error> {
        let content = fs::read(program).map_err(Error::file(program))?;
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let path = format!("/usr/local/bin/{name}");
        self.add(Path::new(&path), 0o755, content);
        Ok(path)
    }

    /// Adds a library at its path on this machine, which is among the default paths of the dynamic loader.
    pub(crate) fn add_library(&mut self, library: &Path) -> Result<(), Error> {
        let content = fs::read(library).map_err(Error::file(library))?;
        self.add(library, 0o755, content);
        Ok(())
    }

    pub(crate) fn add_ca_certificates(&mut self, file: &Path) -> Result<(), Error> {
        let content = fs::read(file).map_err(Error::file(file))?;
        self.add(Path::new(CA_CERTIFICATES), 0o644, content);
        Ok(())
    }

    /// Adds the users and groups, and the order in which glibc resolves host names.
    pub(crate) fn add_accounts(&mut self) {
        let passwd = format!(
            "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/:/sbin/nologin\n"
        );
        let group = format!("root:x:0:\nnonroot:x:{USER}:\n");
        let files = [
            ("etc/passwd", passwd),
            ("etc/group", group),
            ("etc/nsswitch.conf", "hosts: files dns\n".to_owned()),
        ];
        for (path, content) in files {
            self.add(Path::new(path), 0o644, content.into_bytes());
        }
    }

    /// Writes the files as a tar file: sorted, owned by root and without times, so that equal files give equal bytes.
    pub(crate) fn write_tar(&self, to: impl Write) -> std::io::Result<()> {
        let mut tar = tar::Builder::new(to);
        for directory in self.directories() {
            let mut header = header(tar::EntryType::Directory, 0o755, 0);
            tar.append_data(&mut header, directory.join(""), std::io::empty())?;
        }
        for (path, file) in &self.0 {
            let length = file.content.len() as u64;
            let mut header = header(tar::EntryType::Regular, file.mode, length);
            tar.append_data(&mut header, path, file.content.as_slice())?;
        }
        tar.into_inner()?.flush()
    }

    pub(crate) fn write_to_directory(&self, root: &Path) -> Result<(), Error> {
        for directory in self.directories() {
            let directory = root.join(directory);
            fs::create_dir_all(&directory).map_err(Error::file(&directory))?;
        }
        for (path, file) in &self.0 {
            let path = root.join(path);
            fs::write(&path, &file.content)
                .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(file.mode)))
                .map_err(Error::file(&path))?;
        }
        Ok(())
    }

    /// Returns the directories of all files, parents first.
    fn directories(&self) -> BTreeSet<&Path> {
        let parents = self.0.keys().flat_map(|path| path.ancestors().skip(1));
        parents
            .filter(|path| !path.as_os_str().is_empty())
            .collect()
    }
}

/// Returns a header with owner root and the earliest time.
pub(crate) fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}
