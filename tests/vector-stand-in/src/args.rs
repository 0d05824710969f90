//! Command line: the options of Vector that its workloads use.

use std::path::PathBuf;

/// Stand-in for Vector.
#[derive(clap::Parser)]
#[command(name = "vector")]
pub(crate) struct Args {
    /// Folder with the configuration, as JSON files.
    #[arg(long, short = 'C')]
    pub(crate) config_dir: PathBuf,
    /// Reload the configuration when a file changes.
    #[arg(long, short)]
    pub(crate) watch_config: bool,
    /// Accepted and ignored: no test configuration contains an environment variable.
    #[arg(long)]
    pub(crate) dangerously_allow_env_var_interpolation: bool,
}
