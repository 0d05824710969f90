//! `lockstep vector copy-program`: a copy of this program that runs in a container of any image.
//!
//! The image may have another C library, or none. So the copy includes the libraries and the dynamic loader of this process,
//! and is started by that loader:
//!
//! ```text
//! DIRECTORY/loader --library-path DIRECTORY/lib DIRECTORY/lockstep vector …
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

/// List of the files that are mapped into the memory of this process.
const MAPS: &str = "/proc/self/maps";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directory, which exists. Existing files are replaced.
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match copy(&args.directory) {
        Ok(()) => {
            println!("Wrote this program to {}", args.directory.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("lockstep: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn copy(directory: &Path) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("the path of this program is not known")?;
    let maps = fs::read_to_string(MAPS).context(MAPS)?;
    let libraries = libraries(&maps);
    let loader = libraries.iter().find(|library| is_loader(library));
    let loader = loader.context(
        "this program has no dynamic loader; build it for the C library of the system, as the container image has it",
    )?;
    let lib = directory.join("lib");
    fs::create_dir_all(&lib).with_context(|| lib.display().to_string())?;
    copy_file(&program, &directory.join("lockstep"))?;
    copy_file(loader, &directory.join("loader"))?;
    for library in &libraries {
        copy_file(library, &lib.join(library.file_name().unwrap_or_default()))?;
    }
    Ok(())
}

/// Copies a file with its permissions. The new file takes its name when it is complete: the container may have been
/// interrupted before.
fn copy_file(from: &Path, to: &Path) -> anyhow::Result<()> {
    let part = to.with_added_extension("part");
    let copied = fs::copy(from, &part).and_then(|_| fs::rename(&part, to));
    copied.with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

/// Returns the mapped libraries, the dynamic loader among them.
fn libraries(maps: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in maps.lines() {
        // Address, permissions, offset, device and inode come before the path.
        let Some(path) = line.split_whitespace().nth(5) else {
            continue;
        };
        let path = PathBuf::from(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_library = path.is_absolute() && (name.contains(".so.") || name.ends_with(".so"));
        if is_library && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

fn is_loader(library: &Path) -> bool {
    let name = library.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("ld-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_the_loader_are_found_once_each() {
        let maps = "\
            55d0-55d1 r--p 00000000 08:01 1 /usr/local/bin/lockstep\n\
            7f00-7f01 r--p 00000000 08:01 2 /usr/lib/x86_64-linux-gnu/libc.so.6\n\
            7f01-7f02 r-xp 00001000 08:01 2 /usr/lib/x86_64-linux-gnu/libc.so.6\n\
            7f03-7f04 rw-p 00000000 00:00 0 \n\
            7f05-7f06 r-xp 00000000 00:00 0 [vdso]\n\
            7f07-7f08 r-xp 00001000 08:01 3 /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2\n";
        let found = libraries(maps);
        let expected = [
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
        let loaders: Vec<_> = found.iter().map(|it| is_loader(it)).collect();
        assert_eq!(loaders, [false, true]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_copy_runs_with_nothing_but_its_own_files() {
        let folder = tempfile::tempdir().expect("a folder");
        copy(folder.path()).expect("it is copied");
        copy(folder.path()).expect("it can be repeated");
        let program = |args: &[&str]| {
            let mut command = std::process::Command::new(folder.path().join("loader"));
            let library_path = folder.path().join("lib");
            command.arg("--library-path").arg(library_path).args(args);
            command.arg(folder.path().join("lockstep"));
            command
        };
        let listed = program(&["--list"]).output().expect("the loader runs");
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let found = listed
            .lines()
            .filter(|line| line.contains(".so") && !line.contains("vdso"));
        let outside: Vec<_> = found
            .filter(|line| !line.contains(&*folder.path().to_string_lossy()))
            .filter(|line| !line.contains("ld-"))
            .collect();
        assert_eq!(outside, [""; 0], "{listed}");
        let help = program(&[]).arg("--help").output().expect("it runs");
        assert!(help.status.success(), "{help:?}");
    }
}
