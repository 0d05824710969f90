//! Command line: the options of Vector that its workloads use.

use std::path::PathBuf;

/// Stand-in for Vector.
#[derive(clap::Parser)]
#[command(
    name = "vector",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) run: Option<RunArgs>,
}

/// Subcommands. Without one, the configuration runs.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Validate a configuration, and exit.
    Validate(ValidateArgs),
}

#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// Folder with the configuration, as JSON files.
    #[arg(long, short = 'C')]
    pub(crate) config_dir: PathBuf,
    /// Reload the configuration when a file changes.
    #[arg(long, short)]
    pub(crate) watch_config: bool,
    /// Accepted and ignored: no test configuration contains an environment variable.
    #[arg(long)]
    dangerously_allow_env_var_interpolation: bool,
}

#[derive(clap::Args)]
pub(crate) struct ValidateArgs {
    /// Folder with the configuration, as JSON files.
    #[arg(long, short = 'C')]
    pub(crate) config_dir: PathBuf,
    /// Accepted and ignored: the stand-in never connects to the target of a sink.
    #[arg(long)]
    skip_healthchecks: bool,
    /// Accepted and ignored, as for a running configuration.
    #[arg(long)]
    dangerously_allow_env_var_interpolation: bool,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn parse(args: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from([&["vector"], args].concat())
    }

    #[test]
    fn the_command_lines_of_pods_are_accepted() {
        let run = parse(&["--config-dir", "/etc/vector", "--watch-config"]);
        let run = run.expect("it is valid").run.expect("options");
        assert!(run.watch_config);
        assert_eq!(run.config_dir, PathBuf::from("/etc/vector"));
        let validate = parse(&[
            "validate",
            "--skip-healthchecks",
            "--config-dir",
            "/etc/vector",
            "--dangerously-allow-env-var-interpolation",
        ]);
        let validate = validate.expect("it is valid");
        assert!(validate.run.is_none());
        let Some(Command::Validate(validate)) = validate.command else {
            panic!("a validation");
        };
        let found = validate.config_dir;
        assert_eq!(found, PathBuf::from("/etc/vector"));
    }

    #[test]
    fn other_command_lines_are_errors() {
        for args in [
            &[][..],
            &["--watch-config"],
            &["validate"],
            &["validate", "-C", "/d", "--watch-config"],
        ] {
            assert!(parse(args).is_err(), "{args:?}");
        }
    }
}
