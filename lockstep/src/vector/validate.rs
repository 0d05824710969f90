//! `lockstep vector validate`: validation of Vector configurations.

use std::io::{self, BufReader, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use lockstep_sdk::{InputFormat, describe_read_error, on_one_line};
use lockstep_vector_api::Catalogue;

use crate::vector::configuration;
use crate::vector::configuration::{File, Format};
use crate::vector::lines;
use crate::vector::problems::problems;

/// Exit code for a configuration that Vector would reject: `EX_CONFIG`, as in Vector.
const EX_CONFIG: u8 = 78;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Files that form one configuration together. The extension selects YAML, JSON or TOML; `-` reads YAML from
    /// standard input.
    files: Vec<PathBuf>,
    /// YAML file, whatever its name. Can be repeated.
    #[arg(long, value_name = "FILE")]
    config_yaml: Vec<PathBuf>,
    /// JSON file, whatever its name. Can be repeated.
    #[arg(long, value_name = "FILE")]
    config_json: Vec<PathBuf>,
    /// TOML file, whatever its name. Can be repeated.
    #[arg(long, value_name = "FILE")]
    config_toml: Vec<PathBuf>,
    /// Treat warnings as errors.
    #[arg(short, long)]
    deny_warnings: bool,
    /// Accepted and ignored: nothing outside the configuration is ever checked.
    #[arg(long)]
    no_environment: bool,
    /// Read one configuration `{"id":…,"config":…}` per line and write one result per line. Without files, reads
    /// standard input.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["config_yaml", "config_json", "config_toml", "deny_warnings"])]
    input_format: Option<InputFormat>,
    /// Also report errors that prevent Vector from starting although `vector validate --no-environment` accepts
    /// the configuration: template confinement.
    #[arg(long)]
    start: bool,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let done = if args.input_format == Some(InputFormat::Jsonl) {
        validate_lines(&args.files, args.start)
    } else {
        validate(args)
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(EX_CONFIG),
        // The reader has closed the pipe.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::from(EX_CONFIG),
        Err(error) => {
            eprintln!("lockstep: {error}");
            ExitCode::from(EX_CONFIG)
        }
    }
}

/// Returns true if Vector would start with the configuration.
fn validate(args: &Args) -> io::Result<bool> {
    let mut files: Vec<_> = args.files.iter().map(|path| File::new(path)).collect();
    for (paths, format) in [
        (&args.config_yaml, Format::Yaml),
        (&args.config_json, Format::Json),
        (&args.config_toml, Format::Toml),
    ] {
        let path = |path: &PathBuf| File {
            path: path.clone(),
            format,
        };
        files.extend(paths.iter().map(path));
    }
    if files.is_empty() {
        return Err(io::Error::other(
            "no files given; name the files of a configuration",
        ));
    }
    let out = &mut io::stdout().lock();
    let config = match configuration::read(&files) {
        Ok(config) => config,
        Err(problems) => {
            for problem in problems {
                writeln!(out, "error: {problem}")?;
            }
            return Ok(false);
        }
    };
    let catalogue = Catalogue::shipped();
    let (mut errors, mut warnings) = (0, 0);
    for problem in problems(catalogue, &config, args.start) {
        let level = if problem.check.is_warning() {
            warnings += 1;
            "warning"
        } else {
            errors += 1;
            "error"
        };
        // Excerpts of VRL programs keep their line breaks.
        let text = problem.error.to_string();
        let lines: Vec<_> = text.split('\n').map(on_one_line).collect();
        writeln!(out, "{level}: {}", lines.join("\n"))?;
    }
    let has_failed = errors > 0 || args.deny_warnings && warnings > 0;
    let result = if has_failed { "invalid" } else { "valid" };
    writeln!(
        out,
        "{result} for Vector {}: {errors} errors, {warnings} warnings",
        catalogue.version
    )?;
    Ok(!has_failed)
}

fn validate_lines(files: &[PathBuf], with_start: bool) -> io::Result<bool> {
    let out = &mut io::BufWriter::new(io::stdout().lock());
    let is_valid = match files {
        [file] if file.as_os_str() != "-" => {
            let open = std::fs::File::open(file);
            let file = open.map_err(|error| {
                let problem = describe_read_error(&error);
                io::Error::other(format!("the file {} {problem}", file.display()))
            })?;
            lines::run(BufReader::new(file), out, with_start)?
        }
        [] | [_] => lines::run(io::stdin().lock(), out, with_start)?,
        _ => {
            return Err(io::Error::other(
                "--input-format=jsonl takes one file or standard input",
            ));
        }
    };
    out.flush()?;
    Ok(is_valid)
}
