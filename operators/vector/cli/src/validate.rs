//! `lockstep vector validate`: validation of Vector configurations.

use std::io::{self, BufReader, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use lockstep_sdk::{InputFormat, describe_read_error};
use lockstep_vector_api::{Catalogue, Check, Diagnostic};

use crate::catalogue_files::VersionArgs;
use crate::common_args::CommonArgs;
use crate::configuration::Reading;
use crate::configuration::paths::{ConfigPath, GivenPaths};
use crate::loaded::EX_CONFIG;
use crate::problems::problems;
use crate::report::{Level, Report};
use crate::{configuration, lines};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Files that form one configuration together, as paths or patterns, separated by commas or spaces. The extension
    /// selects YAML, JSON or TOML; `-` reads YAML from standard input. Without any file or folder, reads
    /// /etc/vector/vector.yaml. Environment variable: `VECTOR_CONFIG`.
    #[arg(value_delimiter = ',')]
    files: Vec<PathBuf>,
    /// TOML files, whatever their extensions. Environment variable: `VECTOR_CONFIG_TOML`.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    config_toml: Vec<PathBuf>,
    /// JSON files, whatever their extensions. Environment variable: `VECTOR_CONFIG_JSON`.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    config_json: Vec<PathBuf>,
    /// YAML files, whatever their extensions. Environment variable: `VECTOR_CONFIG_YAML`.
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    config_yaml: Vec<PathBuf>,
    /// Folders with files that end in .toml, .json, .yaml or .yml. In their folders `sources`, `transforms`, `sinks`,
    /// `enrichment_tables` and `tests`, each file is one component, named as the file. Environment variable:
    /// `VECTOR_CONFIG_DIR`.
    #[arg(
        short = 'C',
        long = "config-dir",
        value_name = "FOLDERS",
        value_delimiter = ','
    )]
    config_folders: Vec<PathBuf>,
    /// Reject a configuration with an output that has no consumers.
    #[arg(short, long)]
    deny_warnings: bool,
    #[command(flatten)]
    _ignored: IgnoredArgs,
    /// Read one configuration per line and write one result per line: `{"id":…,"config":{…}}`, or
    /// `{"id":…,"config":"…","format":"yaml"}` with the text of a configuration in YAML, JSON or TOML. Without files,
    /// reads standard input.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["config_yaml", "config_json", "config_toml", "config_folders", "deny_warnings"])]
    input_format: Option<InputFormat>,
    /// Also report errors that prevent Vector from starting although `vector validate --no-environment` accepts
    /// the configuration: template confinement, components that cannot be built, and global options and secrets that
    /// cannot be applied.
    #[arg(long)]
    start: bool,
    #[command(flatten)]
    version: VersionArgs,
}

/// Arguments of Vector that change nothing here.
#[derive(clap::Args)]
struct IgnoredArgs {
    /// Accepted and ignored: nothing outside the configuration is ever checked.
    #[arg(long = "no-environment")]
    _no_environment: bool,
    /// Accepted and ignored: no health checks are ever run.
    #[arg(long = "skip-healthchecks")]
    _skip_healthchecks: bool,
}

pub(crate) fn run(args: &Args, common: &CommonArgs) -> ExitCode {
    let catalogue = args.version.chosen();
    let done = catalogue.map_err(io::Error::other).and_then(|catalogue| {
        if args.input_format == Some(InputFormat::Jsonl) {
            validate_lines(&catalogue, &args.files, args.start)
        } else {
            validate(&catalogue, args, common)
        }
    });
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
fn validate(catalogue: &Catalogue, args: &Args, common: &CommonArgs) -> io::Result<bool> {
    let given = GivenPaths {
        files: args.files.clone(),
        toml: args.config_toml.clone(),
        json: args.config_json.clone(),
        yaml: args.config_yaml.clone(),
        folders: args.config_folders.clone(),
    };
    let paths = given
        .or_environment()
        .existing()
        .map_err(io::Error::other)?;
    let names: Vec<_> = paths.iter().map(ConfigPath::path).collect();
    let not_loaded = format!("Failed to load {names:?}");
    let mut report = Report::new(io::stdout().lock(), common.color);
    let interpolates =
        common.dangerously_allow_env_var_interpolation || catalogue.number().always_interpolates();
    let reading = Reading {
        interpolates,
        version: catalogue.number(),
    };
    let config = match configuration::read(&paths, reading) {
        Ok(config) => config,
        Err(problems) => {
            report.section(&not_loaded, Level::Error, &problems)?;
            return Ok(false);
        }
    };
    let mut found = Found::default();
    let problems = problems(catalogue, &config, args.start);
    // After a replacement, `${` is what `$${` stands for.
    let is_left = |problem: &&Diagnostic| !interpolates || problem.check != Check::LiteralVariables;
    problems
        .iter()
        .filter(is_left)
        .for_each(|problem| found.add(problem));
    if args.deny_warnings {
        found.load.append(&mut found.unused);
    }
    if !found.limits.is_empty() {
        // Vector has no such limits, so an exceeded one says nothing about Vector.
        let heading = "Not validated, because of a limit of lockstep";
        report.section(heading, Level::Error, &found.limits)?;
    }
    if !found.load.is_empty() {
        report.section(&not_loaded, Level::Error, &found.load)?;
    } else if !found.unused.is_empty() {
        let heading = format!("Loaded with warnings {names:?}");
        report.section(&heading, Level::Warning, &found.unused)?;
    } else if found.limits.is_empty() {
        report.line(Level::Success, &format!("Loaded {names:?}"))?;
    }
    let is_loaded = found.load.is_empty() && found.limits.is_empty();
    if !found.transforms.is_empty() {
        report.section("Transform errors", Level::Error, &found.transforms)?;
    } else if is_loaded {
        report.line(Level::Success, "Transforms configuration")?;
    }
    if !found.components.is_empty() {
        report.section("Component errors", Level::Error, &found.components)?;
    } else if is_loaded && args.start {
        report.line(Level::Success, "Component configuration")?;
    }
    if !found.advice.is_empty() {
        report.section("Advice", Level::Warning, &found.advice)?;
    }
    let is_valid = is_loaded && found.transforms.is_empty() && found.components.is_empty();
    if is_valid {
        report.validated()?;
    }
    Ok(is_valid)
}

/// Problems by the phase in which Vector reports them.
#[derive(Default)]
struct Found {
    load: Vec<String>,
    /// Limits of this program, which Vector does not have.
    limits: Vec<String>,
    /// Outputs without consumers.
    unused: Vec<String>,
    transforms: Vec<String>,
    components: Vec<String>,
    /// Warnings that Vector does not have.
    advice: Vec<String>,
}

impl Found {
    fn add(&mut self, problem: &Diagnostic) {
        let path = problem.error.path.to_string();
        let list = match problem.check {
            Check::Unused => &mut self.unused,
            Check::Ignored
            | Check::LiteralVariables
            | Check::ProgramAdvice
            | Check::AfterStart
            | Check::UnmeasuredStart => &mut self.advice,
            Check::Programs | Check::ProgramFiles | Check::ProgramSecrets
                if path.starts_with("transforms[") =>
            {
                &mut self.transforms
            }
            Check::Programs
            | Check::ProgramFiles
            | Check::ProgramSecrets
            | Check::Confinement
            | Check::StartUp => &mut self.components,
            Check::Limits => &mut self.limits,
            Check::Readable | Check::Options | Check::Topology => &mut self.load,
        };
        list.push(problem.error.to_string());
    }
}

fn validate_lines(catalogue: &Catalogue, files: &[PathBuf], with_start: bool) -> io::Result<bool> {
    let out = &mut io::BufWriter::new(io::stdout().lock());
    let is_valid = match files {
        [file] if file.as_os_str() != "-" => {
            let open = std::fs::File::open(file);
            let file = open.map_err(|error| {
                let problem = describe_read_error(&error);
                io::Error::other(format!("the file {} {problem}", file.display()))
            })?;
            lines::run(catalogue, BufReader::new(file), out, with_start)?
        }
        [] | [_] => lines::run(catalogue, io::stdin().lock(), out, with_start)?,
        _ => {
            return Err(io::Error::other(
                "--input-format=jsonl takes one file or standard input",
            ));
        }
    };
    out.flush()?;
    Ok(is_valid)
}
