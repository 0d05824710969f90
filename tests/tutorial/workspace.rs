//! A copy of the workspace with the repository of the tutorial as one more member.
//!
//! Built alone, the repository would need all of its dependencies once more, with other features. As a member of the
//! workspace, it uses those that are built already; only the packaged crates are compiled.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::packages::Package;

/// Folders that are not copied: build output and history.
const LEFT: [&str; 2] = ["target", ".git"];

/// Creates a fresh copy, with the control plane that was built for the original.
pub fn copied(repository: &Path, folder: &Path) -> PathBuf {
    let copy = folder.join("tutorial");
    if copy.exists() {
        fs::remove_dir_all(&copy).expect("the previous copy is deleted");
    }
    copy_folder(repository, &copy);
    fs::create_dir(copy.join("target")).expect("a folder");
    let built = repository.join("target/control-plane");
    fs::create_dir_all(&built).expect("a folder");
    symlink(built, copy.join("target/control-plane")).expect("a link");
    copy
}

/// Makes a repository a member of the workspace. Only the manifest of a workspace has profiles and replacements.
pub fn add_member(copy: &Path, member: &str, packages: &[Package]) {
    let manifest = copy.join(member).join("Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    let (own, of_workspace) = text.split_once("\n[profile.dev]").expect("profiles");
    let crates = "[patch.crates-io]\ncrd-validation = ";
    assert!(of_workspace.contains(crates), "the crates of the checkout");
    fs::write(&manifest, own).expect("a manifest");
    let manifest = copy.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    let members = "members = [\n";
    let mut text = text.replacen(members, &format!("{members}  \"{member}\",\n"), 1);
    text += "\n[patch.crates-io]\n";
    for Package { name, folder, .. } in packages {
        let folder = folder.display();
        writeln!(text, "{name} = {{ path = \"{folder}\" }}").expect("a text");
    }
    fs::write(&manifest, text).expect("a manifest");
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
