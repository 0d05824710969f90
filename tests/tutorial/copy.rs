//! Copy of the repository.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Folders that are not copied: build output and history.
const LEFT: [&str; 2] = ["target", ".git"];

/// Creates a fresh copy, with the control plane that was built for the original.
pub fn copied(repository: &Path, folder: &Path) -> PathBuf {
    let copy = folder.join("tutorial");
    if copy.exists() {
        fs::remove_dir_all(&copy).expect("the previous copy is deleted");
    }
    copy_folder(repository, &copy);
    // Builds of the copy and of the original share a folder, in which file names depend on the version. Packages that the
    // tutorial does not change keep theirs, so that they are not compiled again.
    let manifest = copy.join("lockstep/Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    let renamed = text.replacen(
        "version.workspace = true",
        "version = \"0.0.0-tutorial\"",
        1,
    );
    assert_ne!(renamed, text, "`Cargo.toml` must contain a version");
    fs::write(&manifest, renamed).expect("a manifest");
    fs::create_dir(copy.join("target")).expect("a folder");
    let built = repository.join("target/control-plane");
    fs::create_dir_all(&built).expect("a folder");
    symlink(built, copy.join("target/control-plane")).expect("a link");
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let (name, path) = (entry.file_name(), entry.path());
        if LEFT.iter().any(|left| name == *left) {
            continue;
        }
        if path.is_dir() {
            copy_folder(&path, &to.join(name));
        } else {
            let file = to.join(name);
            fs::copy(&path, &file).expect("a file");
            // A newer file would be compiled again.
            let metadata = path.metadata().expect("a file");
            let modified = metadata.modified().expect("a time");
            let file = fs::File::options().write(true).open(&file).expect("a file");
            file.set_modified(modified).expect("the time is set");
        }
    }
}
