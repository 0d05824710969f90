//! Format of the input of commands that other programs call.

/// Format of the input, for programs that validate many objects in one process.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum InputFormat {
    /// One JSON request per line.
    Jsonl,
}
