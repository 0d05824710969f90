//! Builds of programs from the Go modules of this crate.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use backon::{BlockingRetryable, ExponentialBuilder};

use crate::cache;
use crate::error::{Error, NETWORK_ADVICE_GO};
use crate::progress::Progress;

/// Flags of the compiler. Debuggers are not used with these programs, and the stack trace of a panic does not need debug
/// information.
const COMPILER_FLAGS: &str = "all=-dwarf=false";

/// Environment of the compiler. By default it collects its garbage so often that this takes a tenth of its time. The
/// limit, above which garbage is collected as often as necessary, is for each of the processes that run at a time.
const COMPILER_MEMORY: [(&str, &str); 2] = [("GOGC", "400"), ("GOMEMLIMIT", "2GiB")];

/// Returns the build tags of a Go module.
fn tags(module: &str) -> &'static str {
    match module {
        // Leaves out the service discovery for all clouds, and with it a fifth of the packages.
        "prometheus" => "remove_all_sd",
        _ => "",
    }
}

/// Builds one program of one of the Go modules, unless this exact version has been built already.
pub(crate) fn build(module: &str, package: &str, ldflags: &str) -> Result<PathBuf, Error> {
    let mut built = build_all(module, &[package], ldflags)?;
    Ok(built.remove(0))
}

/// Builds programs of one of the Go modules in one run of `go build`, unless these exact versions have been built
/// already. Returns their paths in the order of the packages.
pub(crate) fn build_all(
    module: &str,
    packages: &[&str],
    ldflags: &str,
) -> Result<Vec<PathBuf>, Error> {
    let wanted = packages.iter().map(|package| {
        let directory = directory(module, package, ldflags)?;
        let program = directory.join(program_name(package));
        Ok((*package, directory, program))
    });
    let wanted: Vec<_> = wanted.collect::<Result<_, Error>>()?;
    let mut directories: Vec<_> = wanted.iter().map(|(_, directory, _)| directory).collect();
    directories.dedup();
    for directory in directories {
        let name = directory.file_name().unwrap_or_default();
        let _lock = cache::lock(&name.to_string_lossy())?;
        let missing: Vec<_> = wanted
            .iter()
            .filter(|(_, at, program)| at == directory && !program.is_file())
            .map(|(package, _, _)| *package)
            .collect();
        if !missing.is_empty() {
            // `-o` accepts a directory only if it exists.
            fs::create_dir_all(directory).map_err(Error::file(directory))?;
            retried(|| go_build(module, &missing, ldflags, directory))?;
        }
    }
    Ok(wanted.into_iter().map(|(_, _, program)| program).collect())
}

/// Runs a step again if it fails because of the network: Go gives up a download at the first error.
pub(crate) fn retried<T>(step: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let delays = ExponentialBuilder::default()
        .with_min_delay(Duration::from_secs(2))
        .with_max_times(2);
    step.retry(delays)
        .when(Error::is_network_error)
        .notify(|error, after| eprintln!("{error}; trying again after {after:?}"))
        .call()
}

/// Returns the path of a program if this exact version has been built already.
pub(crate) fn built(module: &str, package: &str, ldflags: &str) -> Result<Option<PathBuf>, Error> {
    let program = directory(module, package, ldflags)?.join(program_name(package));
    Ok(program.is_file().then_some(program))
}

fn go_build(module: &str, packages: &[&str], ldflags: &str, directory: &Path) -> Result<(), Error> {
    let names: Vec<_> = packages.iter().map(|package| shown(package)).collect();
    let names = names.join(", ");
    let progress = Progress::start(&format!("building {names}"));
    progress.message("listing packages");
    let source = module_folder(module);
    let go = |subcommand: &str| {
        let mut command = Command::new("go");
        command
            .current_dir(&source)
            .args([subcommand, "-mod=readonly", "-ldflags", ldflags])
            .args(["-gcflags", COMPILER_FLAGS, "-tags", tags(module)])
            .envs(COMPILER_MEMORY);
        command
    };
    // Only packages that are not in Go's own cache are compiled.
    let stale = "{{if .Stale}}{{.ImportPath}}{{end}}";
    let listed = run_go(
        go("list").args(["-deps", "-f", stale]).args(packages),
        &names,
        |line| progress.message(line),
    )?;
    let mut remaining = listed.lines().filter(|line| !line.is_empty()).count();
    progress.set_length(u64::try_from(remaining).unwrap_or(u64::MAX), "packages");
    run_go(
        go("build").args(["-v", "-o"]).arg(directory).args(packages),
        &names,
        |line| match line.strip_prefix("go: ") {
            Some(message) => progress.message(message),
            // The name of a package that has been compiled.
            None => {
                progress.advance();
                remaining = remaining.saturating_sub(1);
                if remaining == 0 {
                    progress.message("linking");
                }
            }
        },
    )?;
    Ok(())
}

/// Runs `go` and returns its standard output. Each line of its standard error is passed to `report` at once.
fn run_go(
    command: &mut Command,
    names: &str,
    mut report: impl FnMut(&str),
) -> Result<String, Error> {
    let missing = || Error::MissingProgram {
        program: "go",
        purpose: format!("builds {names}"),
        advice: "install Go 1.26 or later (https://go.dev/doc/install), or set KUBEBUILDER_ASSETS to a folder with \
                 etcd, kube-apiserver and kubectl",
    };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::start("go", missing))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let mut printed = String::new();
    let mut complaints = String::new();
    std::thread::scope(|scope| {
        scope.spawn(|| stdout.map(|mut pipe| pipe.read_to_string(&mut printed)));
        let lines = stderr
            .into_iter()
            .flat_map(|pipe| BufReader::new(pipe).lines());
        for line in lines.map_while(Result::ok) {
            report(&line);
            // Names of packages would hide the error.
            if line.contains(' ') && !line.starts_with("go: downloading") {
                complaints.push_str(&line);
                complaints.push('\n');
            }
        }
    });
    let ended = child.wait().map_err(Error::start("go", missing))?;
    if ended.success() {
        return Ok(printed);
    }
    Err(Error::of_failed(
        format!("{command:?}"),
        complaints,
        &format!("cannot download the Go modules of {names}"),
        NETWORK_ADVICE_GO,
    ))
}

fn module_folder(module: &str) -> PathBuf {
    cache::source().join("go").join(module)
}

/// Returns the directory in the cache for the programs that are made of the same files with the same flags.
fn directory(module: &str, package: &str, ldflags: &str) -> Result<PathBuf, Error> {
    let source = module_folder(module);
    let mut made_of = vec![source.join("go.mod"), source.join("go.sum")];
    if let Some(folder) = package.strip_prefix("./") {
        made_of.extend(go_files(&source.join(folder))?);
    }
    let flags = format!("{ldflags}{}", tags(module));
    Ok(cache::directory().join(cache::entry(module, &made_of, &flags)?))
}

/// Returns the name that `go build` gives to a program: the last element of its package path that is not a major
/// version.
fn program_name(package: &str) -> &str {
    let mut elements = package.rsplit('/');
    elements
        .find(|element| !is_major_version(element))
        .unwrap_or(package)
}

/// Returns the name of a program for users. The program `server` is called etcd everywhere else.
fn shown(package: &str) -> &str {
    if package.starts_with("go.etcd.io/") {
        return "etcd";
    }
    program_name(package)
}

fn is_major_version(element: &str) -> bool {
    element
        .strip_prefix('v')
        .is_some_and(|digits| digits.chars().all(|c| c.is_ascii_digit()))
}

fn go_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).map_err(Error::file(folder))?;
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension() == Some(OsStr::new("go")))
        .collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Returns the versions of the modules in `go.mod` that are required, and of those that are replaced.
    fn versions(module: &str) -> [BTreeMap<String, String>; 2] {
        let text = fs::read_to_string(module_folder(module).join("go.mod")).expect("a go.mod");
        let [mut required, mut replaced] = [BTreeMap::new(), BTreeMap::new()];
        for line in text.lines() {
            match line.split_whitespace().collect::<Vec<_>>().as_slice() {
                [path, "=>", _, version] => {
                    replaced.insert((*path).to_owned(), (*version).to_owned());
                }
                ["require", path, version, ..] | [path, version, ..] if path.contains('.') => {
                    required.insert((*path).to_owned(), (*version).to_owned());
                }
                _ => {}
            }
        }
        [required, replaced]
    }

    /// Two versions of one module, such as `golang.org/x/net`, would compile every package twice that uses it.
    #[test]
    fn helm_kwok_and_prometheus_use_the_libraries_of_the_control_plane() {
        let [mut kubernetes, replaced] = versions("kubernetes");
        kubernetes.extend(replaced);
        for module in ["helm", "kwok", "prometheus"] {
            let [mut own, replaced] = versions(module);
            own.retain(|path, _| path.starts_with("k8s.io/") || path.starts_with("sigs.k8s.io/"));
            own.extend(replaced);
            let mut common = 0;
            for (path, version) in &own {
                if let Some(expected) = kubernetes.get(path) {
                    assert_eq!(version, expected, "{path} in the go.mod of {module}");
                    common += 1;
                }
            }
            assert!(common > 15, "{module}: {common} modules");
        }
    }
}
