//! Problems that validation finds in a configuration.

use lockstep_shared_validation::FieldError;

/// Check of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// Vector can read all values.
    Readable,
    /// Vector accepts all options.
    Options,
    /// No option is silently ignored. Advice.
    Ignored,
    /// Events can flow from sources to sinks.
    Topology,
    /// All outputs are used. Advice.
    Unused,
    /// All programs and conditions compile.
    Programs,
    /// No program is in a file that cannot be read here.
    ProgramFiles,
    /// No program contains a reference to a secret, whose content would become part of the program.
    ProgramSecrets,
    /// No option contains a variable that Vector does not replace. Advice.
    LiteralVariables,
    /// The compiler reports no warnings. Advice.
    ProgramAdvice,
    /// No program is too large to be validated.
    Limits,
    /// Templates that select a destination begin with literal text.
    Confinement,
    /// Vector can build all components.
    StartUp,
    /// No component makes Vector end after its start. Advice, because Vector starts.
    AfterStart,
}

/// Number of checks.
const CHECKS: usize = Check::AfterStart as usize + 1;

/// Maximum number of problems that are reported for one check.
const MAX_REPORTED: usize = 100;

impl Check {
    /// Returns true if the problems of this check are warnings.
    #[must_use]
    pub fn is_warning(self) -> bool {
        matches!(
            self,
            Self::Ignored
                | Self::Unused
                | Self::LiteralVariables
                | Self::ProgramAdvice
                | Self::AfterStart
        )
    }
}

/// Problem of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Check that found the problem.
    pub check: Check,
    /// Error; its path starts at the root of the configuration.
    pub error: FieldError,
}

/// Collected problems.
#[derive(Debug, Default)]
pub(crate) struct DiagnosticList {
    reported: Vec<Diagnostic>,
    /// Number of problems of each check, including those that are not reported.
    found: [usize; CHECKS],
}

impl DiagnosticList {
    pub(crate) fn add(&mut self, check: Check, error: FieldError) {
        let found = &mut self.found[check as usize];
        *found += 1;
        if *found <= MAX_REPORTED {
            self.reported.push(Diagnostic { check, error });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.reported.len()
    }

    /// Returns the reported problems, and one more for each check that found too many.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        let mut more = Vec::new();
        for problem in self.reported.iter().rev() {
            let found = std::mem::take(&mut self.found[problem.check as usize]);
            if found > MAX_REPORTED {
                let detail = format!("and {} more, which are not listed", found - MAX_REPORTED);
                let error = FieldError::invalid_hidden(problem.error.path.clone(), detail);
                let check = problem.check;
                more.push(Diagnostic { check, error });
            }
        }
        self.reported.append(&mut more);
        self.reported
    }
}
