//! The `lockstep` program: the SDK with three operators.

mod operators;
#[cfg(test)]
mod reference_pages;
mod scaffold;

use std::process::ExitCode;

use lockstep_sdk::Program;
use mimalloc::MiMalloc;

/// A review allocates and frees hundreds of small values. The C library's allocator is slow at that.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    program().run()
}

fn program() -> Program {
    Program::new("lockstep")
        .version(env!("CARGO_PKG_VERSION"))
        .webhook_domain("lockstep.dev")
        .operator(operators::vector::operator())
        .operator(operators::cloud_database::operator())
        .operator(operators::echo::operator())
        .subcommand(scaffold::new)
        .subcommand(scaffold::add)
        .examples(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_definition_is_consistent() {
        super::program().command().debug_assert();
    }
}
