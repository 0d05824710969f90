//! Problems that validation finds in a configuration.

use std::collections::BTreeMap;

use lockstep_shared_validation::{ErrorType, FieldError, max_reported};

use crate::vector_version::VectorVersion;

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
    /// A version of Vector that was not measured can build all components, as far as the rules of a measured one tell. Advice.
    UnmeasuredStart,
}

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
                | Self::UnmeasuredStart
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
    /// First version of Vector for which the rule was compared with Vector, or read in its sources.
    pub since: VectorVersion,
}

impl Diagnostic {
    /// Returns true if the rule is one of this version of Vector, and not an assumption about it. The rules about what Vector
    /// reads are those of the catalogue of the version.
    #[must_use]
    pub fn is_of(&self, version: VectorVersion) -> bool {
        let [.., newest] = VectorVersion::MEASURED;
        let is_about_start = matches!(self.check, Check::Confinement | Check::StartUp);
        !is_about_start || (self.since..=newest).contains(&version)
    }
}

/// Maximum number of problems of one check that are kept. With one more than are reported, it is known that there are more.
pub(crate) fn max_kept() -> usize {
    max_reported().saturating_add(1)
}

/// Collected problems.
#[derive(Debug)]
pub(crate) struct DiagnosticList {
    kept: Vec<Diagnostic>,
    /// First version of Vector that has the rules which add problems now.
    since: VectorVersion,
    /// Number of problems of each check that are kept, by the first version that has the rule: a rule that may not be one of the
    /// version that runs must not keep out one that is.
    counts: BTreeMap<(Check, VectorVersion), usize>,
}

impl Default for DiagnosticList {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            since: VectorVersion::FIRST_READ,
            counts: BTreeMap::new(),
        }
    }
}

impl DiagnosticList {
    /// Sets the first version of Vector that has the rules which add problems from now on.
    pub(crate) fn rules_since(&mut self, version: VectorVersion) {
        self.since = version;
    }

    pub(crate) fn add(&mut self, check: Check, error: FieldError) {
        let count = self.counts.entry((check, self.since)).or_default();
        // An internal error is always kept: validation was not complete. The compiler does not run again after one.
        if *count < max_kept() || error.error_type == ErrorType::Internal {
            *count += 1;
            let since = self.since;
            self.kept.push(Diagnostic {
                check,
                error,
                since,
            });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Returns the problems.
    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use lockstep_shared_validation::FieldPath;

    use super::*;

    #[test]
    fn an_internal_error_is_kept_after_any_number_of_others() {
        let mut problems = DiagnosticList::default();
        for _ in 0..2 * max_kept() {
            let error = FieldError::invalid_hidden(FieldPath::root(), "wrong");
            problems.add(Check::Programs, error);
        }
        let error = FieldError::internal(FieldPath::root(), "the compiler failed");
        problems.add(Check::Programs, error.clone());
        assert_eq!(problems.len(), max_kept() + 1);
        assert_eq!(
            problems
                .into_diagnostics()
                .pop()
                .map(|problem| problem.error),
            Some(error)
        );
    }
}
