//! Arguments of all subcommands.

use clap::{ArgAction, ValueEnum};

use crate::report::Color;

/// Arguments that Vector accepts before its subcommand.
#[derive(clap::Args)]
pub(crate) struct CommonArgs {
    /// When to use colors.
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        env = "VECTOR_COLOR",
        global = true
    )]
    pub(crate) color: Color,
    /// Replace environment variables (`$NAME`, `${NAME}`) in the text of the files.
    #[arg(
        long,
        env = "VECTOR_DANGEROUSLY_ALLOW_ENV_VAR_INTERPOLATION",
        global = true
    )]
    pub(crate) dangerously_allow_env_var_interpolation: bool,
    #[command(flatten)]
    _of_a_run: RunArgs,
}

/// Arguments of Vector for its whole process, which `vector validate` accepts before the subcommand and does not use.
/// The operator of kaasops passes one of them.
#[derive(clap::Args)]
struct RunArgs {
    #[arg(
        short = 'r',
        long = "require-healthy",
        env = "VECTOR_REQUIRE_HEALTHY",
        hide = true
    )]
    _require_healthy: Option<bool>,
    #[arg(short = 't', long = "threads", env = "VECTOR_THREADS", hide = true)]
    _threads: Option<usize>,
    #[arg(short = 'v', long = "verbose", action = ArgAction::Count, hide = true)]
    _verbose: u8,
    #[arg(short = 'q', long = "quiet", action = ArgAction::Count, hide = true)]
    _quiet: u8,
    #[arg(long = "log-format", env = "VECTOR_LOG_FORMAT", hide = true)]
    _log_format: Option<LogFormat>,
    #[arg(
        short = 'w',
        long = "watch-config",
        env = "VECTOR_WATCH_CONFIG",
        hide = true
    )]
    _watch_config: bool,
    #[arg(
        long = "openssl-no-probe",
        env = "VECTOR_OPENSSL_NO_PROBE",
        hide = true
    )]
    _openssl_no_probe: bool,
    #[arg(
        long = "allow-empty-config",
        env = "VECTOR_ALLOW_EMPTY_CONFIG",
        hide = true
    )]
    _allow_empty_config: bool,
}

/// Format of the logs of Vector.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}
