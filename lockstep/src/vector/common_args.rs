//! Arguments of all subcommands.

use crate::vector::report::Color;

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
}
