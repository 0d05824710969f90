//! Installation of moto in a virtual environment of Python.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::cache;
use crate::error::{Error, NETWORK_ADVICE_PIP};
use crate::progress::Progress;

/// Installs moto if needed, and returns the path of its server.
pub fn install_moto() -> Result<PathBuf, Error> {
    let requirements = cache::source().join("python/requirements.txt");
    let entry = cache::entry("moto", std::slice::from_ref(&requirements), "")?;
    let environment = cache::directory().join(&entry);
    let server = environment.join("bin/moto_server");
    let complete = environment.join("complete");
    let _lock = cache::lock(&entry)?;
    if complete.is_file() {
        return Ok(server);
    }
    let progress = Progress::start("installing moto");
    progress.message("creating a virtual environment");
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--clear"]).arg(&environment);
    run_python(&mut venv, |_| ())?;
    let text = fs::read_to_string(&requirements).map_err(Error::file(&requirements))?;
    progress.set_length(
        u64::try_from(text.lines().count()).unwrap_or(u64::MAX),
        "packages",
    );
    let mut pip = Command::new(environment.join("bin/pip"));
    pip.args([
        "install",
        "--disable-pip-version-check",
        "--progress-bar=off",
    ])
    // The requirements list all dependencies, and most modules of the packages are never imported: neither
    // resolving nor compiling them is needed. Python compiles a module when it is first imported.
    .args(["--no-deps", "--no-compile", "--requirement"])
    .arg(&requirements);
    run_python(&mut pip, |line| {
        if line.starts_with("Collecting ") {
            progress.advance();
        } else if line.starts_with("Installing ") {
            progress.message("copying files");
        }
    })?;
    fs::write(&complete, "").map_err(Error::file(&complete))?;
    Ok(server)
}

/// Runs Python or pip. Each line of the output is passed to `report` at once.
fn run_python(command: &mut Command, report: impl Fn(&str)) -> Result<(), Error> {
    let missing = || Error::MissingProgram {
        program: "python3",
        purpose: "runs moto, the simulation of AWS".to_owned(),
        advice: "install Python 3 with its module venv",
    };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::start("python3", missing))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let mut complaints = String::new();
    let mut printed = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| stderr.map(|mut pipe| pipe.read_to_string(&mut complaints)));
        let lines = stdout
            .into_iter()
            .flat_map(|pipe| BufReader::new(pipe).lines());
        for line in lines.map_while(Result::ok) {
            report(&line);
            printed.push(line);
        }
    });
    let ended = child.wait().map_err(Error::start("python3", missing))?;
    if ended.success() {
        return Ok(());
    }
    // venv prints its advice on the standard output.
    let output = format!("{}\n{complaints}", printed.join("\n"));
    Err(Error::of_failed(
        format!("{command:?}"),
        output.trim().to_owned(),
        "cannot download the Python packages of moto",
        NETWORK_ADVICE_PIP,
    ))
}
