//! Program that reports are from.

/// The program, which reports name as the tool that found the problems.
#[derive(Clone, Copy)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}
