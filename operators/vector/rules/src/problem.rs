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
    /// Templates that select a destination begin with literal text.
    Confinement,
}

/// How many checks there are.
const CHECKS: usize = Check::Confinement as usize + 1;

/// How much of what one check finds is told.
const MOST_TOLD: usize = 100;

impl Check {
    /// Whether it only advises.
    #[must_use]
    pub fn is_warning(self) -> bool {
        matches!(self, Self::Ignored | Self::Unused | Self::ProgramAdvice)
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// By what.
    pub check: Check,
    /// What is wrong, at a path from the configuration's root.
    pub error: FieldError,
}

/// Everything that was found so far.
#[derive(Debug, Default)]
pub(crate) struct DiagnosticList {
    told: Vec<Diagnostic>,
    /// By check, with what is not told.
    found: [usize; CHECKS],
}

impl DiagnosticList {
    pub(crate) fn add(&mut self, check: Check, error: FieldError) {
        let found = &mut self.found[check as usize];
        *found += 1;
        if *found <= MOST_TOLD {
            self.told.push(Diagnostic { check, error });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.told.len()
    }

    /// All that is told, and how much is not.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        let mut more = Vec::new();
        for problem in self.told.iter().rev() {
            let found = std::mem::take(&mut self.found[problem.check as usize]);
            if found > MOST_TOLD {
                let detail = format!("and {} more, which are not told", found - MOST_TOLD);
                let error = FieldError::invalid_hidden(problem.error.path.clone(), detail);
                let check = problem.check;
                more.push(Diagnostic { check, error });
            }
        }
        self.told.append(&mut more);
        self.told
    }
}
