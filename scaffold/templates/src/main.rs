//! The program: webhook, controller and command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    greeting_operator::program().run()
}
