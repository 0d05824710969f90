//! Shared libraries that a program is linked with.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;

/// Returns the paths of the libraries and of the dynamic loader, as `ldd` finds them. The program is built for this
/// machine: for another architecture, the image is built in a container of that architecture.
pub(crate) fn of(program: &Path) -> Result<Vec<PathBuf>, Error> {
    let output = Command::new("ldd").arg(program).output();
    let output = output.map_err(Error::file(Path::new("ldd")))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() || stdout.contains("not found") {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Libraries {
            program: program.to_owned(),
            output: format!("{stdout}{stderr}"),
        });
    }
    Ok(paths(&stdout))
}

/// Reads lines such as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)` and `/lib64/ld-linux-x86-64.so.2 (0x…)`. A
/// line without a path is the virtual library of the kernel.
fn paths(output: &str) -> Vec<PathBuf> {
    let words = output.lines().filter_map(|line| {
        let found = line.split_once("=>").map_or(line, |(_, found)| found);
        found.split_whitespace().next()
    });
    words
        .filter(|word| word.starts_with('/'))
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_loader_are_found_and_the_kernel_has_no_file() {
        let output = "\tlinux-vdso.so.1 (0x1)\n\
            \tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x2)\n\
            \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x3)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x4)\n";
        let expected = [
            "/lib/x86_64-linux-gnu/libgcc_s.so.1",
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(paths(output), expected.map(PathBuf::from));
    }
}
