//! The program: webhook, controller and command line.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A validation allocates and frees hundreds of small values. The C library's allocator is slow at that.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    greeting_operator::program().run()
}
