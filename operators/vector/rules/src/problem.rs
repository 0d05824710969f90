//! What was found in a configuration.

use shared_validation::FieldError;

/// What is asked of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// That it can be read at all.
    Readable,
    /// That each option is one that Vector takes.
    Options,
    /// That no option is silently ignored. Advice.
    Ignored,
    /// That events can flow from sources to sinks.
    Topology,
    /// That nothing is for nobody. Advice.
    Unused,
    /// That each program and condition compiles.
    Programs,
    /// What the compiler advises.
    ProgramAdvice,
    /// That a program is not too large to be judged.
    Limits,
}

impl Check {
    /// Whether it only advises.
    #[must_use]
    pub fn is_advice(self) -> bool {
        matches!(self, Self::Ignored | Self::Unused | Self::ProgramAdvice)
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// By what.
    pub check: Check,
    /// What is wrong, at a path from the configuration's root.
    pub error: FieldError,
}

/// Everything that was found so far.
#[derive(Debug, Default)]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

impl Problems {
    pub(crate) fn add(&mut self, check: Check, error: FieldError) {
        self.0.push(Problem { check, error });
    }
}
