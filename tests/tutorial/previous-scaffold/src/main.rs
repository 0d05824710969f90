//! The program: webhook, controller and command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    note_operator::program().run()
}
